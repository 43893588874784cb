// Package health makes the health checks of target groups: real connections
// and requests to where the targets really are. What a result means for a
// target is decided in package state.
package health

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/alarm"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

// Config is what the checker depends on.
type Config struct {
	Store *state.Store
	Clock core.Clock
	// Dial connects to the published address of a target.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Parallel bounds the checks that are under way at once; 0 means 64. More
	// wait their turn, so checks get rarer, never lost.
	Parallel int
}

// Checker makes the checks that are due, for as long as it runs.
type Checker struct {
	cfg    Config
	client *http.Client
	slots  chan struct{}
	checks sync.WaitGroup
}

// New returns a checker that has not begun.
func New(cfg Config) *Checker {
	if cfg.Parallel == 0 {
		cfg.Parallel = 64
	}
	return &Checker{
		cfg:   cfg,
		slots: make(chan struct{}, cfg.Parallel),
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:       cfg.Dial,
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as ELB: targets' certificates are not checked
				DisableKeepAlives: true,                                  // each check is a connection of its own
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Run makes checks, and lets time pass for the targets that drain, until ctx
// ends. It returns when the last check is done.
func (c *Checker) Run(ctx context.Context) {
	defer c.checks.Wait()
	for ctx.Err() == nil {
		due, next := c.cfg.Store.Advance(c.cfg.Clock.Now())
		for _, p := range due {
			c.checks.Go(func() { c.check(ctx, p) }) // one for each target at most
		}
		var timer <-chan time.Time // nil, and so never, while nothing is planned
		cancel := func() {}
		if !next.IsZero() {
			timer, cancel = alarm.At(c.cfg.Clock, next)
		}
		select {
		case <-ctx.Done():
		case <-timer:
		case <-c.cfg.Store.Wake():
		}
		cancel()
	}
}

func (c *Checker) check(ctx context.Context, p state.Probe) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return
	}
	start := c.cfg.Clock.Now()
	r := c.Probe(ctx, p)
	if ctx.Err() != nil {
		return // ended by us: it says nothing about the target
	}
	c.cfg.Store.Observe(p, r, start, c.cfg.Clock.Now())
}

// Probe makes one check and waits for its result, at most the check's timeout.
func (c *Checker) Probe(ctx context.Context, p state.Probe) state.Result {
	ctx, cancel := context.WithTimeout(ctx, p.Check.Timeout)
	defer cancel()
	if p.Check.Protocol == "TCP" {
		conn, err := c.cfg.Dial(ctx, "tcp", p.Addr.String())
		if err != nil {
			return failure(err)
		}
		_ = conn.Close()
		return state.Result{Outcome: state.Passed}
	}
	return c.probeHTTP(ctx, p)
}

func (c *Checker) probeHTTP(ctx context.Context, p state.Probe) state.Result {
	scheme := "http://"
	if p.Check.Protocol == "HTTPS" {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+p.Addr.String()+p.Check.Path, nil)
	if err != nil {
		return state.Result{Outcome: state.Failed}
	}
	req.Header.Set("User-Agent", "ELB-HealthChecker/2.0")
	resp, err := c.client.Do(req)
	if err != nil {
		return failure(err)
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, 1<<10); err != nil && !errors.Is(err, io.EOF) {
		return failure(err)
	}
	m, err := state.ParseMatcher(p.Check.Matcher, 0, 999)
	if err != nil || !m.Matches(resp.StatusCode) {
		return state.Result{Outcome: state.Mismatch, Code: resp.StatusCode}
	}
	return state.Result{Outcome: state.Passed, Code: resp.StatusCode}
}

// failure tells a target that is silent from one that refuses.
func failure(err error) state.Result {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return state.Result{Outcome: state.TimedOut}
	}
	return state.Result{Outcome: state.Failed}
}
