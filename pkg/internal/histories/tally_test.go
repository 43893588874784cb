package histories_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// tally counts what happened in histories, so that a property that is never
// tried shows.
type tally map[string]int

func (t tally) add(o tally) {
	for k, n := range o {
		t[k] += n
	}
}

func (t tally) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, fmt.Sprintf("%s: %d", k, t[k]))
	}
	return strings.Join(out, ", ")
}

// tally counts what has happened in this history.
func (s *sim) tally() {
	for _, c := range s.changes {
		who := "registrar"
		if c.resync {
			who = "resync"
		}
		s.met[who+" "+c.verb]++
	}
	for _, r := range s.removed {
		if r.told {
			s.met["witness "+cmp.Or(string(r.witness), "none")]++
		}
	}
	s.met["minutes"] += int(time.Since(s.start).Minutes())
}
