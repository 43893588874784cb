package resync_test

import (
	"testing"
	"time"
)

// TestRulesAgain_I3: a round waits for hints after it has read the rules. A pod
// that moves meanwhile to a rule that came after that stays: before a removal the
// rules are read again.
func TestRulesAgain_I3(t *testing.T) {
	story(t, func(w *world) {
		all := w.serve(3)
		w.start()
		w.rounds(2)
		w.pass(interval - time.Second)
		w.local().relabel("next", "p2") // a second before the round: it waits two for hints
		w.pass(2 * time.Second)
		w.bind("next", "app=next", constants("web"))
		w.rounds(1)
		w.wantSome("changed since this round began")
		w.rounds(2)
		w.web().wantHolds(all)
		w.wantTold(0, "changed web")
	})
}
