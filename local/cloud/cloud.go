package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/eks"
	"github.com/elbridge/elbridge/local/cloud/events"
	"github.com/elbridge/elbridge/local/cloud/logs"
	"github.com/elbridge/elbridge/local/cloud/sqs"
	"github.com/elbridge/elbridge/local/cloud/sts"
	"github.com/elbridge/elbridge/local/cloud/token"
)

// Config is what a local cloud starts with. The zero value works: an empty
// cloud without principals.
type Config struct {
	Principals []core.Principal
	Roles      []sts.Role // that may be assumed
	Clusters   []eks.Cluster

	Clock          core.Clock    // of the services; default the machine's
	SignatureClock core.Clock    // judges the dates of signatures and tokens; default the machine's
	BusDelay       time.Duration // between PutEvents and delivery; default 0
	Seed           uint64        // of choices that faults and back-offs make
	Log            *slog.Logger  // default: silent
}

// Cloud is a local cloud.
type Cloud struct {
	Server   *core.Server // principals, faults, records
	Events   *events.Service
	Queues   *sqs.Service
	Logs     *logs.Service
	Clusters *eks.Service
	STS      *sts.Service

	parts []part
}

// part is something that runs as long as the cloud is served.
type part struct {
	name string
	run  func(context.Context) error
}

// New returns a cloud; nothing runs until Serve.
func New(cfg Config) (*Cloud, error) {
	server, err := core.NewServer(core.Options{Clock: cfg.Clock, SignatureClock: cfg.SignatureClock, Principals: cfg.Principals, Seed: cfg.Seed, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	if cfg.SignatureClock == nil {
		cfg.SignatureClock = core.RealClock{}
	}
	c := &Cloud{Server: server, Queues: sqs.New(server.Clock), Logs: logs.New(server.Clock),
		Clusters: eks.New(server.Clock), STS: sts.New(cfg.SignatureClock, server.Principals)}
	c.Events = events.New(events.Options{Server: server, Queues: c.Queues, Logs: c.Logs, Seed: cfg.Seed})
	c.Events.SetDelay(cfg.BusDelay)
	for _, r := range cfg.Roles {
		c.STS.AddRole(r)
	}
	for _, k := range cfg.Clusters {
		if err := c.Clusters.Put(k); err != nil {
			return nil, err
		}
	}
	for name, service := range map[string]core.Service{"events": c.Events, "sqs": c.Queues, "logs": c.Logs, "eks": c.Clusters, "sts": c.STS} {
		if err := c.Register(name, service); err != nil {
			return nil, err
		}
	}
	c.Events.RouteControl(server)
	c.routeToken(cfg.SignatureClock)
	c.Run("events", c.Events.Run)
	return c, nil
}

// Register plugs in a service under its signing name, such as
// "elasticloadbalancing". It is done before Serve, or at any time after.
func (c *Cloud) Register(name string, service core.Service) error {
	return c.Server.Register(name, service)
}

// Run has something run while the cloud is served: it gets a context that ends
// with Serve's, and its error ends Serve. It is called before Serve.
func (c *Cloud) Run(name string, run func(context.Context) error) {
	c.parts = append(c.parts, part{name, run})
}

// RegisterLambda plugs in Lambda's Invoke API.
func (c *Cloud) RegisterLambda(h http.Handler) error {
	return c.Register("lambda", core.Handler{HTTP: h, Operations: func(method, path string) string {
		if method == http.MethodPost && strings.HasPrefix(path, "/2015-03-31/functions/") && strings.HasSuffix(path, "/invocations") {
			return "Invoke"
		}
		return ""
	}})
}

// routeToken adds POST /_local/clusters/{name}/token, the webhook by which a
// cluster's API server has tokens reviewed.
func (c *Cloud) routeToken(clock core.Clock) {
	verifier := &token.Verifier{Clock: clock, STS: core.InMemory(c.Server)}
	c.Server.HandleLocal("POST /_local/clusters/{name}/token", token.Webhook(verifier, c.Clusters.Find, c.Server.Log))
}

// Handler answers AWS calls and the control API.
func (c *Cloud) Handler() http.Handler { return c.Server }

// shutdown bounds how long calls in progress may take when Serve ends.
const shutdown = 2 * time.Second

// Serve answers calls on the listener until ctx ends, and returns nil then.
func (c *Cloud) Serve(ctx context.Context, l net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	server := &http.Server{Handler: c.Handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(c.Server.Log.Handler(), slog.LevelDebug)}
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("local cloud on %s: %w", l.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
		defer cancel()
		if server.Shutdown(end) != nil {
			return server.Close()
		}
		return nil
	})
	for _, p := range c.parts {
		g.Go(func() error {
			if err := p.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("local cloud, %s: %w", p.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}
