package resync_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/resync"
)

// TestRequestLatency_P092: whoever asks for a round of one group does not wait for
// all the others, however many there are.
func TestRequestLatency_P092(t *testing.T) {
	for _, n := range []int{51, 101, 301} {
		t.Run(fmt.Sprint(n, " groups"), func(t *testing.T) {
			story(t, func(w *world) {
				w.crowd(n-1, true)
				w.local().pod("a ip=10.0.0.1")
				w.web().hold("10.0.0.1")
				w.start()
				for i := range 12 {
					w.pass(time.Duration(i) * 7 * time.Second) // at any time of a round
					asked := time.Now()
					id := fmt.Sprintf("r%d", i)
					w.send(`{"schema":1,"trigger":"request","request":{"id":"` + id + `","groups":["` + arnOf("web") + `"]}}`)
					for len(w.tells("round request groups=1 request="+id+" ")) == 0 && time.Since(asked) < 5*time.Minute {
						w.pass(time.Second)
					}
					if took := time.Since(asked); took > resync.DefaultInterval+15*time.Second { // the first reads 300 rules before
						t.Errorf("request %s was answered after %s", id, took)
					}
				}
			})
		})
	}
}
