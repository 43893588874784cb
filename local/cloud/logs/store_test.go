package logs

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGroupIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct{ size, count int }{
		"by bytes":  {900 << 10, 80}, // 70 MiB
		"by events": {1, maxEvents + 1000},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(groupID{name: "g"}, now)
			message := strings.Repeat("x", tt.size)
			for i := range tt.count {
				g.add("s", now.Add(time.Duration(i)*time.Millisecond), message, now)
			}
			if g.bytes > maxBytes || len(g.events) > maxEvents || g.bytes != len(g.events)*tt.size {
				t.Errorf("%d events of %d bytes are kept", len(g.events), g.bytes)
			}
			if kept := len(g.events); kept < tt.count*3/4 || g.events[kept-1].Number != uint64(tt.count) {
				t.Errorf("%d of %d are kept, the newest is number %d", kept, tt.count, g.events[kept-1].Number)
			}
		})
	}
}

// Events that come out of order are read in order, and those of one time as they came.
func TestGroupIsInOrder(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	g := newGroup(groupID{name: "g"}, now)
	for i, second := range []int{3, 1, 2, 1, 3} {
		g.add("s", now.Add(time.Duration(second)*time.Second), string(rune('a'+i)), now)
	}
	var got []string
	for _, e := range g.events {
		got = append(got, e.message)
	}
	if !slices.Equal(got, []string{"b", "d", "c", "a", "e"}) {
		t.Errorf("order %v", got)
	}
}
