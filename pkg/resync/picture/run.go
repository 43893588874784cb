package picture

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// A failed list or stream is tried again after firstPause, doubled each time up
// to lastPause, with up to half as much at random: a cluster that comes back is
// seen within 8 s, one that is out costs ten requests a minute.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Second
)

// ErrRunning: a picture is run by one at a time.
var ErrRunning = errors.New("the picture is being kept already")

// errSuperseded: other scopes or patterns are followed by now.
var errSuperseded = errors.New("superseded")

// Run lists the scopes, one after the other, keeps each up by a stream, and lists
// again where that can't go on, until the context ends, whose error it returns.
// What was kept before Run began is not relied on.
func (p *Picture) Run(ctx context.Context) error {
	if err := p.start(); err != nil {
		return err
	}
	defer p.stop()
	for ctx.Err() == nil {
		p.keep(ctx)
	}
	return ctx.Err()
}

func (p *Picture) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		return ErrRunning
	}
	p.running = true
	var scopes []cluster.Scope
	for _, s := range p.scopes {
		scopes = append(scopes, s.Scope)
	}
	p.begin(scopes)
	return nil
}

// stop leaves a picture that nothing keeps up.
func (p *Picture) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	for _, s := range p.scopes {
		s.down(p.Now())
	}
}

// keep keeps the scopes of one epoch until there is another.
func (p *Picture) keep(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	select {
	case <-ctx.Done():
		return
	case <-p.again:
	}
	p.mu.Lock()
	scopes := p.scopes
	p.mu.Unlock()
	turn := make(chan struct{}, 1) // lists take turns: a page each would be in memory
	for _, s := range scopes {
		all.Go(func() { p.keepScope(ctx, s, turn) })
	}
	select {
	case <-ctx.Done():
	case <-p.again:
		select {
		case p.again <- struct{}{}: // for the next keep
		default:
		}
	}
}

// keepScope lists and watches one scope until the context ends.
func (p *Picture) keepScope(ctx context.Context, s *scope, turn chan struct{}) {
	revision := "" // to go on from; "" if there has to be a list
	for failures := 0; ctx.Err() == nil; failures++ {
		var err error
		if revision == "" {
			revision, err = p.list(ctx, s, turn)
		}
		if err == nil {
			revision, err = p.watch(ctx, s, revision, &failures)
		}
		if ctx.Err() != nil || errors.Is(err, errSuperseded) {
			return
		}
		if err != nil {
			p.Log.Warn("pods are not watched for the moment", "cluster", p.Cluster, "scope", s.String(), "failures", failures+1, "err", err)
		}
		if p.Sleep(ctx, backoff(failures)) != nil {
			return
		}
	}
}

// list lists a scope once the others are done with theirs. Pods are taken one by
// one, over what was known of them; only a list that ended whole takes out what
// it did not show (I8).
func (p *Picture) list(ctx context.Context, s *scope, turn chan struct{}) (revision string, err error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case turn <- struct{}{}:
		defer func() { <-turn }()
	}
	p.mu.Lock()
	p.begun++
	s.list, s.unmatched = p.begun, map[string]error{}
	p.mu.Unlock()
	began := p.Now()
	revision, err = p.Source.Each(ctx, s.Scope, func(pod *podevent.Pod) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.take(s, pod)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case s.epoch != p.epoch:
		return "", errSuperseded
	case err != nil:
		s.listed, s.err = false, err
		s.down(now)
		return "", err
	}
	s.listed, s.listedAt, s.listTook = true, now, now.Sub(began)
	s.heard(now)
	p.lists++
	p.sweep(s)
	return revision, nil
}

// watch follows a scope's stream to its end and returns the revision to go on
// from, "" if there has to be a list. Failures are at an end once it tells
// anything but that it was taken up.
func (p *Picture) watch(ctx context.Context, s *scope, revision string, failures *int) (string, error) {
	err := p.Source.Watch(ctx, s.Scope, revision, func(c cluster.Change) {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.heard(p.Now())
		if c.Kind != cluster.Opened {
			*failures = 0
		}
		switch c.Kind {
		case cluster.Changed:
			p.take(s, c.Pod)
		case cluster.Gone:
			p.gone(s, c.Pod)
		case cluster.Opened, cluster.Bookmark:
		}
		if c.ResourceVersion != "" {
			revision = c.ResourceVersion
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		s.down(p.Now())
		s.err = err
	}
	if errors.Is(err, cluster.ErrExpired) || errors.Is(err, cluster.ErrSilent) {
		revision = ""
	}
	return revision, err
}

// heard notes that the scope is kept up.
func (s *scope) heard(now time.Time) { s.heardAt, s.downSince, s.err = now, time.Time{}, nil }

// down notes that nothing keeps the scope up.
func (s *scope) down(now time.Time) {
	if s.downSince.IsZero() {
		s.downSince = now
	}
}

// backoff is how long to wait after so many failures before.
func backoff(failures int) time.Duration {
	d := min(firstPause<<min(failures, 10), lastPause)
	return d + rand.N(d/2)
}
