package resync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// gone notes a binding whose group does not exist (P053).
func (rd *round) gone(b *binding.Binding, err error) {
	rd.findings = append(rd.findings, targetevent.Finding{TargetGroup: b.Group.ARN, Drift: string(drift.GroupDeleted), Action: ActionReported,
		Key: targetevent.Key{Rule: b.Rule, Reason: err.Error()}})
}

// rulesChanged compares the rules with those of the round before and has the
// groups that a change names, or named, compared in this round (P008).
func (r *Resync) rulesChanged(rd *round) {
	if r.before != nil {
		now := groupsOf(rd.groups)
		for _, ch := range changedRules(*r.before, rd.snapshot) {
			for _, arn := range append(r.groupsBefore[ch.rule], now[ch.rule]...) {
				if s, known := r.slots[arn]; known {
					s.compared, s.dirty = time.Time{}, true
					r.slots[arn] = s
				}
				if !slices.Contains(ch.groups, arn) {
					ch.groups = append(ch.groups, arn)
				}
			}
			r.pending = append(r.pending, ch)
		}
	}
	r.before, r.groupsBefore = &rd.snapshot, groupsOf(rd.groups)
}

// vanished returns the groups that lost their last rule in this round.
func (r *Resync) vanished(rd *round) []string {
	var out []string
	for _, ch := range r.pending {
		for _, arn := range ch.groups {
			if r.isUnbound(rd, arn) {
				out = append(out, arn)
			}
		}
	}
	return out
}

// maxEffectRounds bounds how long the effect of a changed rule is waited for: new
// patterns have to be listed for.
const maxEffectRounds = 3

// tellRuleChanges tells of changed rules whose effect is known by now.
func (r *Resync) tellRuleChanges(rd *round) {
	var left []ruleChange
	for _, ch := range r.pending {
		ev := targetevent.BindingChanged{Schema: targetevent.Schema, Rule: ch.rule, Changes: ch.kinds, Effects: []targetevent.Effect{}, At: r.Now().UTC(),
			Cause: targetevent.Cause{Kind: targetevent.Resync, RunID: rd.run, Round: rd.number}}
		known := true
		for _, arn := range ch.groups {
			o, compared := rd.outcomes[arn]
			switch {
			case rd.groups[arn] == nil: // no rule names it any more: nothing is done to it (I8)
				ev.Effects = append(ev.Effects, targetevent.Effect{TargetGroup: arn})
			case !compared, o.unread, o.partial:
				known = false
			case o.effect.TargetGroup != "":
				ev.Effects = append(ev.Effects, o.effect)
			}
		}
		if rd.wish == nil { // one that somebody asked for compares what he asked for
			ch.rounds++
		}
		if !known && ch.rounds < maxEffectRounds {
			left = append(left, ch)
			continue
		}
		r.Log.Info("binding changed", "rule", ch.rule, "changes", fmt.Sprint(ch.kinds), "groups", len(ch.groups))
		rd.outbox = r.hands.Entry(rd.outbox, targetevent.DetailTypeBindingChanged, "", fitChange(ev))
	}
	r.pending = left
}

// finish counts a round and tells of it, if it found something new, if somebody
// asked for it, or if nothing was told for long.
func (r *Resync) finish(ctx context.Context, rd *round) {
	ev := r.completed(rd)
	result := "complete"
	if ev.Unread > 0 || len(ev.Problems) > 0 {
		result = "partial"
	}
	r.Meter.Count(telemetry.RoundsTotal, 1, telemetry.DimResult, result)
	r.Meter.Observe(telemetry.RoundSeconds, ev.Seconds)
	r.Meter.Count(telemetry.TargetsHeld, 0) // so that its silence is not taken for "nothing is held"
	r.Meter.Count(telemetry.GroupsUnread, float64(ev.Unread))
	unbound := 0
	for _, f := range rd.findings {
		if f.Drift == string(drift.Unbound) {
			unbound++
		}
	}
	r.Meter.Count(telemetry.GroupsUnbound, float64(unbound))
	for name, p := range r.pictures {
		if s := p.State(); s.Lists > r.lists[name] {
			r.lists[name] = s.Lists
			r.Meter.Observe(telemetry.ListSeconds, s.ListTook.Seconds(), telemetry.DimCluster, name)
		}
	}
	for _, c := range ev.Clusters {
		if c.Complete {
			r.Meter.Count(telemetry.RoundsOfCluster, 1, telemetry.DimCluster, c.Name)
		}
	}
	r.Log.InfoContext(ctx, "round", "run_id", rd.run, "round", rd.number, "trigger", ev.Trigger, "result", result, "groups", ev.Groups, "found", ev.Found,
		"repaired", ev.Repaired, "held", ev.Held, "failed", ev.Failed, "unread", ev.Unread, "duration_seconds", ev.Seconds, "problems", ev.Problems)
	if as := signature(ev); rd.wish != nil || as != r.toldAs || r.Now().Sub(r.toldAt) >= tellEvery {
		r.toldAs, r.toldAt = as, r.Now()
		rd.outbox = r.hands.Entry(rd.outbox, targetevent.DetailTypeResyncCompleted, "", ev)
	}
	r.send(ctx, rd.outbox)
	r.Meter.Flush()
}

// completed is the event about a round.
func (r *Resync) completed(rd *round) targetevent.ResyncCompleted {
	sortFindings(rd.findings)
	slices.Sort(rd.problems)
	now := r.Now()
	ev := targetevent.ResyncCompleted{Schema: targetevent.Schema, RunID: rd.run, Round: rd.number, Trigger: rd.trigger(), DryRun: rd.dryRun(),
		Clusters: []targetevent.ClusterState{}, Findings: []targetevent.Finding{}, Found: len(rd.findings), Seconds: now.Sub(rd.began).Seconds(), At: now.UTC()}
	if rd.wish != nil {
		ev.Request = &rd.wish.request
	}
	for _, name := range clustersOf(rd.snapshot.Bindings, r.pictures) {
		state := targetevent.ClusterState{Name: name, Error: "not among the clusters that are read"}
		if p := r.pictures[name]; p != nil {
			s := p.State()
			state.Complete, state.Pods, state.Error = s.Complete, s.Pods, ""
			if s.Err != nil {
				state.Error = s.Err.Error()
			}
		}
		if !state.Complete {
			rd.problems = append(rd.problems, fmt.Sprintf("cluster %s is not read to the end: nothing is removed from its groups: %s", name, state.Error))
		}
		ev.Clusters = append(ev.Clusters, state)
	}
	for _, o := range rd.outcomes {
		ev.Groups++
		if o.unread {
			ev.Unread++
		}
	}
	for _, f := range rd.findings {
		switch f.Action {
		case ActionRegistered, ActionDeregistered:
			ev.Repaired++
		case ActionHeld:
			ev.Held++
		case ActionFailed:
			ev.Failed++
		}
	}
	ev.Findings = append(ev.Findings, rd.findings...)
	ev.Problems = slices.Clone(rd.problems)
	return fitRound(ev)
}

// maxProblems bounds what an event, or a line of the log, lists.
const maxProblems = 20

// signature is what makes the event about a round news.
func signature(ev targetevent.ResyncCompleted) string {
	var b strings.Builder
	for _, f := range ev.Findings {
		fmt.Fprintf(&b, "%s %s %s %s %d\n", f.TargetGroup, f.Drift, f.Action, f.ID, f.Port)
	}
	for _, c := range ev.Clusters {
		fmt.Fprintf(&b, "%s %t\n", c.Name, c.Complete)
	}
	fmt.Fprintf(&b, "%s %d %d", ev.RunID, ev.Unread, len(ev.Problems))
	return b.String()
}

// toldWould remembers what observed bindings would do, so that it is told once
// and not in every round (I19).
type toldWould struct {
	now func() time.Time
	mu  sync.Mutex
	at  map[flapKey]time.Time
}

// wouldEvery is how often it is told again while it lasts.
const wouldEvery = time.Hour

func (t *toldWould) first(k flapKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, told := t.at[k]; told && t.now().Sub(at) < wouldEvery {
		return false
	}
	if t.at == nil || len(t.at) >= maxFlaps {
		t.at = map[flapKey]time.Time{}
	}
	t.at[k] = t.now()
	return true
}
