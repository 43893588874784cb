// Package plan compares what pods claim with what a target group holds and says
// what to change, what to hold, and why. It is pure and total: time, health and
// completeness come in as arguments, output is sorted and never depends on a
// map's order. It carries I5 (draining is absent), I8 (no removal on doubt), I9
// (removals need a second witness) and I18 (only the owner removes).
package plan

import (
	"slices"

	"github.com/elbridge/elbridge/pkg/claim"
)

// Health is a target's state in ELB's own words.
type Health string

// The states of DescribeTargetHealth.
const (
	Initial           Health = "initial"
	Healthy           Health = "healthy"
	Unhealthy         Health = "unhealthy"
	UnhealthyDraining Health = "unhealthy.draining"
	Unused            Health = "unused"
	Draining          Health = "draining"
	Unavailable       Health = "unavailable"
)

// Target is what the load balancer holds for a key.
type Target struct {
	Health Health
	Reason string // ELB's reason code, for people
	Zone   string // the Availability Zone that it was registered with, "" where none was sent
}

// Witness is what, beside the missing claim, says that a target may go (I9).
type Witness string

// The witnesses. Unwitnessed removals are bounded together, or held.
const (
	Unwitnessed  Witness = ""
	LoadBalancer Witness = "load-balancer"  // unhealthy, while another target is healthy
	OtherOwner   Witness = "other-owner"    // another live pod has the address
	PodEnded     Witness = "pod-ended"      // this UID is terminating or finished, and its node is Ready
	PodGone      Witness = "pod-gone"       // 404 after a young hint that names UID and node, and the node is Ready
	Deselected   Witness = "pod-deselected" // the pod's own labels changed from selected to not
	Emptied      Witness = "binding-empty"  // the binding says empty: true, which nobody says by accident
	Approved     Witness = "approved"       // an operator named this very plan
)

// Evidence is what is known of a key that no live pod claims.
type Evidence struct {
	Witness Witness
	// Shown is true where the API server itself shows a pod of the group's
	// bindings with this address: only then may it go from a group that is not
	// elbridge's own (I18).
	Shown bool
	// Attribution, as far as known.
	Cluster, Pod, UID, Node, Rule string
}

// Limits are a group's rails, the strictest of its bindings'.
type Limits struct {
	Complete          bool // rules, pods and targets were each read to the end
	Owned             bool // the group carries our owner tag and no binding says foreignTargets: keep
	Frozen            bool // bus or group is frozen: no removal is made
	MaxRemovalPercent int  // share of serving keys that may go or drain unwitnessed, 0..100
	MinTargets        int  // healthy keys that unwitnessed removals must leave
}

// HoldReason says why a removal is held.
type HoldReason string

// The reasons of held removals.
const (
	HeldIncomplete HoldReason = "something was not read to the end"
	HeldFrozen     HoldReason = "removals are frozen"
	HeldForeign    HoldReason = "the group is not elbridge's, and the address can't be shown to be one of its pods'"
	HeldLimit      HoldReason = "no second witness, and more than the limit would go"
)

// Cause is why a plan was made: the ids under which logs and events tell more
// (I10). Whoever carries a plan out puts it on the changes.
type Cause struct {
	Kind      string // hint, drift or resync
	EventID   string // of a hint
	MessageID string // of the hint's queue message
	RunID     string // of a resync run
	Round     int    // of that run
	Request   string // id of the operator's request that asked for the round
	Reason    string // of the pod event, or the kind of the drift
}

// Change is one key of a plan with all that an audit line says of it (I10).
type Change struct {
	claim.Key
	Zone                          string // as the binding has it; "" is decided by the edge
	Cause                         Cause
	Cluster, Pod, UID, Node, Rule string
	Witness                       Witness
	Was                           Health     // "" for a key that the group does not hold
	Hold                          HoldReason // set on held changes only
}

// Changes is all the shell has to do, each slice sorted by claim.Compare.
type Changes struct {
	Register   []Change
	Deregister []Change
	Held       []Change // unclaimed, but kept for now
	// Later are keys of an emptied binding whose turn has not come: they go in
	// steps, when those before them have drained. Nothing is wrong with them.
	Later []Change
}

// Empty reports whether there is nothing to do, now or later, and nothing held.
func (c Changes) Empty() bool {
	return len(c.Register)+len(c.Deregister)+len(c.Held)+len(c.Later) == 0
}

// Approve lets go what is held for want of a witness, if hash names this very
// plan for the group (I9): an operator has spoken of these keys and pods. What is
// held for another reason stays held.
func (c Changes) Approve(group, hash string) Changes {
	if hash == "" || c.Hash(group) != hash {
		return c
	}
	out := Changes{Register: c.Register, Deregister: slices.Clone(c.Deregister), Later: c.Later}
	for _, ch := range c.Held {
		if ch.Hold != HeldLimit {
			out.Held = append(out.Held, ch)
			continue
		}
		ch.Hold, ch.Witness = "", Approved
		out.Deregister = append(out.Deregister, ch)
	}
	sortByKey(out.Deregister)
	return out
}

// Diff returns what takes a target group from current to claimed.
//
// unclaimed holds the keys that were looked at and that no live pod claims; keys
// of current that are neither claimed nor unclaimed are left alone, which is the
// normal case when a hint touches two keys of a hundred. A draining key counts as
// absent, so it is registered again if a pod claims it. A witnessed removal is
// made. The others are made together or not at all: if they and the unwitnessed
// ones already draining are more than max(1, MaxRemovalPercent) of the healthy keys
// and those, or fewer than MinTargets healthy ones would be left when the
// witnessed ones are gone too, they are held. A key both claimed and unclaimed is claimed.
// Keys of an emptied binding go in steps of that same share, draining ones
// included, and to the last one; those that get no requests go at once.
//
// Diff cannot fail, keeps no argument, and gives equal output for equal input.
func Diff(claimed []claim.Claim, unclaimed map[claim.Key]Evidence, current map[claim.Key]Target, lim Limits) Changes {
	var c Changes
	wanted := make(map[claim.Key]bool, len(claimed)) // duplicates collapse: one claim a key is enough
	for _, cl := range claimed {
		if wanted[cl.Key] {
			continue
		}
		wanted[cl.Key] = true
		if t, held := current[cl.Key]; !held || draining(t.Health) {
			c.Register = append(c.Register, Change{Key: cl.Key, Cluster: cl.Cluster, Pod: cl.Pod, UID: cl.UID,
				Node: cl.Node, Rule: cl.Rule, Was: t.Health})
		}
	}
	healthy, leaving := count(current, wanted, unclaimed)
	var unwitnessed, emptied []Change
	for k, ev := range unclaimed {
		t, held := current[k]
		if !held || draining(t.Health) || wanted[k] {
			continue
		}
		ch := Change{Key: k, Cluster: ev.Cluster, Pod: ev.Pod, UID: ev.UID, Node: ev.Node, Rule: ev.Rule,
			Witness: witness(ev, t, healthy), Was: t.Health}
		switch {
		case !lim.Complete:
			c.Held = append(c.Held, hold(ch, HeldIncomplete))
		case lim.Frozen:
			c.Held = append(c.Held, hold(ch, HeldFrozen))
		case !lim.Owned && !ev.Shown:
			c.Held = append(c.Held, hold(ch, HeldForeign))
		case ch.Witness == Emptied && ch.Was != Unused:
			emptied = append(emptied, ch)
		case ch.Witness != Unwitnessed:
			c.Deregister = append(c.Deregister, ch)
		default:
			unwitnessed = append(unwitnessed, ch)
		}
	}
	sortByKey(emptied) // the same step for the same input
	drain := inDrain(current, wanted)
	step := min(len(emptied), max(0, lim.share(healthy+drain)-drain))
	c.Deregister, c.Later = append(c.Deregister, emptied[:step]...), emptied[step:]
	if lim.allow(c.Deregister, unwitnessed, healthy, leaving) {
		c.Deregister = append(c.Deregister, unwitnessed...)
	} else {
		for _, ch := range unwitnessed {
			c.Held = append(c.Held, hold(ch, HeldLimit))
		}
	}
	for _, s := range [][]Change{c.Register, c.Deregister, c.Held} {
		sortByKey(s)
	}
	return c
}

func sortByKey(cs []Change) {
	slices.SortFunc(cs, func(a, b Change) int { return claim.Compare(a.Key, b.Key) })
}

// share is how many keys may be on their way out together.
func (l Limits) share(serving int) int { return max(1, serving*l.MaxRemovalPercent/100) }

// inDrain counts the keys that are on their way out, for whatever reason.
func inDrain(current map[claim.Key]Target, wanted map[claim.Key]bool) int {
	n := 0
	for k, t := range current {
		if draining(t.Health) && !wanted[k] {
			n++
		}
	}
	return n
}

// allow reports whether the unwitnessed removals may be made beside the
// witnessed ones. Unused targets get no requests, so they leave nobody with
// fewer; of any others it is not enough that none is healthy: a load balancer
// without a healthy target fails open.
func (l Limits) allow(witnessed, unwitnessed []Change, healthy, leaving int) bool {
	serving, used := healthy+leaving, false
	for _, ch := range slices.Concat(witnessed, unwitnessed) {
		if ch.Was == Healthy {
			healthy--
		}
		used = used || ch.Witness == Unwitnessed && ch.Was != Unused
	}
	return len(unwitnessed)+leaving <= l.share(serving) && (!used || healthy >= l.MinTargets)
}

// count returns the healthy keys, and those that drain without a claim and
// without a witness. A draining key of which nothing is known counts as
// unwitnessed: that errs on the side of holding.
func count(current map[claim.Key]Target, wanted map[claim.Key]bool, unclaimed map[claim.Key]Evidence) (healthy, leaving int) {
	for k, t := range current {
		switch {
		case t.Health == Healthy:
			healthy++
		case draining(t.Health) && !wanted[k] && unclaimed[k].Witness == Unwitnessed:
			leaving++
		}
	}
	return healthy, leaving
}

// witness adds the load balancer's word to the evidence: it says unhealthy of
// this target while another one is healthy. When none is, it fails open and
// sends requests to all of them, so its word condemns nobody.
func witness(ev Evidence, t Target, healthy int) Witness {
	if (ev.Witness == Unwitnessed || ev.Witness == Emptied) && t.Health == Unhealthy && healthy > 0 {
		return LoadBalancer
	}
	return ev.Witness
}

func draining(h Health) bool { return h == Draining }

func hold(ch Change, why HoldReason) Change {
	ch.Hold = why
	return ch
}
