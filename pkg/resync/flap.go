package resync

import (
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
)

// Flap damping (P037): whoever undoes our repair again and again is not beaten by
// repairing more often. A person repeats a change by hand once or twice; a second
// tool does it at each of its rounds.
const (
	flapLimit  = 6 // repairs of one key for one pod within the window, one a round
	flapWindow = 10 * time.Minute
	// maxFlaps bounds what is remembered; forgetting costs a repair too many.
	maxFlaps = 10_000
)

// flaps remembers repairs.
type flaps struct {
	now   func() time.Time
	mu    sync.Mutex
	round time.Time // when the round under way began
	at    map[flapKey][]time.Time
}

type flapKey struct {
	group string
	claim.Key
	cluster, uid string // of the pod; a UID is of its cluster alone
	register     bool
}

// begin notes that a round begins.
func (f *flaps) begin(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.round = at
}

// flapping reports whether this repair was made too often lately.
func (f *flaps) flapping(k flapKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.recent(k)) >= flapLimit
}

// made notes a repair. Those of one round are one: a comparison looks again at what
// it did, and somebody else would not have undone it meanwhile.
func (f *flaps) made(k flapKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.at[k]; len(known) > 0 && known[len(known)-1].Equal(f.round) {
		return
	}
	if f.at == nil || len(f.at) >= maxFlaps {
		f.at = map[flapKey][]time.Time{}
	}
	f.at[k] = append(f.recent(k), f.round)
}

func (f *flaps) recent(k flapKey) []time.Time {
	var out []time.Time
	for _, at := range f.at[k] {
		if f.now().Sub(at) < flapWindow {
			out = append(out, at)
		}
	}
	return out
}
