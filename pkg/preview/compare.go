package preview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// Effect is what a change of rules does to one group. What the old rules would
// do or hold as well is not the change's doing: Standing counts it. Lists are
// whole; reasons of keys are in words.
type Effect struct {
	targetevent.Effect
	Name string `json:"name"`
	// Later are keys of emptied bindings that go in steps, after Lost.
	Later []targetevent.Key `json:"later,omitempty"`
	// Kept are keys that the old rules would remove or hold, and the new ones don't.
	Kept []targetevent.Key `json:"kept,omitempty"`
	// WouldGain and WouldLose are what rules in mode observe only tell of (I19).
	WouldGain []targetevent.Key `json:"wouldGain,omitempty"`
	WouldLose []targetevent.Key `json:"wouldLose,omitempty"`
	// Orphaned counts the targets of a group whose last rule is gone: they stay,
	// and nobody removes them (I8).
	Orphaned int `json:"orphaned,omitempty"`
	// Unknown says what was not read of what the group depends on. Then nothing is
	// said to be lost or held, and Unjudged counts the targets that no pod which
	// was read claims.
	Unknown  []string `json:"unknown,omitempty"`
	Unjudged int      `json:"unjudged,omitempty"`
	// Standing counts what differs under the old rules already.
	Standing int `json:"standing,omitempty"`
}

// Removes reports whether targets go, are held, or are left to nobody.
func (e *Effect) Removes() bool { return e.Lose+e.Hold+len(e.Later)+e.Orphaned > 0 }

// Known reports whether all was read that the group depends on.
func (e *Effect) Known() bool { return len(e.Unknown) == 0 }

// Nothing reports whether the change leaves the group as it is.
func (e *Effect) Nothing() bool {
	return e.Known() && !e.Removes() && e.Gain+len(e.Kept)+len(e.WouldGain)+len(e.WouldLose) == 0
}

// Touched returns the groups whose bindings differ between the sides: no other
// group gains or loses anything by the change. Bindings without an ARN are of
// no group.
func Touched(old, new []binding.Binding) map[string]bool {
	changed := map[string]bool{}
	for _, c := range Rules(old, new) {
		changed[c.Rule] = true
	}
	out := map[string]bool{}
	for _, bs := range [][]binding.Binding{old, new} {
		for i := range bs {
			if arn := bs[i].Group.ARN; arn != "" && changed[RuleName(bs[i].Rule)] {
				out[arn] = true
			}
		}
	}
	return out
}

// Compare says what becomes of each group that the change from old to new
// touches, by name.
func (w *World) Compare(old, new Side) ([]Effect, error) {
	touched := Touched(old.Bindings, new.Bindings)
	ps, err := w.sides([]Side{old, new}, touched)
	if err != nil {
		return nil, err
	}
	var out []Effect
	for arn := range touched {
		before, after := ps[0][arn], ps[1][arn]
		out = append(out, effect(w.group(arn), before, after))
	}
	slices.SortFunc(out, func(a, b Effect) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.TargetGroup, b.TargetGroup))
	})
	return out, nil
}

// keySet are keys by what is done with them.
type keySet map[claim.Key]bool

func keys(lists ...[]plan.Change) keySet {
	out := keySet{}
	for _, cs := range lists {
		for _, c := range cs {
			out[c.Key] = true
		}
	}
	return out
}

// without returns the changes whose keys are not in the set.
func without(cs []plan.Change, set keySet) []plan.Change {
	return slices.DeleteFunc(slices.Clone(cs), func(c plan.Change) bool { return set[c.Key] })
}

// effect compares two plans of one group; either may be empty, where no rule
// names the group.
func effect(g *Group, before, after Plan) Effect {
	e := Effect{Effect: targetevent.Effect{TargetGroup: g.ARN}, Name: cmp.Or(g.Name, g.ARN)}
	mended := func(doubt string) bool { return slices.Contains(before.maybe, doubt) } // what was held for it is known
	e.Unknown = slices.Concat(slices.DeleteFunc(slices.Clone(before.Doubt), mended), after.Doubt)
	slices.Sort(e.Unknown)
	e.Unknown = slices.Compact(e.Unknown)
	if len(after.Bindings)+len(after.Doubt) == 0 && g.Problem == "" && g.Targets != nil {
		e.Orphaned, e.Unknown = present(g), nil // nothing is removed, whatever pods there are
	}
	was, wasTold := before.Parts()
	now, told := after.Parts()
	words := words{g: g, before: &before, after: &after}
	e.Gained = words.keys(without(now.Register, keys(was.Register)), words.gained)
	e.WouldGain = words.keys(without(told.Register, keys(wasTold.Register)), words.gained)
	e.Gain = len(e.Gained)
	e.Standing = standing(was, now)
	if !e.Known() {
		e.Unjudged = unjudged(g, &after)
		return e
	}
	leaving := keys(was.Deregister, was.Later)
	e.Lost = words.keys(without(now.Deregister, leaving), words.lost)
	e.Later = words.keys(without(now.Later, leaving), words.lost)
	e.Held = words.keys(without(now.Held, keys(was.Held)), words.held)
	e.WouldLose = words.keys(without(removals(told), keys(removals(wasTold))), words.lost)
	e.Lose, e.Hold = len(e.Lost), len(e.Held)
	if e.Hold > 0 {
		e.Hash = after.Changes.Hash(g.ARN)
	}
	if len(after.Bindings) > 0 {
		e.Kept = words.keys(without(removals(was), keys(removals(now))), words.kept)
	}
	return e
}

// removals are made, later or held ones.
func removals(c plan.Changes) []plan.Change { return slices.Concat(c.Deregister, c.Later, c.Held) }

// standing counts the keys that both plans change or hold in the same way.
func standing(was, now plan.Changes) int {
	n := 0
	for _, pair := range [][2]keySet{
		{keys(was.Register), keys(now.Register)}, {keys(was.Deregister, was.Later), keys(now.Deregister, now.Later)}, {keys(was.Held), keys(now.Held)},
	} {
		for k := range pair[0] {
			if pair[1][k] {
				n++
			}
		}
	}
	return n
}

// present counts the targets that do not drain.
func present(g *Group) int {
	n := 0
	for _, t := range g.Targets {
		if t.Health != plan.Draining {
			n++
		}
	}
	return n
}

// unjudged counts the targets that do not drain and no pod which was read claims.
func unjudged(g *Group, p *Plan) int {
	n := 0
	for k, t := range g.Targets {
		if t.Health != plan.Draining && !p.Claimed[k] {
			n++
		}
	}
	return n
}

// words say why, for people.
type words struct {
	g             *Group
	before, after *Plan
}

// keys are changes as events write them, each with its reason.
func (w words) keys(cs []plan.Change, why func(plan.Change) string) []targetevent.Key {
	var out []targetevent.Key
	for _, c := range cs {
		out = append(out, targetevent.Key{ID: c.ID, Port: c.Port, Zone: c.Zone, PodUID: c.UID, Pod: c.Pod, Cluster: c.Cluster,
			Node: c.Node, Witness: string(c.Witness), Rule: c.Rule, Reason: why(c)})
	}
	slices.SortFunc(out, func(a, b targetevent.Key) int {
		return claim.Compare(claim.Key{ID: a.ID, Port: a.Port}, claim.Key{ID: b.ID, Port: b.Port})
	})
	return out
}

func (w words) gained(c plan.Change) string {
	why := fmt.Sprintf("rule %s selects the pod", RuleName(c.Rule))
	if c.Was == plan.Draining {
		why += ", and its target drains"
	}
	return why
}

// unclaimed says why nobody claims a key under the new rules.
func (w words) unclaimed(c plan.Change) string {
	id := claim.PodID{Cluster: c.Cluster, UID: c.UID}
	refusal, selected := w.after.view.Refusals[id]
	switch {
	case c.UID == "":
		return "no pod has the address"
	case w.after.view.Rules[id] == "" && w.before.view.Rules[id] != "":
		return fmt.Sprintf("no rule selects the pod any more; %s did", RuleName(w.before.view.Rules[id]))
	case w.after.view.Rules[id] == "":
		return "no rule selects the pod"
	case selected:
		return string(refusal)
	default:
		return "the pod claims another address or port"
	}
}

func (w words) lost(c plan.Change) string {
	why := w.unclaimed(c)
	switch {
	case c.Hold != "":
		return why + "; held: " + string(c.Hold)
	case c.Witness == plan.Unwitnessed:
		return why + "; within the limit"
	default:
		return why
	}
}

func (w words) held(c plan.Change) string { return w.unclaimed(c) + ": " + string(c.Hold) }

func (w words) kept(c plan.Change) string {
	switch {
	case w.after.Claimed[c.Key]:
		return "a pod claims it"
	case binding.ModeOf(w.after.Bindings, c.Rule) == binding.Observe:
		return "mode observe only tells of it"
	default:
		return "the new rules leave it alone"
	}
}
