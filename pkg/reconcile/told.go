package reconcile

import (
	"maps"
	"sync"
	"time"
)

// WitnessWindow is how long a removal may be held before people are asked: a
// witness appears within it, or the claims return (I9).
const WitnessWindow = 3 * time.Minute

// told remembers what was told of, so that events come once however often the
// same is met. An instance that forgets tells once more.
type told struct {
	mu sync.Mutex
	m  map[string]telling
}

type telling struct{ since, last time.Time } // first and last met

// once reports whether something was not told of within the witness window, and
// notes that it is told of now.
func (t *told) once(id string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.m[id]; known && now.Sub(e.since) < WitnessWindow {
		return false
	}
	t.put(id, telling{since: now, last: now})
	return true
}

func (t *told) put(id string, e telling) {
	if _, known := t.m[id]; !known && len(t.m) >= maxRemembered {
		maps.DeleteFunc(t.m, func(_ string, old telling) bool { return e.last.Sub(old.last) >= WitnessWindow })
		if len(t.m) >= maxRemembered {
			clear(t.m)
		}
	}
	if t.m == nil {
		t.m = map[string]telling{}
	}
	t.m[id] = e
}
