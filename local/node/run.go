package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/node/internal/address"
	"github.com/elbridge/elbridge/local/node/internal/proxy"
	"github.com/elbridge/elbridge/local/proc"
)

// agent is all nodes together with what they share.
type agent struct {
	cfg       Config
	ctx       context.Context // of the pods: ends when the agent stops
	hosts     []*host
	addresses *address.Pool
	wishes    *wishes
	starter   *proc.Starter
	proxy     *proxy.Proxy
	places    chan struct{} // one token for each status write under way
	now       func() time.Time
}

// Run registers the nodes and runs their pods until ctx ends; it returns when
// every process and listener is gone, within about MinGrace. Nodes stay
// registered, as machines that lost power do.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return fmt.Errorf("local node: %w", err)
	}
	base, err := loadREST(cfg.Kubeconfig, cfg.REST)
	if err != nil {
		return err
	}
	shared, err := newKube(base)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(cfg.StateDir, "pods"), 0o755); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("control API: %w", err)
	}
	defer ln.Close()

	starter := proc.New()
	defer starter.Close() // last: pods are ended by then
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{
		cfg: cfg, ctx: ctx, now: time.Now,
		addresses: address.NewPool(cfg.AddressCooldown, time.Now),
		wishes:    &wishes{},
		starter:   starter,
		proxy:     proxy.New(cfg.Log),
		places:    make(chan struct{}, cfg.StatusWriters),
	}
	if err := a.addHosts(shared); err != nil {
		return err
	}
	return a.serve(ctx, cancel, shared, ln)
}

func (a *agent) addHosts(shared *kube) error {
	var errs []error
	for _, spec := range a.cfg.Nodes {
		k := shared
		if spec.Kubeconfig != "" || spec.REST != nil {
			own, err := loadREST(spec.Kubeconfig, spec.REST)
			if err == nil {
				k, err = newKube(own)
			}
			errs = append(errs, err)
		}
		errs = append(errs, a.addresses.AddNode(spec.Name, spec.PodRange))
		a.hosts = append(a.hosts, newHost(a, spec, k))
	}
	return errors.Join(errs...)
}

// serve runs everything until ctx ends.
func (a *agent) serve(ctx context.Context, cancel context.CancelFunc, services *kube, ln net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, h := range a.hosts {
		wg.Go(func() { h.run(ctx) })
	}
	wg.Go(func() { a.watchServices(ctx, services) })
	failed := make(chan error, 1)
	wg.Go(func() {
		if err := a.serveControl(ctx, ln); err != nil {
			failed <- fmt.Errorf("control API: %w", err)
			cancel()
		}
	})
	for _, h := range a.hosts {
		select {
		case <-h.synced:
		case <-ctx.Done():
		}
	}
	if ctx.Err() == nil {
		a.cfg.Log.Info("nodes are registered", "nodes", len(a.hosts), "control", ln.Addr().String())
		if a.cfg.Started != nil {
			a.cfg.Started(ln.Addr().String())
		}
	}
	<-ctx.Done()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// host returns the node of that name.
func (a *agent) host(name string) (*host, error) {
	for _, h := range a.hosts {
		if h.spec.Name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%w: no node %q", errNotFound, name)
}

// worker returns the pod of that name: if there are several, as when an old one
// still ends, the one created last.
func (a *agent) worker(namespace, name string) (*worker, error) {
	var found *worker
	for _, h := range a.hosts {
		for _, w := range h.pods() {
			if w.namespace != namespace || w.name != name {
				continue
			}
			if found == nil || found.created.Before(w.created) {
				found = w
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no pod %s/%s on these nodes", errNotFound, namespace, name)
	}
	return found, nil
}

// isNodeAddress says whether an address belongs to a node.
func (a *agent) isNodeAddress(ip netip.Addr) bool {
	for _, h := range a.hosts {
		if slices.Contains(h.ips(), ip) {
			return true
		}
	}
	return false
}
