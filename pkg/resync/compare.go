package resync

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// maxPasses bounds "compare, act, compare again" within one comparison: after
// acting the truth is looked at once more (I3). A group that moves on is looked at
// in the next round.
const maxPasses = 3

// outcome is what a comparison came to.
type outcome struct {
	findings []targetevent.Finding
	effect   targetevent.Effect // of the first pass, for whoever changed a rule
	err      error              // what kept the group from being compared, or from being changed
	unread   bool               // it was not compared
	partial  bool               // removals were not considered
	again    bool               // something is left to do: soon
	touched  bool               // something was changed or would have been
}

// comparison is a look on its way.
type comparison struct {
	*look
	r       *Resync
	rd      *round
	work    *reconcile.Work
	current map[claim.Key]plan.Target
	read    time.Time // when current was
	lim     plan.Limits
	// confirmed is when the readings began that the planned changes rest on.
	confirmed time.Time
	moved     bool          // some of them did not stand when their turn came
	foreign   []plan.Change // not claimed, and not ours to remove
	asks      []claim.Key   // not claimed, and reading may tell why
	noted     map[notedKey]int
	back      []plan.Change // registered while they drained, by the pass before
	troubles  troubles
	out       outcome
}

// compare makes the group right, or says what is in the way. Targets are read
// before pods; what is missing is registered before anything is removed (I6);
// every change passes point reads first (I1).
func (r *Resync) compare(ctx context.Context, rd *round, lk *look) outcome {
	c := &comparison{look: lk, r: r, rd: rd, noted: map[notedKey]int{}}
	c.work = &reconcile.Work{Group: lk.g, API: lk.api, Bindings: lk.bindings, Rule: lk.bindings[0].Rule,
		Cause: targetevent.Cause{Kind: targetevent.Resync, RunID: rd.run, Round: rd.number, Request: rd.requestID()}}
	defer func() { r.send(ctx, c.work.Outbox) }()
	c.work.Observe = slices.ContainsFunc(lk.clusters, func(name string) bool { return r.Observed[name] })
	waited := false
	for pass := 1; pass <= maxPasses; pass++ {
		changes, v, err := c.plan(ctx)
		if err != nil {
			c.fail(err)
			return c.out
		}
		if !waited && c.wanted(changes) && r.settles(ctx, rd, lk) {
			waited = true // what hints are about to repair is no drift
			pass--
			continue
		}
		if pass == 1 {
			c.out.effect = effect(lk.g.ARN, changes)
		}
		changes, v = c.confirm(ctx, changes, v)
		if !c.act(ctx, changes, v, pass == maxPasses) {
			return c.out
		}
		if err := c.readAgain(ctx, changes); err != nil {
			c.fail(err)
			return c.out
		}
	}
	c.out.again = true
	return c.out
}

// plan reads the targets and says what would be done, by what the picture and the
// readings so far show.
func (c *comparison) plan(ctx context.Context) (plan.Changes, claim.View, error) {
	var err error
	if c.current, err = c.api.Health(ctx, c.g); err != nil {
		return plan.Changes{}, claim.View{}, err
	}
	c.read = c.r.Now()
	v, pods := c.r.see(c.look)
	claimed := v.Keys()
	c.work.Claimed = len(claimed)
	_, open := unclaimed(claimed, c.current)
	c.out.partial = c.out.partial || !c.complete
	c.lim = plan.Limits{Complete: !c.out.partial}
	if open && !c.out.partial {
		if err := c.limits(ctx); err != nil { // additions are not concerned (I6)
			c.noRemovals(err)
		}
	}
	return c.decide(ctx, v, pods), v, nil
}

// noRemovals keeps the group as it is, additions aside: something that removals
// depend on was not read (I8).
func (c *comparison) noRemovals(err error) {
	c.trouble(err)
	c.out.partial, c.out.again = true, true
}

// trouble notes an error that the round tells of, once however often it is met.
func (c *comparison) trouble(err error) {
	c.troubles.add(err)
	c.out.err = c.troubles.err()
}

// decide says what would be done.
func (c *comparison) decide(ctx context.Context, v claim.View, pods []claim.Seen) plan.Changes {
	if c.out.partial {
		return plan.Diff(v.Claims, nil, c.current, plan.Limits{})
	}
	cands, _ := unclaimed(v.Keys(), c.current)
	evidence, asks := c.r.evidence(ctx, c.look, v, pods, cands)
	changes := plan.Diff(v.Claims, evidence, c.current, c.lim)
	c.foreign, c.asks = c.foreign[:0], asks
	var held []plan.Change
	for _, ch := range changes.Held { // what is not ours to remove is no hold: nothing has to happen about it (I18)
		if ch.Hold == plan.HeldForeign {
			c.foreign = append(c.foreign, ch)
		} else {
			held = append(held, ch)
		}
	}
	changes.Held = held
	return changes.Approve(c.g.ARN, c.rd.approval())
}

// wanted reports whether a plan asks for anything.
func (c *comparison) wanted(changes plan.Changes) bool {
	return len(changes.Register)+len(changes.Deregister)+len(changes.Held) > 0
}

// maxReadings bounds how often a comparison reads for what only its readings
// brought up: of an emptied group others get their turn.
const maxReadings = 3

// confirm reads the pods behind every change and leaves those that hold (I1, I3).
func (c *comparison) confirm(ctx context.Context, changes plan.Changes, v claim.View) (plan.Changes, claim.View) {
	before, toRead := changes, changes
	toRead.Deregister = slices.Concat(changes.Deregister, c.worthAsking(changes))
	unread, ids := map[named]error{}, map[string]bool{}
	for range maxReadings {
		if len(toRead.Register)+len(toRead.Deregister) == 0 {
			break
		}
		if err := c.readBehind(ctx, toRead, unread, ids); err != nil {
			c.noRemovals(err)
		}
		var pods []claim.Seen
		v, pods = c.r.see(c.look)
		changes = c.decide(ctx, v, pods)
		toRead = plan.Changes{Deregister: slices.DeleteFunc(slices.Clone(changes.Deregister), func(ch plan.Change) bool { return ids[ch.ID] })}
	}
	changes.Register = slices.DeleteFunc(changes.Register, func(ch plan.Change) bool { return !c.isRead(ch, unread) })
	changes.Deregister = slices.DeleteFunc(changes.Deregister, func(ch plan.Change) bool {
		return !ids[ch.ID] || unread[named{ch.Cluster, ch.Pod}] != nil // a pod that was not read witnesses nothing
	})
	for n, err := range unread {
		c.trouble(err)
		c.unreadPod(before, n, err)
	}
	return changes, v
}

// readBehind reads all that the changes depend on, who has the addresses last: of
// that no reading may be old when the call is made. Its error means that nothing
// may be removed (I8).
func (c *comparison) readBehind(ctx context.Context, changes plan.Changes, unread map[named]error, ids map[string]bool) error {
	if len(changes.Deregister) > 0 && !c.out.partial {
		if err := c.r.rulesStand(ctx, c.rd); err != nil {
			return err
		}
		if err := c.limits(ctx); err != nil {
			return err
		}
		if c.r.Now().Sub(c.read) > reconcile.DecisionMaxAge {
			current, err := c.api.Health(ctx, c.g)
			if err != nil {
				return err
			}
			c.current, c.read = current, c.r.Now()
		}
	}
	c.confirmed, c.moved = c.r.Now(), false
	maps.Copy(unread, c.readPods(ctx, changes))
	asked, err := c.readOwners(ctx, changes)
	maps.Copy(ids, asked)
	return err
}

// limits reads what owner and operators say of the group; tags are remembered for
// as long as a decision is acted on.
func (c *comparison) limits(ctx context.Context) (err error) {
	c.lim, err = c.r.tags.Limits(ctx, c.r.Config.BusARN, boundedRules{c.r.Rules}, c.api, c.g, c.bindings)
	c.lim.Complete = err == nil
	return err
}

// inTurn waits for the turn of changes and returns those for which the decision
// stands then, read again if it is old (I3): a call may wait for our share of the
// account's rate, or behind a slow one.
func (c *comparison) inTurn(ctx context.Context, changes []plan.Change, operation string) []plan.Change {
	if err := c.api.turn(ctx, operation); err != nil || c.r.Now().Sub(c.confirmed) <= reconcile.DecisionMaxAge {
		return changes // without a turn the call fails, and says why
	}
	again := plan.Changes{Register: changes}
	if operation == deregisterTargets {
		again = plan.Changes{Deregister: changes}
	}
	again, _ = c.confirm(ctx, again, claim.View{})
	stands := map[claim.Key]bool{}
	for _, ch := range slices.Concat(again.Register, again.Deregister) {
		stands[ch.Key] = true
	}
	kept := slices.DeleteFunc(slices.Clone(changes), func(ch plan.Change) bool { return !stands[ch.Key] })
	c.moved = c.moved || len(kept) < len(changes)
	return kept
}

// maxAsks bounds what is read in one comparison for the sake of held removals:
// when a node is cut off with all its pods, reading tells nothing new.
const maxAsks = 50

// worthAsking returns held removals that a reading may witness, each round others
// of them if they are many.
func (c *comparison) worthAsking(changes plan.Changes) []plan.Change {
	var out []plan.Change
	for _, ch := range changes.Held {
		if ch.Hold == plan.HeldLimit && slices.Contains(c.asks, ch.Key) {
			out = append(out, ch)
		}
	}
	if len(out) <= maxAsks {
		return out
	}
	first := c.rd.number * maxAsks % len(out)
	return slices.Concat(out[first:], out[:first])[:maxAsks]
}

// readPods reads the pods of registrations, and those that the past names behind
// removals. It returns what could not be read.
func (c *comparison) readPods(ctx context.Context, changes plan.Changes) map[named]error {
	want := map[named]bool{}
	for _, ch := range changes.Register {
		want[named{ch.Cluster, ch.Pod}] = true
	}
	unread := c.reads.byName(ctx, c.r.Clusters, want)
	behind := map[named]bool{}
	for _, ch := range changes.Deregister {
		if n := (named{ch.Cluster, ch.Pod}); ch.Pod != "" && c.r.Clusters[ch.Cluster] != nil && !want[n] {
			behind[n] = true
		}
	}
	for n, err := range c.reads.byName(ctx, c.r.Clusters, behind) {
		unread[n] = err
	}
	return unread
}

// readOwners asks who has the addresses that are to be removed, in every cluster
// that the group is bound to (I2).
func (c *comparison) readOwners(ctx context.Context, changes plan.Changes) (map[string]bool, error) {
	ids := map[string]bool{}
	for _, ch := range changes.Deregister {
		ids[ch.ID] = true
	}
	if len(ids) == 0 {
		return nil, nil
	}
	if err := c.reads.owners(ctx, c.r.Clusters, c.clusters, ids); err != nil {
		return nil, err
	}
	if _, pods := c.r.see(c.look); c.secondFamily(pods) {
		if err := c.reads.selected(ctx, c.r.Clusters, c.look); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// isRead reports whether the pod behind a registration was read just now.
func (c *comparison) isRead(ch plan.Change, unread map[named]error) bool {
	n := named{ch.Cluster, ch.Pod}
	p, known := c.reads.of(n)
	return unread[n] == nil && known && p != nil && p.UID == ch.UID
}

// readAgain reads once more who is behind what was changed: if the truth moved,
// the next pass sees it (I3).
func (c *comparison) readAgain(ctx context.Context, changes plan.Changes) error {
	if unread := c.readPods(ctx, changes); len(unread) > 0 {
		for _, err := range unread {
			return err
		}
	}
	_, err := c.readOwners(ctx, changes)
	return err
}

// fail ends a comparison.
func (c *comparison) fail(err error) {
	c.trouble(err)
	c.out.unread = !c.out.touched
	if errors.Is(err, targetgroup.ErrNotFound) {
		c.r.directory.forget(&c.bindings[0], c.g.ARN)
		c.out.findings = append(c.out.findings, targetevent.Finding{TargetGroup: c.g.ARN, Drift: string(drift.GroupDeleted), Action: ActionReported,
			Key: targetevent.Key{Rule: c.bindings[0].Rule, Reason: err.Error()}})
		return
	}
	c.out.again = true
}
