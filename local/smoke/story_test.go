package smoke

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/stack"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

func TestBatches(t *testing.T) {
	for text, want := range map[string]string{
		"a":           "[a]",
		"a b":         "[a] [b]",
		"a b+ c+ d":   "[a] [b c] [d]",
		"a+ b+ c d+":  "[a b] [c] [d]",
		"a b+ c d+ e": "[a] [b] [c] [d] [e]",
	} {
		var all []Step
		for _, name := range strings.Fields(text) {
			name, beside := strings.CutSuffix(name, "+")
			all = append(all, Step{Name: name, Beside: beside})
		}
		var got []string
		for _, some := range batches(all) {
			var names []string
			for _, s := range some {
				names = append(names, s.Name)
			}
			got = append(got, fmt.Sprint(names))
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("batches(%s) = %s, want %s", text, g, want)
		}
	}
}

func TestCauseIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		cause targetevent.Cause
		of    targetevent.Key
		want  string // "": an error
	}{
		"hint":                          {targetevent.Cause{Kind: targetevent.Hint, EventID: "e"}, targetevent.Key{Reason: "IPAssigned"}, "hint IPAssigned"},
		"several hints":                 {targetevent.Cause{Kind: targetevent.Hint}, targetevent.Key{EventID: "e", Reason: "Ready"}, "hint Ready"},
		"hint without its event":        {targetevent.Cause{Kind: targetevent.Hint}, targetevent.Key{Reason: "Ready"}, ""},
		"drift":                         {targetevent.Cause{Kind: targetevent.Drift, RunID: "r", Round: 3, Drift: "extra"}, targetevent.Key{}, "drift extra, round 3"},
		"several drifts":                {targetevent.Cause{Kind: targetevent.Drift, RunID: "r", Round: 3}, targetevent.Key{Reason: "missing"}, "drift missing, round 3"},
		"drift without a run":           {targetevent.Cause{Kind: targetevent.Drift, Round: 3, Drift: "extra"}, targetevent.Key{}, ""},
		"drift without a round":         {targetevent.Cause{Kind: targetevent.Drift, RunID: "r", Drift: "extra"}, targetevent.Key{}, ""},
		"drift that does not say which": {targetevent.Cause{Kind: targetevent.Drift, RunID: "r", Round: 3}, targetevent.Key{}, ""},
		"nothing":                       {},
	} {
		if got, err := named(tt.cause, tt.of); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

// TestStepsThatNoEventTellsOf: they don't count against the registrar.
func TestStepsThatNoEventTellsOf(t *testing.T) {
	r := &Runner{Way: stack.WayBoth}
	drift := Result{Causes: map[string]int{"drift": 1}}
	if err := r.registrarActed([]Result{drift}); err == nil {
		t.Error("a step with hints that only resync repaired was taken for a living registrar")
	}
	drift.silent = true
	if err := r.registrarActed([]Result{drift}); err != nil {
		t.Errorf("a step without hints: %v", err)
	}
}
