package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

func TestRecorderKeepsTheLast(t *testing.T) {
	t.Parallel()
	r := core.NewRecorder(3)
	for i := range 7 {
		r.Add(core.Record{Operation: fmt.Sprint(i)})
	}
	show := func(since int64) (s string) {
		for _, rec := range r.Since(since) {
			s += fmt.Sprintf("%d:%s ", rec.Sequence, rec.Operation)
		}
		return s
	}
	for since, want := range map[int64]string{0: "4:4 5:5 6:6 ", 5: "5:5 6:6 ", 7: "", 99: ""} {
		if got := show(since); got != want {
			t.Errorf("since %d: %q, want %q", since, got, want)
		}
	}
}

func TestRecorderDoesNotWaitForWatchers(t *testing.T) {
	t.Parallel()
	r := core.NewRecorder(10)
	ctx, cancel := context.WithCancel(t.Context())
	_, watch := r.Watch(ctx, 0)
	for range 5000 { // more than a watcher's buffer
		r.Add(core.Record{})
	}
	cancel()
	n := 0
	for range watch { // ends, since the channel is closed
		n++
	}
	if n == 0 || n >= 5000 {
		t.Errorf("the watcher saw %d records, want some and not all", n)
	}
}

func TestFaultsEnd(t *testing.T) {
	t.Parallel()
	clock := core.NewFakeClock(time.Unix(0, 0))
	s, err := core.NewServer(core.Options{Clock: clock, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	hits := func(f core.Fault, calls int, between time.Duration) (n int) {
		t.Helper()
		s.Faults.Clear()
		if _, err := s.Faults.Add(f); err != nil {
			t.Fatal(err)
		}
		for range calls {
			if s.Consult(s.NewInternal(core.Scope{}, "events", "Deliver", "", "")).Err != nil {
				n++
			}
			clock.Step(between)
		}
		return n
	}
	if n := hits(core.Fault{Kind: core.FaultError, Times: 3}, 10, 0); n != 3 || len(s.Faults.List()) != 0 {
		t.Errorf("times 3: hit %d, %d left", n, len(s.Faults.List()))
	}
	if n := hits(core.Fault{Kind: core.FaultError, For: core.Duration(4 * time.Second)}, 10, time.Second); n != 5 {
		t.Errorf("for 4 s: hit %d calls a second apart, want 5", n)
	}
	if n := hits(core.Fault{Kind: core.FaultError, Rate: 0.3}, 1000, 0); n < 200 || n > 400 {
		t.Errorf("rate 0.3: hit %d of 1000", n)
	}
	if n := hits(core.Fault{Kind: core.FaultError, Operation: "Put*"}, 10, 0); n != 0 {
		t.Errorf("another operation: hit %d", n)
	}
}
