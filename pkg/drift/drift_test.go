package drift_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/plan"
)

func key(text string) claim.Key {
	id, port := text, int32(8080)
	if n, err := fmt.Sscanf(text, "%1s:%d", &id, &port); err != nil || n != 2 {
		id, port = text, 8080
	}
	return claim.Key{ID: id, Port: port}
}

// TestClassify writes claims as "a b:81", the group as "a=healthy", with @zone
// for a zone and ! for ELB's reason "not in use".
func TestClassify_I5(t *testing.T) {
	lim := plan.Limits{Complete: true, Owned: true, MaxRemovalPercent: 20, MinTargets: 1}
	tests := map[string]struct {
		claims, current, emptied string
		zone                     string // of the binding
		want                     string
	}{
		"nothing":                             {"a", "a=healthy", "", "", ""},
		"missing":                             {"a b", "a=healthy", "", "", "b:missing:register"},
		"draining, but wanted":                {"a", "a=draining", "", "", "a:draining-wanted:register"},
		"extra":                               {"a b", "a=healthy b=healthy c=healthy", "", "", "c:extra:deregister"},
		"extra, held":                         {"a", "a=healthy b=healthy c=healthy", "", "", "b:extra:hold c:extra:hold"},
		"unhealthy and unclaimed":             {"a", "a=healthy b=unhealthy", "", "", "b:unhealthy-unclaimed:deregister"},
		"wrong port, the right one comes too": {"a:81 b", "a=healthy b=healthy", "", "", "a:missing:register a:wrong-port:deregister"},
		"emptied, a step":                     {"", "a=healthy b=healthy", "a b", "", "a:emptied:deregister b:emptied:wait"},
		"wrong zone":                          {"a", "a=healthy@eu-west-1a", "", "eu-west-1b", "a:wrong-zone:report"},
		"a zone where all is asked for":       {"a", "a=healthy@eu-west-1a", "", "all", "a:wrong-zone:report"},
		"the zone asked for":                  {"a", "a=healthy@all", "", "all", ""},
		"no zone asked for":                   {"a", "a=healthy@all", "", "auto", ""},
		"I7 inside the VPC no zone is sent":   {"a", "a=healthy", "", "all", ""},
		"its zone is off":                     {"a b", "a=healthy b=unused!", "", "", "b:zone-off:report"},
		"no listener":                         {"a b", "a=unused! b=unused!", "", "", ":no-listener:report"},
		"no listener, one drains":             {"a", "a=unused! b=draining", "", "", ":no-listener:report"},
		"unused for another reason":           {"a b", "a=unused b=unused", "", "", ""},
		"an empty group":                      {"", "", "", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := drift.Group{Current: map[claim.Key]plan.Target{}, Zones: map[string]string{"r": tt.zone}}
			for _, f := range strings.Fields(tt.claims) {
				g.Claims = append(g.Claims, claim.Claim{Key: key(f), Rule: "r"})
			}
			unclaimed := map[claim.Key]plan.Evidence{}
			for _, f := range strings.Fields(tt.current) {
				id, state, _ := strings.Cut(f, "=")
				state, zone, _ := strings.Cut(state, "@")
				state, off := strings.CutSuffix(state, "!")
				target := plan.Target{Health: plan.Health(state), Zone: zone}
				if off {
					target.Reason = "Target.NotInUse"
				}
				g.Current[key(id)] = target
				unclaimed[key(id)] = plan.Evidence{}
			}
			for _, f := range strings.Fields(tt.emptied) {
				unclaimed[key(f)] = plan.Evidence{Witness: plan.Emptied}
			}
			var got []string
			for _, f := range drift.Classify(plan.Diff(g.Claims, unclaimed, g.Current, lim), g) {
				got = append(got, fmt.Sprintf("%s:%s:%s", f.ID, f.Kind, f.Act))
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("found %q, want %q", text, tt.want)
			}
		})
	}
}
