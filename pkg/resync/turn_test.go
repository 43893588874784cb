package resync_test

import (
	"context"
	"testing"
	"time"
)

// TestSlowCall_I3: a removal that waited behind a slow registration is judged once
// more when its turn comes.
func TestSlowCall_I3(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(w *world)
		want      string
		removed   int
	}{
		"a new pod has the address": {func(w *world) { w.local().pod("n ip=10.0.0.4") }, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4", 0},
		"the group is frozen": {func(w *world) {
			g := w.web()
			w.do(func() { g.tags["elbridge:freeze"] = "by kim" })
		}, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4", 0},
		"nothing happened": {func(*world) {}, "10.0.0.1 10.0.0.2 10.0.0.3", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
				w.web().hold("10.0.0.2 10.0.0.3 10.0.0.4=unhealthy")
				w.web().onCall = func(_ context.Context, operation string) error {
					if operation == "register" {
						time.Sleep(30 * time.Second)
						tt.meanwhile(w)
					}
					return nil
				}
				w.start()
				w.rounds(3)
				w.web().wantHolds(tt.want)
				w.wantTold(tt.removed, "changed web -")
			})
		})
	}
}

// TestEmptiedBeside_I8: an emptied rule speaks for the pods that it selects, and
// not for those of a rule that is gone.
func TestEmptiedBeside_I8(t *testing.T) {
	story(t, func(w *world) {
		w.bind("web", "app=old", constants("web", `"empty":true`))
		w.bind("new", "app=web", constants("web"))
		all := w.serve(10)
		w.local().pod("old ip=10.0.7.7 app=old")
		w.web().hold("10.0.7.7")
		w.start()
		w.rounds(2)
		w.web().wantHolds(all)
		w.do(func() { delete(w.rules, "new") })
		w.rounds(30)
		w.web().wantHolds(all)
		w.wantSome("held web")
	})
}

// TestAnothersTarget_I18_P046: the object of a pod that failed long ago does not
// take somebody else's target out of a group that is not ours.
func TestAnothersTarget_I18_P046(t *testing.T) {
	story(t, func(w *world) {
		w.rebind(`"podCIDRs":["10.0.0.0/16"]`)
		g := w.web()
		w.do(func() { delete(g.tags, "elbridge:owner") })
		all := w.serve(5)
		w.local().pod("failed ip=10.0.7.7 ended")
		w.web().hold("10.0.7.7")
		w.start()
		w.rounds(5)
		w.web().wantHolds(all + " 10.0.7.7")
		w.local().pod("p0 ip=10.0.1.1 ended") // this one before our eyes
		w.rounds(2)
		w.web().wantHolds("10.0.1.2 10.0.1.3 10.0.1.4 10.0.1.5 10.0.7.7")
	})
}

// TestDeselectedOnTheHost_I9: pods on the host's network that lost their own labels
// are witnessed like others, however many they are.
func TestDeselectedOnTheHost_I9(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1 host", "b ip=10.0.0.2 host", "c ip=10.0.0.3 host")
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3")
		w.start()
		w.rounds(1)
		w.local().pod("a ip=10.0.0.1 host app=other", "b ip=10.0.0.2 host app=other")
		w.rounds(2)
		w.web().wantHolds("10.0.0.3")
		w.wantTold(2, "changed web - witness=pod-deselected")
	})
}
