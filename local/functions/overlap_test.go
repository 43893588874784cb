package functions

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// resyncLike is how resync is set up: one run at a time, kept going by a
// schedule, whose events are given up before they pile up.
var resyncLike = Function{Timeout: 15 * time.Minute, MaxConcurrency: 1, AsyncRetries: NoRetries, AsyncMaxAge: time.Minute}

// slowClock is a clock whose sleepers wait until it is told to go on.
type slowClock struct {
	clock
	waits chan time.Duration // each Sleep, once it has begun
	goOn  chan struct{}      // ends one Sleep
}

func newSlowClock() *slowClock {
	return &slowClock{clock: clock{now: time.Unix(1_800_000_000, 0)}, waits: make(chan time.Duration), goOn: make(chan struct{})}
}

func (c *slowClock) sleep(ctx context.Context, d time.Duration) error {
	select {
	case c.waits <- d:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.goOn:
		c.advance(d)
	case <-ctx.Done():
	}
	return ctx.Err()
}

// An event that finds the only instance busy comes again after 1 s, 2 s, ..., and
// is dropped when the next wait would make it older than a minute.
func TestEventsDuringARunWaitAndAreDropped(t *testing.T) {
	f := &fleet{endless: true}
	c := &clock{now: time.Unix(1_800_000_000, 0)}
	var mu sync.Mutex
	var drops []Dropped
	r := faked(t, f, Config{Now: c.Now, Sleep: c.sleep, OnDropped: func(d Dropped) {
		mu.Lock()
		defer mu.Unlock()
		drops = append(drops, d)
	}}, resyncLike)
	if _, err := r.InvokeAsync(t.Context(), "f", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run goes on", func() bool { return r.Stats("f").Concurrent == 1 })
	id, err := r.InvokeAsync(t.Context(), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second event is dropped", func() bool { return r.Stats("f").Dropped == 1 })
	if got, want := strings.Trim(fmt.Sprint(c.sleeps), "[]"), "1s 2s 4s 8s 16s"; got != want {
		t.Errorf("waited %s, want %s", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(drops) != 1 || drops[0].RequestID != id || drops[0].Reason != "EventAgeExceeded" || drops[0].Tries != 0 {
		t.Errorf("dropped %+v, want the second event for its age, never tried", drops)
	}
	if s := r.Stats("f"); s.MaxConcurrent != 1 || s.ColdStarts != 1 {
		t.Errorf("counts %+v, want one run", s)
	}
}

// A killed run ends its invocation, is not repeated, and lets the event in that
// waits.
func TestEventThatWaitsFollowsAKilledRun(t *testing.T) {
	f := &fleet{endless: true}
	c := newSlowClock()
	drops := make(chan Dropped, 1)
	r := faked(t, f, Config{Now: c.Now, Sleep: c.sleep, OnDropped: func(d Dropped) { drops <- d }}, resyncLike)
	if n := r.Kill("f"); n != 0 {
		t.Errorf("Kill before any run: %d killed, want none", n)
	}
	first, err := r.InvokeAsync(t.Context(), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run goes on", func() bool { return r.Stats("f").Concurrent == 1 })
	if _, err := r.InvokeAsync(t.Context(), "f", nil); err != nil {
		t.Fatal(err)
	}
	if wait := <-c.waits; wait != time.Second {
		t.Fatalf("the throttled event waits %s, want 1s", wait)
	}
	if n := r.Kill("f"); n != 1 {
		t.Fatalf("%d instances killed, want 1", n)
	}
	if d := <-drops; d.RequestID != first || d.Last.ErrorType != errorTypeExit || d.Reason != "RetriesExhausted" {
		t.Errorf("dropped %+v, want the first event after its only try", d)
	}
	eventually(t, "the killed run has ended", func() bool { return r.Stats("f").Concurrent == 0 })
	c.goOn <- struct{}{}
	eventually(t, "the next run goes on", func() bool { return r.Stats("f").Concurrent == 1 })
	if s := r.Stats("f"); s.ColdStarts != 2 || s.Crashes != 1 || s.Throttles != 1 || f.get(0).is() != "ended" {
		t.Errorf("counts %+v, first instance %s", s, f.get(0).is())
	}
}
