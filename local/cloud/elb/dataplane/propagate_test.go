package dataplane_test

import (
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/dataplane"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// delayed is a data plane whose clock stands still.
func delayed(t *testing.T, d time.Duration) (*front, *core.FakeClock) {
	clock := core.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return newFront(t, route.Application, func(c *dataplane.Config) { c.Clock, c.Propagation = clock, func() time.Duration { return d } }), clock
}

// sleepers waits until somebody sleeps on the clock.
func sleepers(t *testing.T, clock *core.FakeClock) {
	t.Helper()
	await(t, "the next table is waited for", func() bool { n, _ := clock.Timers(); return n > 0 })
}

func TestPropagation(t *testing.T) {
	f, clock := delayed(t, 10*time.Second)
	a, b := web(t, "a", nil), web(t, "b", nil)
	f.Announce(f.table("g=" + a))
	sleepers(t, clock)
	clock.Step(9 * time.Second)
	if got := f.get("/"); got != "503 elb" {
		t.Fatalf("9 s after the first table: %s, want 503 elb", got)
	}
	f.Announce(f.table("g=" + a + "-," + b)) // a is deregistered
	clock.Step(time.Second)
	await(t, "the first table holds", func() bool { return f.get("/") == "200 a" })
	sleepers(t, clock)
	clock.Step(8*time.Second + 999*time.Millisecond)
	for range 10 {
		if got := f.get("/"); got != "200 a" {
			t.Fatalf("just before the delay is over: %s, want still 200 a", got)
		}
	}
	clock.Step(time.Millisecond)
	await(t, "the second table holds", func() bool { return f.get("/") == "200 b" })
}

func TestPropagationJoinsWhatIsClose(t *testing.T) {
	f, clock := delayed(t, 10*time.Second)
	a, b := web(t, "a", nil), web(t, "b", nil)
	for range 1000 { // two seconds of changes, one each 2 ms: a queue of a few
		f.Announce(f.table("g=" + a))
		clock.Step(2 * time.Millisecond)
	}
	f.Announce(f.table("g=" + b))
	last := clock.Now().Add(10 * time.Second)
	for clock.Now().Before(last) {
		sleepers(t, clock)
		clock.Step(100 * time.Millisecond)
	}
	await(t, "the last table holds", func() bool { return f.get("/") == "200 b" })
}

func TestHealthNeedsNoPropagation(t *testing.T) {
	f, clock := delayed(t, 10*time.Second)
	a, b := web(t, "a", nil), web(t, "b", nil)
	f.Announce(f.table("g=" + a + "," + b))
	sleepers(t, clock)
	clock.Step(10 * time.Second)
	await(t, "the table holds", func() bool { return f.get("/") != "503 elb" })
	f.health[a].Set(false)
	for range 10 {
		if got := f.get("/"); got != "200 b" {
			t.Fatalf("got %s, want 200 b: a is unhealthy", got)
		}
	}
}
