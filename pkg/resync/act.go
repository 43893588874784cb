package resync

import (
	"context"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// What became of findings, in the words of the events.
const (
	ActionRegistered      = "registered"
	ActionDeregistered    = "deregistered"
	ActionWouldRegister   = "would-register"
	ActionWouldDeregister = "would-deregister"
	ActionHeld            = "held"
	ActionWaiting         = "waiting" // an emptied key whose step has not come
	ActionFailed          = "failed"
	ActionReported        = "reported" // no change of targets would mend it
)

// act makes the changes of a confirmed plan and notes what became of each. It
// reports whether something was changed, so that another look is due. What can't
// be mended now is told of by the last look, and so once.
func (c *comparison) act(ctx context.Context, changes plan.Changes, v claim.View, last bool) bool {
	for _, ch := range c.back {
		if t, there := c.current[ch.Key]; there && t.Health != plan.Draining { // it came back: who drains it again undoes that
			c.r.flaps.made(c.flapKey(ch, true))
		}
	}
	c.back = nil
	found := drift.Classify(changes, drift.Group{Claims: v.Claims, Current: c.current, Zones: reconcile.Zones(c.bindings)})
	made := c.mend(ctx, found)
	if !made || last {
		c.leave(ctx, found, v)
	}
	return made
}

// leave tells of what is held, waits or can't be mended.
func (c *comparison) leave(ctx context.Context, found []drift.Finding, v claim.View) {
	held := plan.Changes{}
	for _, f := range found {
		f.Cause = c.cause(f.Kind)
		switch f.Act {
		case drift.Hold:
			held.Held = append(held.Held, f.Change)
			c.note(f, ActionHeld, string(f.Hold))
		case drift.Wait:
			c.note(f, ActionWaiting, "goes when those before it have drained")
			c.out.again = true
		case drift.Report:
			c.note(f, ActionReported, "")
		default:
			continue
		}
		c.r.Meter.Count(telemetry.DriftTotal, 1, telemetry.DimKind, string(f.Kind))
	}
	for _, ch := range c.foreign {
		if ch.UID != "" { // it was one of our pods'
			c.note(drift.Finding{Kind: drift.Extra, Change: ch}, ActionReported, string(ch.Hold))
		}
	}
	if c.rd.dryRun() {
		return
	}
	c.portless(v)
	c.r.hands.Held(ctx, c.work, held, c.current)
	c.out.again = c.out.again || len(held.Held) > 0
}

// mend registers and deregisters, and reports whether something was changed.
func (c *comparison) mend(ctx context.Context, found []drift.Finding) (made bool) {
	var add, remove []plan.Change
	for _, f := range found {
		f.Cause = c.cause(f.Kind)
		switch f.Act {
		case drift.Register:
			add = c.take(add, f, ActionWouldRegister)
		case drift.Deregister:
			remove = c.take(remove, f, ActionWouldDeregister)
		default:
			continue
		}
		c.r.Meter.Count(telemetry.DriftTotal, 1, telemetry.DimKind, string(f.Kind))
	}
	if add = c.news(add, true); len(add) > 0 {
		add = c.inTurn(ctx, add, registerTargets)
		made = c.done(add, c.r.hands.Register(ctx, c.work, add), ActionRegistered, ActionWouldRegister)
	}
	if remove = c.news(remove, false); len(remove) > 0 { // additions before removals, and neither blocks the other (I6)
		remove = c.inTurn(ctx, remove, deregisterTargets)
		made = c.done(remove, c.r.hands.Deregister(ctx, c.work, remove, c.current), ActionDeregistered, ActionWouldDeregister) || made
	}
	return made || c.moved
}

// take adds a finding's change to those to be made, unless it flaps or nothing is
// to be made at all.
func (c *comparison) take(to []plan.Change, f drift.Finding, would string) []plan.Change {
	switch {
	case c.rd.dryRun():
		c.note(f, would, "")
	case c.r.flaps.flapping(c.flapKey(f.Change, f.Act == drift.Register)):
		c.r.Meter.Count(telemetry.TargetsFlapping, 1)
		f.Kind = drift.Flapping
		c.note(f, ActionHeld, "repaired too often: somebody else undoes it")
	default:
		return append(to, f.Change)
	}
	return to
}

// news leaves out what is only observed and was told of before: it is a finding,
// and no news (I19).
func (c *comparison) news(changes []plan.Change, register bool) []plan.Change {
	var out []plan.Change
	for _, ch := range changes {
		if c.r.hands.Observes(c.work, ch) && !c.r.would.first(c.flapKey(ch, register)) {
			action := ActionWouldDeregister
			if register {
				action = ActionWouldRegister
			}
			c.note(finding(ch), action, "")
			continue
		}
		out = append(out, ch)
	}
	return out
}

func (c *comparison) flapKey(ch plan.Change, register bool) flapKey {
	return flapKey{group: c.g.ARN, Key: ch.Key, cluster: ch.Cluster, uid: ch.UID, register: register}
}

// done notes what became of changes, and reports whether some were made.
func (c *comparison) done(changes []plan.Change, d reconcile.Done, did, would string) bool {
	for _, ch := range d.Made {
		if finding(ch).Kind == drift.DrainingWanted { // perhaps it drains on, which nobody's doing is (I5)
			c.back = append(c.back, ch)
		} else {
			c.r.flaps.made(c.flapKey(ch, did == ActionRegistered))
		}
		c.note(finding(ch), did, "")
	}
	for _, ch := range d.WouldDo {
		c.note(finding(ch), would, "")
	}
	for _, ch := range changes {
		if err := d.Failed[ch.Key]; err != nil {
			c.note(finding(ch), ActionFailed, err.Error())
			c.out.again = true
		}
	}
	c.out.touched = c.out.touched || len(d.Made) > 0
	return len(d.Made) > 0
}

// finding is a change with the kind of drift that it carries as its reason.
func finding(ch plan.Change) drift.Finding {
	return drift.Finding{Kind: drift.Kind(ch.Cause.Reason), Change: ch}
}

// note adds a finding to what the round tells of, once however many looks show it.
func (c *comparison) note(f drift.Finding, action, why string) {
	key := reconcile.EventKeys([]plan.Change{f.Change})[0]
	if key.Reason = why; key.Rule == "" {
		key.Rule = c.bindings[0].Rule
	}
	of := notedKey{f.Key, string(f.Kind), action}
	i, known := c.noted[of]
	if !known {
		i = len(c.out.findings)
		c.noted[of] = i
		c.out.findings = append(c.out.findings, targetevent.Finding{})
	}
	c.out.findings[i] = targetevent.Finding{TargetGroup: c.g.ARN, Drift: string(f.Kind), Action: action, Key: key}
}

// notedKey is what makes a finding of a group another one.
type notedKey struct {
	claim.Key
	drift, action string
}

// unreadPod notes changes that were not made because their pod could not be read.
func (c *comparison) unreadPod(changes plan.Changes, n named, err error) {
	note := func(kind drift.Kind, cs []plan.Change) {
		for _, ch := range cs {
			if (named{ch.Cluster, ch.Pod}) == n {
				c.note(drift.Finding{Kind: kind, Change: ch}, ActionFailed, err.Error())
			}
		}
	}
	note(drift.Missing, changes.Register)
	note(drift.Extra, changes.Deregister)
	c.out.again = true
}

func (c *comparison) cause(kind drift.Kind) plan.Cause {
	return plan.Cause{Kind: string(targetevent.Drift), RunID: c.rd.run, Round: c.rd.number, Request: c.rd.requestID(), Reason: string(kind)}
}

// portless tells of pods that declare no port of the name that a binding has.
func (c *comparison) portless(v claim.View) {
	told := map[int]bool{} // one pod a binding says enough
	for _, p := range v.Portless {
		if b := &c.bindings[p.Binding]; !told[p.Binding] {
			told[p.Binding] = true
			c.work.Outbox = c.r.hands.Invalid(c.work.Outbox, targetevent.BindingInvalid{Cause: c.work.Cause, Rule: b.Rule, TargetID: b.TargetID,
				TargetGroup: c.g.ARN, Mode: string(b.Mode), Problem: p.Problem(b.Port.Name)})
		}
	}
}

// effect is what a plan does to a group, for the one who changed a rule.
func effect(group string, c plan.Changes) targetevent.Effect {
	cut := func(cs []plan.Change) []targetevent.Key {
		return reconcile.EventKeys(cs[:min(len(cs), targetevent.MaxListed)])
	}
	lost := append(append([]plan.Change{}, c.Deregister...), c.Later...)
	return targetevent.Effect{TargetGroup: group, Gain: len(c.Register), Lose: len(lost), Hold: len(c.Held),
		Gained: cut(c.Register), Lost: cut(lost), Held: cut(c.Held), Hash: c.Hash(group)}
}
