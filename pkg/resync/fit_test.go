package resync

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// longKeys are n keys with all that is long in them.
func longKeys(n int) (out []targetevent.Key) {
	for i := range n {
		out = append(out, targetevent.Key{ID: fmt.Sprintf("10.0.0.%d", i), Pod: strings.Repeat("n", 63) + "/" + strings.Repeat("p", 253), PodUID: strings.Repeat("u", 36),
			Cluster: strings.Repeat("c", 100), Node: strings.Repeat("o", 253), Rule: strings.Repeat("r", 150), Reason: strings.Repeat("w", 3000)})
	}
	return out
}

func size(t *testing.T, ev any) int {
	t.Helper()
	text, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// TestFitRound_I10: the event about a round is sent whatever it found.
func TestFitRound_I10(t *testing.T) {
	ev := targetevent.ResyncCompleted{Found: 1000, Request: &targetevent.Request{ID: "r", Reason: strings.Repeat("y", 100_000)}}
	for _, k := range longKeys(1000) {
		ev.Findings = append(ev.Findings, targetevent.Finding{TargetGroup: strings.Repeat("g", 120), Key: k})
		ev.Problems = append(ev.Problems, k.Reason)
		ev.Request.Groups = append(ev.Request.Groups, strings.Repeat("g", 1000))
	}
	got := fitRound(ev)
	if n := size(t, got); n > reconcile.MaxEventBytes {
		t.Errorf("%d bytes, want at most %d", n, reconcile.MaxEventBytes)
	}
	if len(got.Findings) == 0 || got.Truncated != 1000-len(got.Findings) || got.Found != 1000 || len(got.Problems) != maxProblems {
		t.Errorf("%d findings, %d truncated of %d, %d problems", len(got.Findings), got.Truncated, got.Found, len(got.Problems))
	}
	if len(ev.Request.Reason) != 100_000 || len(ev.Request.Groups[0]) != 1000 {
		t.Error("the request itself was cut")
	}
	small := fitRound(targetevent.ResyncCompleted{Findings: make([]targetevent.Finding, 200)})
	if len(small.Findings) != 200 || small.Truncated != 0 {
		t.Errorf("%d findings left of 200", len(small.Findings))
	}
}

// TestFitChange_I10: so is the event about a rule, with whole counts.
func TestFitChange_I10(t *testing.T) {
	ev := targetevent.BindingChanged{}
	for range 10 {
		ks := longKeys(200)
		ev.Effects = append(ev.Effects, targetevent.Effect{TargetGroup: "g", Gain: 300, Lose: 300, Hold: 300, Gained: ks, Lost: ks, Held: ks})
	}
	got := fitChange(ev)
	if n := size(t, got); n > reconcile.MaxEventBytes || len(got.Effects) != 10 || got.Effects[9].Hold != 300 {
		t.Errorf("%d bytes of %d effects", n, len(got.Effects))
	}
}
