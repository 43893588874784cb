package resync_test

import "testing"

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
