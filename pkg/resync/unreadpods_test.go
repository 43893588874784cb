package resync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// TestUnreadPods_I10: a thousand pods that can't be read are a thousand errors, and
// one event that tells of them.
func TestUnreadPods_I1_I10(t *testing.T) {
	story(t, func(w *world) {
		for i, ip := range many(1000) {
			w.local().pod(fmt.Sprintf("p%d ip=%s", i, ip))
		}
		w.local().onRead = func(what string) error { return fmt.Errorf("%s: %s", what, strings.Repeat("no answer ", 100)) }
		w.start()
		w.rounds(2)
		w.web().wantHolds("")
		w.wantSome("round found=1000 repaired=0 held=0 failed=1000")
		w.wantSome("problem target group no answer")
		w.do(func() {
			for _, e := range w.events {
				if e.Size() > reconcile.MaxEventBytes {
					t.Errorf("%s has %d bytes", e.DetailType, e.Size())
				}
				if e.DetailType == targetevent.DetailTypeResyncCompleted {
					if ev := decode[targetevent.ResyncCompleted](w, e.Detail); ev.Truncated+len(ev.Findings) != 1000 {
						t.Errorf("%d findings and %d that are left out", len(ev.Findings), ev.Truncated)
					}
				}
			}
		})
	})
}
