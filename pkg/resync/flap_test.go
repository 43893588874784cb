package resync

import (
	"testing"
	"time"
)

// TestFlaps_P037: repairs count once a round, each pod of each cluster for itself.
func TestFlaps_P037(t *testing.T) {
	at := time.Unix(10_000, 0)
	f := flaps{now: func() time.Time { return at }}
	k, other := flapKey{cluster: "blue", uid: "u"}, flapKey{cluster: "green", uid: "u"}
	for n := range flapLimit {
		if f.flapping(k) {
			t.Fatalf("flapping after %d rounds", n)
		}
		f.begin(at)
		for range maxPasses {
			f.made(k)
		}
		at = at.Add(20 * time.Second)
	}
	if !f.flapping(k) || f.flapping(other) {
		t.Errorf("flapping: %t, another cluster's pod of the same UID: %t", f.flapping(k), f.flapping(other))
	}
	if at = at.Add(flapWindow); f.flapping(k) {
		t.Error("flapping for ever")
	}
}
