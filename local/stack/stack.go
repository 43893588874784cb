package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/infra/kubernetes"
	"github.com/elbridge/elbridge/local/cloud"
	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/eks"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/cluster"
	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/local/node"
)

const (
	// startTimeout bounds the start once everything is built.
	startTimeout = 2 * time.Minute
	// stopTimeout bounds the end.
	stopTimeout = 30 * time.Second
)

// Stack is a running system.
type Stack struct {
	Config Config
	AWS    *AWS
	Cloud  *cloud.Cloud
	Kube   *cluster.Cluster
	Admin  *cluster.Client // of the cluster, as administrator
	Nodes  *node.Client
	// NodeControl is the address of the node agent's control API.
	NodeControl string
	Runner      *functions.Runner
	Pump        *functions.Pump
	Gate        *Gate    // the functions' way to the API server
	Held        *Targets // what the target groups hold
	// HasResync is whether resync is there, scheduled or not.
	HasResync bool

	run           context.Context // of the parts
	stopPump      func()
	webhookConfig []byte // manifest

	unlock func()
	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error // the first part that ended unasked
}

// Start starts everything and returns when the webhook serves: from then on a
// pod's life reaches the rules of the bus. wait says whether to wait for another
// stack on this machine to end. What was started is stopped if Start fails.
func Start(ctx context.Context, cfg Config, wait bool) (_ *Stack, err error) {
	cfg.setDefaults()
	if err := cfg.checkWay(); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, wait, cfg.Say)
	if err != nil {
		return nil, err
	}
	s := &Stack{Config: cfg, unlock: unlock, failed: make(chan error, 8), Held: NewTargets()}
	defer func() { //nolint:contextcheck // also when ctx has ended
		if err != nil {
			s.Stop()
		}
	}()
	if err := portsFree(ctx, cfg.Ports); err != nil {
		return nil, err
	}
	if cfg.Clean {
		if err := os.RemoveAll(cfg.Dir); err != nil {
			return nil, err
		}
	}
	cfg.Say("preparing the control plane and the Lambda emulator (built once, then cached)")
	binaries, err := cluster.EnsureBinaries(ctx, cfg.Progress)
	if err != nil {
		return nil, err
	}
	rie, err := functions.EnsureRIE(ctx, func(line string) { cfg.Say("  %s", line) })
	if err != nil {
		return nil, err
	}
	// Parts outlive the time for the start, and end with Stop.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.run, s.cancel = run, cancel
	ctx, done := context.WithTimeout(ctx, startTimeout)
	defer done()
	for _, part := range s.parts(ctx, run, rie, binaries) {
		cfg.Say("starting %s", part.name)
		if err := part.start(); err != nil {
			return nil, fmt.Errorf("starting %s: %w", part.name, err)
		}
	}
	return s, nil
}

func (c *Config) setDefaults() {
	if c.Say == nil {
		c.Say = func(string, ...any) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.WebhookReplicas == 0 {
		c.WebhookReplicas = 2
	}
	if c.CheckSpeedup == 0 {
		c.CheckSpeedup = 5
	}
	if c.Way == "" {
		c.Way = WayBoth
		if c.Bootstrap != "" { // resync would do what the other binary does not
			c.Way = WayEvents
		}
	}
	if c.ResyncInterval == 0 {
		c.ResyncInterval = defaultInterval
	}
	if c.Bootstrap == "" {
		c.Bootstrap = filepath.Join(c.Binaries, Registrar, "bootstrap")
	}
}

// goPart runs a part until Stop; its error is kept for Failed.
func (s *Stack) goPart(name string, run func() error) {
	s.wg.Go(func() {
		if err := run(); err != nil && !errors.Is(err, context.Canceled) {
			select {
			case s.failed <- fmt.Errorf("%s ended: %w", name, err):
			default: // one failure is told, the others follow from it
			}
		}
	})
}

// Failed gets an error when a part ends that nobody stopped.
func (s *Stack) Failed() <-chan error { return s.failed }

func (s *Stack) onTarget(c elb.Change) {
	s.Held.On(c)
	if s.Config.OnTarget != nil {
		s.Config.OnTarget(c)
	}
}

func (s *Stack) startCloud(ctx, run context.Context, rie string) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.Config.CloudPort))
	if err != nil {
		return err
	}
	endpoint := "http://" + l.Addr().String()
	c, err := cloud.New(cloud.Config{
		Principals: []core.Principal{admin.principal(), registrarRole.principal(), resyncRole.principal(), webhookRole.principal()},
		BusDelay:   s.Config.BusDelay, Log: s.Config.Log,
	})
	if err != nil {
		return err
	}
	lb, err := elb.New(elb.Config{CheckSpeedup: s.Config.CheckSpeedup, OnChange: s.onTarget, Log: s.Config.Log}) //nolint:contextcheck // it ends with Close
	if err != nil {
		return err
	}
	if s.Runner, err = s.functions(endpoint, rie); err != nil {
		return err
	}
	c.Events.SetInvoker(s.Runner, func(err error) bool { return errors.Is(err, functions.ErrNotFound) })
	if err := errors.Join(c.Register("elasticloadbalancing", lb), c.RegisterLambda(functions.NewHandler(s.Runner))); err != nil {
		return err
	}
	lb.RouteControl(c.Server)
	c.Run("elasticloadbalancing", lb.Run)
	s.Cloud = c
	s.goPart("the local AWS", func() error { return c.Serve(run, l) })
	scheduler := functions.Scheduler{Rules: c.Events.Schedules, Fire: c.Events.Fire, Log: s.Config.Log}
	s.goPart("the scheduler", func() error { scheduler.Run(run); return nil })
	s.AWS, err = setUpAWS(ctx, endpoint)
	return err
}

func (s *Stack) startCluster(ctx, run context.Context, binaries cluster.Binaries) error {
	k, err := cluster.Start(ctx, cluster.Config{
		Name: ClusterName, Dir: filepath.Join(s.Config.Dir, "kube"), Binaries: binaries, Audit: true,
		TokenWebhook: &cluster.TokenWebhook{URL: s.AWS.Endpoint + "/_local/clusters/" + ClusterName + "/token"},
		Nodes:        cluster.NodeMonitor{GracePeriod: s.Config.GracePeriod},
	})
	if err != nil {
		return err
	}
	s.Kube = k
	s.goPart("the control plane", func() error { <-k.Done(); return k.Err() })
	if s.Admin, err = k.Client(cluster.Admin); err != nil {
		return err
	}
	if err := s.Admin.Apply(ctx, kubernetes.RBAC); err != nil {
		return err
	}
	if s.Gate, err = newGate(strings.TrimPrefix(k.Endpoint, "https://")); err != nil {
		return err
	}
	s.goPart("the way to the API server", func() error { return s.Gate.run(run) })
	return s.Cloud.Clusters.Put(eks.Cluster{
		Name: ClusterName, Account: Account, Region: Region, Endpoint: "https://" + s.Gate.Addr(), CA: k.CA, Version: "1.37", PublicAccess: true,
		Access: map[string]eks.AccessEntry{
			registrarRole.arn(): {Username: "elbridge:registrar:{{SessionName}}", Groups: []string{"elbridge:registrar"}},
			resyncRole.arn():    {Username: "elbridge:resync:{{SessionName}}", Groups: []string{"elbridge:resync"}},
		},
	})
}

func (s *Stack) startNodes(ctx, run context.Context) error {
	adminConfig, err := s.Kube.RESTConfig(cluster.Admin)
	if err != nil {
		return err
	}
	cfg := node.Config{
		REST: adminConfig, Nodes: node.DefaultNodes(), StateDir: filepath.Join(s.Config.Dir, "nodes"),
		Images: map[string]node.Image{WebhookImage: {Path: filepath.Join(s.Config.Binaries, "webhook")}}, Log: s.Config.Log,
	}
	for i := range cfg.Nodes {
		if cfg.Nodes[i].REST, err = s.Kube.RESTConfig(cluster.Node(cfg.Nodes[i].Name)); err != nil {
			return err
		}
	}
	if s.Config.Node != nil {
		s.Config.Node(&cfg)
	}
	control := make(chan string, 1)
	cfg.Started = func(address string) { control <- address }
	ended := make(chan error, 1)
	s.goPart("the node agent", func() error {
		err := node.Run(run, cfg)
		ended <- err
		return err
	})
	select {
	case address := <-control:
		s.Nodes, s.NodeControl = node.NewClient(address), address
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends everything; no process is left when it returns.
func (s *Stack) Stop() {
	ctx, done := context.WithTimeout(context.Background(), stopTimeout)
	defer done()
	if s.cancel != nil {
		s.cancel()
	}
	if s.Runner != nil {
		s.Runner.Close()
	}
	if s.Kube != nil {
		s.Kube.Stop(ctx)
	}
	s.wg.Wait() // each part ends with its context, the node agent's pods within its least grace period
	s.unlock()
}

// Env is the environment by which aws-cli and SDKs reach the local AWS, and
// kubectl the cluster.
func (s *Stack) Env() map[string]string {
	env := admin.env(s.AWS.Endpoint)
	env["KUBECONFIG"] = s.Kube.Kubeconfig
	return env
}
