package reconcile

import (
	"maps"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

// newPlanEvery is the least time between two events about new plans of one group:
// while pods go one by one, each of them makes another plan.
const newPlanEvery = time.Minute

// holds remembers since when each key is held, whatever plan it is in: a plan that
// changes all the time would else never be overdue. An instance that forgets tells
// once more.
type holds struct {
	mu     sync.Mutex
	groups map[string]*groupHolds
}

// groupHolds is what is held, or was a moment ago, of one group.
type groupHolds struct {
	keys    map[claim.Key]heldKey
	plans   map[string]time.Time // told of, by hash, and when they were last met
	told    time.Time            // of a new plan
	overdue bool                 // told of as overdue
	last    time.Time
}

// heldKey is held since then, and was last met; waiting for people, or for a
// witness, and not by somebody's will.
type heldKey struct {
	since, last time.Time
	waiting     bool
}

// holding is what to say of held removals.
type holding struct {
	since   time.Time // of the oldest
	overdue int       // how many of them wait for longer than a witness window
	tell    bool
}

// meet notes that removals are held now. A key that was not met for a witness
// window begins anew. asked says that somebody waits for the plan's name.
func (h *holds) meet(group string, held []plan.Change, hash string, asked bool, now time.Time) holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.of(group, now)
	out := holding{since: now}
	for _, c := range held {
		e, known := g.keys[c.Key]
		if !known {
			e.since = now
		}
		e.last, e.waiting = now, waits(c)
		g.keys[c.Key] = e
		if e.since.Before(out.since) {
			out.since = e.since
		}
		if e.overdue(now) {
			out.overdue++
		}
	}
	_, told := g.plans[hash]
	isNew := !told && (asked || now.Sub(g.told) >= newPlanEvery)
	late := out.overdue > 0 && !g.overdue
	if out.tell = isNew || late; out.tell {
		g.told = now
	}
	if told || out.tell {
		g.plans[hash] = now
	}
	g.overdue = g.overdue || late
	return out
}

// of returns what is remembered of a group, without what is no more. It is under
// the lock.
func (h *holds) of(group string, now time.Time) *groupHolds {
	g := h.groups[group]
	if g == nil {
		h.makeRoom(now)
		g = &groupHolds{keys: map[claim.Key]heldKey{}, plans: map[string]time.Time{}}
		h.groups[group] = g
	}
	g.last = now
	over := func(last time.Time) bool { return now.Sub(last) >= WitnessWindow }
	maps.DeleteFunc(g.plans, func(_ string, last time.Time) bool { return over(last) })
	overdue := false
	for k, e := range g.keys {
		if over(e.last) {
			delete(g.keys, k)
		} else {
			overdue = overdue || e.overdue(now)
		}
	}
	g.overdue = g.overdue && overdue
	return g
}

// makeRoom keeps the memory bounded.
func (h *holds) makeRoom(now time.Time) {
	if len(h.groups) >= maxRemembered {
		maps.DeleteFunc(h.groups, func(_ string, g *groupHolds) bool { return now.Sub(g.last) >= WitnessWindow })
	}
	if h.groups == nil || len(h.groups) >= maxRemembered {
		h.groups = map[string]*groupHolds{}
	}
}

func (k heldKey) overdue(now time.Time) bool { return k.waiting && now.Sub(k.since) >= WitnessWindow }

// waits reports whether somebody may have to do something about a held removal:
// what is frozen, or not ours, is held by somebody's will.
func waits(c plan.Change) bool { return c.Hold != plan.HeldFrozen && c.Hold != plan.HeldForeign }
