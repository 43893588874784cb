// Package drift names the differences between what pods claim and what a target
// group holds: each key of a plan gets its kind, and what no plan can repair is
// found beside it. It is pure and decides nothing; pkg/plan does.
package drift

import (
	"cmp"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

// Kind is what is wrong with a key, or with a group.
type Kind string

// The kinds of drift.
const (
	Missing            Kind = "missing"             // claimed, and not in the group
	DrainingWanted     Kind = "draining-wanted"     // claimed, and on its way out (I5)
	Extra              Kind = "extra"               // in the group, and nobody claims it
	WrongPort          Kind = "wrong-port"          // its address is claimed with another port
	UnhealthyUnclaimed Kind = "unhealthy-unclaimed" // extra, and the load balancer finds it unhealthy
	Emptied            Kind = "emptied"             // its binding says empty: true
	WrongZone          Kind = "wrong-zone"          // registered with another zone than the binding names
	ZoneOff            Kind = "zone-off"            // unused while others are not: its zone is not enabled
	NoListener         Kind = "no-listener"         // the group: no listener sends to it, all of it is unused
	GroupDeleted       Kind = "group-deleted"       // the group: a rule names it and it does not exist
	Unbound            Kind = "unbound"             // the group: ours, with targets, and no rule names it (I8)
	Flapping           Kind = "flapping"            // repaired again and again: somebody else undoes it (P037)
)

// Act is what a comparison does about a finding.
type Act string

// The acts.
const (
	Register   Act = "register"
	Deregister Act = "deregister"
	Hold       Act = "hold"   // a removal without a witness (I9)
	Wait       Act = "wait"   // an emptied key whose step has not come
	Report     Act = "report" // nothing that registering or deregistering would mend
)

// Finding is one difference. A finding about the group itself has no key.
type Finding struct {
	Kind Kind
	Act  Act
	plan.Change
}

// Group is what was compared.
type Group struct {
	Claims  []claim.Claim
	Current map[claim.Key]plan.Target
	// Zones are the availabilityZone of bindings, by rule.
	Zones map[string]string
}

// notInUse is ELB's reason for an unused target.
const notInUse = "Target.NotInUse"

// Classify names what is in a plan and what is beside it, sorted by key, then by
// kind.
func Classify(c plan.Changes, g Group) []Finding {
	claimed := map[string]bool{} // ids
	for _, cl := range g.Claims {
		claimed[cl.ID] = true
	}
	var out []Finding
	add := func(act Act, cs []plan.Change, kind func(plan.Change) Kind) {
		for _, ch := range cs {
			out = append(out, Finding{kind(ch), act, ch})
		}
	}
	unclaimed := func(ch plan.Change) Kind { return unclaimedKind(ch, claimed[ch.ID]) }
	add(Register, c.Register, claimedKind)
	add(Deregister, c.Deregister, unclaimed)
	add(Hold, c.Held, unclaimed)
	add(Wait, c.Later, unclaimed)
	out = append(out, standing(g)...)
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Or(claim.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

func claimedKind(ch plan.Change) Kind {
	if ch.Was == plan.Draining {
		return DrainingWanted
	}
	return Missing
}

func unclaimedKind(ch plan.Change, addressClaimed bool) Kind {
	switch {
	case ch.Witness == plan.Emptied:
		return Emptied
	case addressClaimed:
		return WrongPort
	case ch.Was == plan.Unhealthy:
		return UnhealthyUnclaimed
	default:
		return Extra
	}
}

// standing is what is wrong with targets that stay.
func standing(g Group) []Finding {
	var out []Finding
	unused, others := 0, 0
	for _, t := range g.Current {
		switch {
		case t.Health == plan.Draining:
		case t.Health == plan.Unused && t.Reason == notInUse:
			unused++
		default:
			others++
		}
	}
	if unused > 0 && others == 0 {
		out = append(out, Finding{NoListener, Report, plan.Change{Was: plan.Unused}})
	}
	for _, cl := range g.Claims {
		t, held := g.Current[cl.Key]
		if !held || t.Health == plan.Draining {
			continue
		}
		ch := plan.Change{Key: cl.Key, Zone: t.Zone, Cluster: cl.Cluster, Pod: cl.Pod, UID: cl.UID, Node: cl.Node, Rule: cl.Rule, Was: t.Health}
		if zone := g.Zones[cl.Rule]; wrongZone(t.Zone, zone) {
			out = append(out, Finding{WrongZone, Report, ch})
		}
		if t.Health == plan.Unused && t.Reason == notInUse && others > 0 {
			out = append(out, Finding{ZoneOff, Report, ch})
		}
	}
	return slices.CompactFunc(out, func(a, b Finding) bool { return a.Kind == b.Kind && a.Key == b.Key })
}

// wrongZone compares the zone of a target with the binding's. A target without
// one is inside the VPC, where none is sent (I7).
func wrongZone(have, want string) bool {
	return have != "" && want != "" && want != binding.ZoneAuto && have != want
}
