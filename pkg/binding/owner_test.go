package binding_test

import (
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
)

func TestOwns_I18_P044(t *testing.T) {
	const (
		bus   = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
		group = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"
		far   = "arn:aws:elasticloadbalancing:eu-west-1:444455556666:targetgroup/web/0123456789abcdef"
	)
	for _, tt := range []struct {
		tag, bus, group string
		want            bool
	}{
		{bus, bus, group, true}, {bus, bus, far, true}, {"elbridge", bus, group, true},
		{"elbridge", bus, far, false}, {"", bus, group, false}, {"other", bus, group, false}, {bus + "2", bus, group, false},
		{"", "", group, false}, {"elbridge", bus, "web", false},
	} {
		if got := binding.Owns(tt.tag, tt.bus, tt.group); got != tt.want {
			t.Errorf("Owns(%q, %q, %q) = %t, want %t", tt.tag, tt.bus, tt.group, got, tt.want)
		}
	}
}

func TestFrozen(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "true": true, "incident 7": true} {
		if got := binding.Frozen(map[string]string{binding.FreezeTag: value}); got != want {
			t.Errorf("frozen by %q: %t, want %t", value, got, want)
		}
	}
	if binding.Frozen(nil) {
		t.Error("frozen without a tag")
	}
}
