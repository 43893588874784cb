package resync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
)

// TestSecondFamily_I2: the API server can't be asked who has a pod's second
// address; a target goes only after the pods of the group's rules were listed.
func TestSecondFamily_I2(t *testing.T) {
	dual := func(w *world) {
		w.web().family = claim.IPv6
		w.local().pod("a ip=10.0.0.1,fd00::1", "b ip=10.0.0.2,fd00::2", "c ip=10.0.0.3,fd00::3")
		w.web().hold("[fd00::1]:8080 [fd00::2]:8080")
		w.start()
		w.rounds(2)
		w.web().wantHolds("[fd00::1] [fd00::2] [fd00::3]")
	}
	t.Run("a pod ends", func(t *testing.T) {
		story(t, func(w *world) {
			dual(w)
			w.local().terminate("b")
			w.rounds(1)
			w.web().wantHolds("[fd00::1] [fd00::3]")
			w.wantTold(1, "changed web -fd00::2 uid=b witness=pod-ended")
			if w.local().readsOf("pods") == 0 {
				t.Error("the pods of the rule were not listed")
			}
		})
	})
	t.Run("another takes the address meanwhile", func(t *testing.T) {
		story(t, func(w *world) {
			dual(w)
			w.local().terminate("b")
			w.local().gone("b")
			w.pass(time.Second)
			w.do(func() {
				w.local().onRead = func(what string) error {
					if strings.HasPrefix(what, "ip ") {
						w.do(func() { w.local().onRead = nil })
						w.local().pod("d ip=10.0.0.4,fd00::2")
					}
					return nil
				}
			})
			w.rounds(2)
			w.web().wantHolds("[fd00::1] [fd00::2] [fd00::3]")
			w.wantTold(0, "changed web -")
		})
	})
}

// TestHostNetwork_I2: an address that pods share stays as long as one of them
// claims it.
func TestHostNetwork_I2(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1 host", "b ip=10.0.0.1 host uid=b", "c ip=10.0.0.2 host node=node-b", "agent ip=10.0.0.2 host app=agent node=node-b", "d ip=10.0.0.3")
		w.start()
		w.rounds(2)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3")
		w.local().terminate("a", "c")
		w.rounds(2)
		w.web().wantHolds("10.0.0.1 10.0.0.3")
		w.wantTold(1, "changed web -10.0.0.2 uid=c witness=pod-ended")
	})
}
