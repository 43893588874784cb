package resync_test

import (
	"fmt"
	"testing"

	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// TestUnboundYoung_I8: a group that is younger than the last listing of all groups
// loses its rule: it is found at once all the same.
func TestUnboundYoung_I8(t *testing.T) {
	story(t, func(w *world) {
		w.serve(2)
		w.start()
		w.rounds(2)
		w.local().pod("y ip=10.0.2.1 app=young")
		w.group("young").hold("10.0.2.1")
		w.bind("young", "app=young", constants("young"))
		w.rounds(2)
		w.do(func() { delete(w.rules, "young") })
		w.rounds(1)
		w.wantTold(1, "finding young unbound reported")
		w.group("young").wantHolds("10.0.2.1")
	})
}

// TestUnboundMany_P058: the look for groups without a rule takes a few calls of each
// round, whatever there is to look at, and finds a group that lost its rule at once.
func TestUnboundMany_P058_I8(t *testing.T) {
	story(t, func(w *world) {
		w.serve(2)
		for i, ip := range many(200) {
			g := w.group(fmt.Sprintf("g%03d", i))
			if i >= 190 {
				g.hold(ip)
			}
		}
		w.group("young").hold("10.0.2.1")
		w.bind("young", "app=young", constants("young"))
		w.local().pod("y ip=10.0.2.1 app=young")
		w.start()
		w.rounds(2)
		for range 3 {
			before := w.callsOf("tags", "") + w.callsOf("health", "")
			w.rounds(1)
			if n := w.callsOf("tags", "") + w.callsOf("health", "") - before; n > 2+1+4 {
				t.Errorf("%d calls in a round, want two looks, one for tags and four for targets", n)
			}
		}
		w.do(func() { delete(w.rules, "young") })
		w.rounds(1)
		w.wantSome("finding young unbound reported")
		w.rounds(80)
		for i := 190; i < 200; i++ {
			w.wantSome(fmt.Sprintf("finding g%03d unbound reported", i))
		}
		w.wantTold(0, "finding g000")
	})
	t.Run("an error ends the look, and the next is not made at once", func(t *testing.T) {
		story(t, func(w *world) {
			w.serve(2)
			w.do(func() { w.describeErr = targetgroup.ErrThrottled })
			w.group("other")
			w.start()
			w.rounds(10)
			if n := w.callsOf("tags", ""); n != 1 {
				t.Errorf("%d calls for tags in ten rounds, want one", n)
			}
			w.wantTold(1, "problem looking for groups")
		})
	})
}
