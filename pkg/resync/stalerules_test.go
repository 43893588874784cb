package resync_test

import (
	"errors"
	"testing"
)

// TestRulesUnread_I3_I8: while the rules can't be read, those of a moment ago serve
// registrations, for a minute, and no removal.
func TestRulesUnread_I3_I8(t *testing.T) {
	story(t, func(w *world) {
		all := w.serve(10)
		w.start()
		w.rounds(1)
		w.do(func() { w.rulesErr = errors.New("boom") })
		w.web().drop("10.0.1.1")
		w.web().hold("10.0.9.9=unhealthy")
		w.rounds(2)
		w.web().wantHolds(all + " 10.0.9.9")
		w.wantSome("problem the rules were not read: nothing is removed boom")
		w.rounds(3) // now they are old
		w.web().drop("10.0.1.1")
		w.rounds(3)
		w.wantSome("problem the rules were not read: nothing is compared boom")
		w.wantTold(0, "changed web -")
		w.do(func() { w.rulesErr = nil })
		w.rounds(2)
		w.web().wantHolds(all)
	})
}
