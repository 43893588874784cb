package binding_test

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
)

// TestModeOf_I19 writes a group's bindings as "rule" or "rule?", observed.
func TestModeOf_I19(t *testing.T) {
	tests := map[string]struct {
		bindings, rule string
		want           binding.Mode
	}{
		"manages":                         {"a b?", "a", binding.Manage},
		"is observed":                     {"a b?", "b", binding.Observe},
		"one of its two targets is":       {"a a?", "a", binding.Observe},
		"whichever comes first":           {"a? a", "a", binding.Observe},
		"unknown, all manage":             {"a b", "c", binding.Manage},
		"unknown, one is observed":        {"a b?", "c", binding.Observe},
		"none is behind, one is observed": {"a b?", "", binding.Observe},
		"no bindings":                     {"", "a", binding.Manage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var bs []binding.Binding
			for _, f := range strings.Fields(tt.bindings) {
				rule, observed := strings.CutSuffix(f, "?")
				b := binding.Binding{Rule: rule, Mode: binding.Manage}
				if observed {
					b.Mode = binding.Observe
				}
				bs = append(bs, b)
			}
			if got := binding.ModeOf(bs, tt.rule); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestSameConstants(t *testing.T) {
	a, err := binding.ParseConstants([]byte(`{"targetGroup":{"tags":{"app":"web"}},"port":8080,"podCIDRs":["10.0.0.0/16"]}`))
	if err != nil {
		t.Fatal(err)
	}
	b := a
	b.Rule, b.TargetID, b.Enabled = "arn:rule", "registrar", true
	if !binding.SameConstants(a, b) || a.Rule != "" {
		t.Errorf("%+v and %+v of another rule say the same", a, b)
	}
	b.Port.Number = 8081
	if binding.SameConstants(a, b) {
		t.Error("another port is the same")
	}
}
