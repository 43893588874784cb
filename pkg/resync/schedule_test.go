package resync

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	now := time.Unix(10_000, 0)
	ago := func(seconds int, dirty bool) slot {
		return slot{compared: now.Add(-time.Duration(seconds) * time.Second), dirty: dirty}
	}
	tests := map[string]struct {
		slots     map[string]slot
		groups    string
		perSecond float64
		want      string
	}{
		"never compared, all at once":               {nil, "a b c", 2.5, "a b c"},
		"as many as the rate allows":                {nil, "a b c d", 0.1, "a b"},
		"a period is an interval at least":          {map[string]slot{"a": ago(19, false), "b": ago(20, false)}, "a b", 10, "b"},
		"groups ÷ rate makes it longer":             {map[string]slot{"a": ago(25, false), "b": ago(31, false), "c": ago(1, false)}, "a b c", 0.1, "b"},
		"dirty ones first":                          {map[string]slot{"a": ago(31, false), "b": ago(20, true), "c": ago(40, false)}, "a b c", 0.1, "b c"},
		"dirty, but looked at this interval":        {map[string]slot{"a": ago(19, true)}, "a", 10, ""},
		"what is long overdue before what is dirty": {map[string]slot{"a": ago(300, false), "b": ago(20, true), "c": ago(20, true)}, "a b c", 0.1, "a b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(due(strings.Fields(tt.groups), tt.slots, now, tt.perSecond, 20*time.Second), " ")
			if got != tt.want {
				t.Errorf("due = %q, want %q", got, tt.want)
			}
		})
	}
}

// Every group gets its turn within two periods and an interval, however busy the
// others are.
func TestDue_nobodyStarves_P092(t *testing.T) {
	const interval, perSecond = 20 * time.Second, 2.5
	var groups []string
	for i := range 200 {
		groups = append(groups, fmt.Sprintf("g%03d", i))
	}
	period := periodOf(len(groups), perSecond, interval)
	if period != 80*time.Second {
		t.Fatalf("period of 200 groups at 2.5/s = %s, want 80s", period)
	}
	slots := map[string]slot{}
	now, longest := time.Unix(10_000, 0), time.Duration(0)
	for range 100 {
		turn := due(groups, slots, now, perSecond, interval)
		if len(turn) > 50 {
			t.Fatalf("%d groups in one round, want at most 50", len(turn))
		}
		for _, g := range turn {
			if s := slots[g]; !s.compared.IsZero() {
				longest = max(longest, now.Sub(s.compared))
			}
			slots[g] = slot{compared: now}
		}
		for _, g := range groups[:150] { // three of four are always busy
			s := slots[g]
			s.dirty = true
			slots[g] = s
		}
		now = now.Add(interval)
	}
	if most := 2*period + interval; longest > most {
		t.Errorf("a group waited for %s, want at most %s", longest, most)
	}
}
