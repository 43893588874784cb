package resync_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/resync"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// crowd has n groups g000, g001, …, each with a pod of its own.
func (w *world) crowd(n int, held bool) {
	for i := range n {
		name := fmt.Sprintf("g%03d", i)
		w.bind(name, "app="+name, constants(name))
		ip := fmt.Sprintf("10.5.%d.%d", i/200, 1+i%200)
		w.local().pod(name + " ip=" + ip + " app=" + name)
		if g := w.group(name); held {
			g.hold(ip)
		}
	}
}

// TestQuietRounds_P061: without changes a round costs one look at each group.
func TestQuietRounds_P061_P064(t *testing.T) {
	story(t, func(w *world) {
		w.crowd(20, true)
		w.start()
		w.rounds(1)
		health, list, tags := w.callsOf("health", ""), w.callsOf("list", ""), w.callsOf("tags", "")
		w.rounds(10)
		if n := w.callsOf("health", "") - health; n != 10*21 {
			t.Errorf("%d looks at 21 groups in 10 rounds, want one each", n)
		}
		if n := w.callsOf("list", "") - list; n != 0 {
			t.Errorf("groups were listed %d times, want none within minutes", n)
		}
		if n := w.callsOf("tags", "") - tags; n != 0 {
			t.Errorf("tags were read %d times, though nothing is to be removed", n)
		}
		if n := w.local().readsOf("pod") + w.local().readsOf("ip") + w.local().readsOf("node"); n != 0 {
			t.Errorf("%d point reads", n)
		}
		if n := w.metric("aws_calls_total", "operation", "DescribeTargetHealth", "cause", "schedule"); n != float64(w.callsOf("health", "")) {
			t.Errorf("aws_calls_total = %v, want %d", n, w.callsOf("health", ""))
		}
	})
}

// TestShare_P058_P059: in whatever span of time, calls stay within our share of
// the account's rates, also when 200 groups are to be filled at once; each gets
// its turn, and the waits are counted by operation.
func TestShare_P058_P059_P064(t *testing.T) {
	story(t, func(w *world) {
		w.crowd(200, false)
		w.start()
		w.pass(13 * time.Minute)
		describe, mutate := []time.Time{}, []time.Time{}
		for _, c := range w.calls {
			if c.operation == "register" || c.operation == "deregister" {
				mutate = append(mutate, c.at)
			} else {
				describe = append(describe, c.at)
			}
		}
		wantRate(t, "describing calls", describe, 10*resync.DefaultShare, 40*resync.DefaultShare)
		wantRate(t, "changing calls", mutate, 4*resync.DefaultShare, 20*resync.DefaultShare)
		for name, g := range w.groups {
			if name != "web" && g.holds() == "" {
				t.Errorf("group %s was not filled", name)
			}
		}
		if w.metric("resync_rounds_total") == 0 || len(w.tells("problem")) != 0 {
			t.Errorf("problems: %q", w.tells("problem"))
		}
	})
}

// wantRate checks that between any two calls there are no more than a bucket of
// that burst and rate gives.
func wantRate(t *testing.T, what string, at []time.Time, perSecond, burst float64) {
	t.Helper()
	if len(at) == 0 {
		t.Errorf("no %s", what)
	}
	for i := range at {
		for j := i; j < len(at); j++ {
			span := at[j].Sub(at[i])
			if most := burst + perSecond*span.Seconds() + 1; float64(j-i+1) > most {
				t.Fatalf("%d %s within %s, want at most %.1f", j-i+1, what, span, most)
			}
		}
	}
}

// TestPeriod: 200 groups are each looked at about every 80 s.
func TestPeriod_P058(t *testing.T) {
	story(t, func(w *world) {
		w.crowd(200, true)
		w.start()
		w.pass(13 * time.Minute)
		for name := range w.groups {
			var last time.Time
			looks := 0
			for _, c := range w.calls {
				if c.operation != "health" || c.group != name {
					continue
				}
				if gap := c.at.Sub(last); looks > 0 && gap > 3*time.Minute {
					t.Errorf("group %s was not looked at for %s", name, gap)
				}
				last = c.at
				looks++
			}
			if looks < 7 || looks > 14 {
				t.Errorf("group %s was looked at %d times in 13 minutes, want about 10", name, looks)
			}
		}
	})
}

// TestThrottled_P058: a throttled call is a delay: it is counted, told of, and made
// again.
func TestThrottled_P058_I6(t *testing.T) {
	story(t, func(w *world) {
		w.serve(3)
		w.web().drop("10.0.1.2")
		left := 2
		w.web().onCall = func(_ context.Context, operation string) error {
			if operation == "register" && left > 0 {
				left--
				return targetgroup.ErrThrottled
			}
			return nil
		}
		w.start()
		w.rounds(3)
		w.web().wantHolds("10.0.1.1 10.0.1.2 10.0.1.3")
		w.wantTold(1, "failed web register 10.0.1.2 throttled") // what lasts is told once
		if n := w.metric("registrations_total", "result", "failed"); n != 2 {
			t.Errorf("registrations_total failed = %v, want 2", n)
		}
		w.wantTold(1, "changed web +10.0.1.2 round=3")
		if n := w.metric("aws_calls_total", "operation", "RegisterTargets"); n != 3 {
			t.Errorf("aws_calls_total of RegisterTargets = %v, want 3", n)
		}
	})
}

// TestManyTargets: a change of a thousand targets is five calls, and the next one
// waits until our share has room for it.
func TestManyTargets_P058_P064(t *testing.T) {
	story(t, func(w *world) {
		w.group("api")
		w.bind("api", "app=api", constants("api"))
		for i, ip := range many(1000) {
			w.local().pod(fmt.Sprintf("p%d ip=%s", i, ip))
		}
		w.web().onCall = func(_ context.Context, operation string) error {
			if operation == "register" {
				w.local().pod("x ip=10.0.0.5 app=api")
			}
			return nil
		}
		w.start()
		w.rounds(1)
		w.request(`"request":{"id":"r1"}`)
		w.group("api").wantHolds("10.0.0.5")
		if n := w.metric("aws_calls_total", "operation", "RegisterTargets"); n != 6 {
			t.Errorf("aws_calls_total of RegisterTargets = %v, want 5 and 1", n)
		}
		var at []time.Time
		for _, c := range w.calls {
			if c.operation == "register" {
				at = append(at, c.at)
			}
		}
		if len(at) != 2 || at[1].Sub(at[0]) < time.Second {
			t.Errorf("changes at %v, want the second one a second after", at)
		}
	})
}

// TestRunsOfMany: the end of a run in the middle of a round is nobody's failure.
func TestRunsOfMany_P058(t *testing.T) {
	story(t, func(w *world) {
		w.config.RunLength = 90 * time.Second
		w.r = w.instance()
		w.crowd(200, true)
		w.start()
		w.pass(15 * time.Minute)
		if n := w.metric("groups_unread"); n != 0 {
			t.Errorf("groups_unread = %v, want none", n)
		}
		if n := w.metric("resync_rounds_total", "result", "partial"); n != 0 {
			t.Errorf("%v partial rounds: %q", n, w.tells("problem"))
		}
		if n := w.callsOf("health", ""); n < 1500 {
			t.Errorf("%d looks at 200 groups in 15 minutes, want about 2000", n)
		}
	})
}
