package resync

import (
	"cmp"
	"slices"
	"time"
)

// slot is what is remembered of a group's turns. Forgetting one costs a look.
type slot struct {
	compared time.Time // zero: never
	dirty    bool      // its pods moved, somebody asked, or something was left to do
}

// periodOf is the time between two looks at a group: a round's, or as long as our
// share of the account's Describe rate makes it (design: max(20 s, groups ÷ share)).
func periodOf(groups int, perSecond float64, interval time.Duration) time.Duration {
	return max(interval, time.Duration(float64(groups)/perSecond*float64(time.Second)))
}

// due returns the groups whose turn it is, the most urgent first, as many as may
// be described within one interval: those that are long overdue, so that nothing
// starves, then those that are dirty, then those whose period is over.
func due(groups []string, slots map[string]slot, now time.Time, perSecond float64, interval time.Duration) []string {
	period := periodOf(len(groups), perSecond, interval)
	const overdue, dirty, over = 0, 1, 2
	rank := func(g string) (int, bool) {
		s := slots[g]
		age := now.Sub(s.compared)
		switch {
		case age >= 2*period, age < 0: // the clock was turned back
			return overdue, true
		case s.dirty && age >= interval:
			return dirty, true
		case age >= period:
			return over, true
		}
		return 0, false
	}
	var out []string
	for _, g := range groups {
		if _, is := rank(g); is {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		x, _ := rank(a)
		y, _ := rank(b)
		return cmp.Or(cmp.Compare(x, y), slots[a].compared.Compare(slots[b].compared), cmp.Compare(a, b))
	})
	most := max(1, int(perSecond*interval.Seconds()))
	return out[:min(len(out), most)]
}
