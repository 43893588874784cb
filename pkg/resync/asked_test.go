package resync_test

import (
	"testing"
	"time"
)

// TestAskedAfterRule_I8_P043: who asks for a round right after a rule was deleted
// hears of the group that it left.
func TestAskedAfterRule_I8_P043(t *testing.T) {
	story(t, func(w *world) {
		w.serve(3)
		w.start()
		w.rounds(1)
		w.pass(5 * time.Second)
		w.do(func() { delete(w.rules, "web") })
		w.request(`"request":{"id":"r1"}`)
		w.wantTold(1, "round 2 request request=r1")
		w.wantTold(1, "finding web unbound @5s")
		w.rounds(3)
		w.wantTold(1, "rule web [removed]")
	})
}
