package resync_test

import (
	"testing"
	"time"
)

// TestSlowList_P092: groups of a cluster that takes long to be listed wait for it, up
// to a limit; others, and who asks for one of them, don't.
func TestSlowList_P092_I8(t *testing.T) {
	story(t, func(w *world) {
		blue := w.two()
		w.web().hold("10.0.0.1 10.1.0.1 10.9.9.9=unhealthy")
		slow := time.Minute
		blue.onList = func(int) error { time.Sleep(slow); return nil } // for each of two pods
		w.start()
		w.pass(5 * time.Second)
		w.group("api").wantHolds("10.0.0.5")
		if w.callsOf("health", "web") > 0 {
			t.Error("web was compared before its cluster's pods were known")
		}
		w.pass(13 * time.Second)
		w.web().wantHolds("10.0.0.1 10.1.0.1 10.9.9.9")
		if w.callsOf("health", "web") == 0 {
			t.Error("web still waits")
		}
		asked := time.Now()
		w.send(`{"schema":1,"trigger":"request","request":{"id":"r1","groups":["` + arnOf("api") + `"]}}`)
		for len(w.tells("round request groups=1")) == 0 && time.Since(asked) < time.Minute {
			w.pass(100 * time.Millisecond)
		}
		if took := time.Since(asked); took > 3*time.Second {
			t.Errorf("who asked for api waited %s", took)
		}
		w.rounds(12)
		w.web().wantHolds("10.0.0.1 10.1.0.1 10.1.0.2")
	})
}
