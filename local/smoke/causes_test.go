package smoke

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/stack"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// put is the record of a PutEvents call with one event of each cause.
func put(t *testing.T, role string, kinds ...targetevent.CauseKind) core.Record {
	t.Helper()
	type entry struct{ Detail, DetailType, Source string }
	var in struct{ Entries []entry }
	for _, kind := range kinds {
		detail, err := json.Marshal(targetevent.TargetsChanged{Schema: targetevent.Schema, Cause: targetevent.Cause{Kind: kind, RunID: "run"}})
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, entry{string(detail), targetevent.DetailTypeTargetsChanged, targetevent.Source})
	}
	params, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return core.Record{Operation: "PutEvents", Principal: "arn:aws:sts::1:assumed-role/" + role + "/x", Params: string(params)}
}

func TestCausesAreCounted(t *testing.T) {
	register := core.Record{Operation: "RegisterTargets", Principal: "arn:aws:sts::1:assumed-role/elbridge-resync/x"}
	refused, byHand, cut := register, register, put(t, stack.ResyncRole, targetevent.Drift, targetevent.Resync)
	refused.Code = "Throttling"
	byHand.Principal = "arn:aws:sts::1:assumed-role/elbridge-admin/x"
	cut.Params = cut.Params[:strings.LastIndex(cut.Params, "kind")]
	for name, c := range map[string]struct {
		records       []core.Record
		kinds         map[string]int
		changed, told bool
	}{
		"nothing":              {kinds: map[string]int{}},
		"two causes":           {[]core.Record{register, put(t, stack.RegistrarRole, "hint", "hint"), put(t, stack.ResyncRole, "drift")}, map[string]int{"hint": 2, "drift": 1}, true, true},
		"a change untold":      {[]core.Record{register}, map[string]int{}, true, false},
		"a call refused":       {[]core.Record{refused}, map[string]int{}, false, false},
		"somebody else's call": {[]core.Record{byHand, put(t, "elbridge-admin", "hint")}, map[string]int{}, false, false},
		"a record that is cut": {[]core.Record{cut}, map[string]int{"drift": 1}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, changed, told := count(c.records)
			if !maps.Equal(kinds, c.kinds) || changed != c.changed || told != c.told {
				t.Errorf("count = %v, %t, %t, want %v, %t, %t", kinds, changed, told, c.kinds, c.changed, c.told)
			}
		})
	}
}

func TestRegistrarThatHidesIsFound(t *testing.T) {
	hint, drift, quiet := map[string]int{"hint": 1, "drift": 3}, map[string]int{"drift": 1}, map[string]int(nil)
	for name, c := range map[string]struct {
		way   stack.Way
		steps []map[string]int
		bad   bool
	}{
		"alive":                {stack.WayBoth, []map[string]int{hint, drift, hint, quiet}, false},
		"dead":                 {stack.WayBoth, []map[string]int{drift, drift, quiet}, true},
		"once alive":           {stack.WayBoth, []map[string]int{hint, drift, drift}, true},
		"not to be alive":      {stack.WayResync, []map[string]int{drift}, false},
		"nothing has happened": {stack.WayBoth, []map[string]int{quiet}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var results []Result
			for _, causes := range c.steps {
				results = append(results, Result{Causes: causes})
			}
			if err := (&Runner{Way: c.way}).registrarActed(results); (err != nil) != c.bad {
				t.Errorf("registrarActed = %v, want an error: %t", err, c.bad)
			}
		})
	}
}

func TestStepsLeftOutExist(t *testing.T) {
	for name, ways := range notInThisWay {
		found := false
		for _, s := range steps {
			found = found || s.Name == name
		}
		if !found {
			t.Errorf("notInThisWay names %q, which is no step", name)
		}
		for way, why := range ways {
			if allowed[way] == nil || why == "" {
				t.Errorf("step %q in way %q for %q: want a way and a reason", name, way, why)
			}
		}
	}
}
