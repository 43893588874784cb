package binding_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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

func TestNote(t *testing.T) {
	const who = "arn:aws:sts::111122223333:assumed-role/Operator/kim@example.org"
	at := time.Date(2026, 11, 30, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	for name, tt := range map[string]struct{ who, why, want string }{
		"all":             {who, "incident 7", "at 2026-11-30T12:00:00Z by " + who + " : incident 7"},
		"nobody":          {"", "", "at 2026-11-30T12:00:00Z"},
		"a word for no":   {"", "false", "at 2026-11-30T12:00:00Z : false"},
		"what is illegal": {"a,b", "\"why?\" \n#7 <é>", "at 2026-11-30T12:00:00Z by a b : why 7 é"},
	} {
		if got := binding.Note(tt.who, tt.why, at); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	long := binding.Note(who, strings.Repeat("é", 1000), at)
	if n := utf8.RuneCountInString(long); n != 256 || !strings.Contains(long, who) {
		t.Errorf("a long reason makes %d characters: %q", n, long)
	}
	if !binding.Frozen(map[string]string{binding.FreezeTag: binding.Note("", "", at)}) {
		t.Error("a note does not freeze")
	}
}
