package resync

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// round is one pass over the groups whose turn it is, or that somebody asked for.
type round struct {
	run    string
	number int
	wish   *wish // nil: by schedule

	began    time.Time
	snapshot reconcile.Snapshot
	groups   map[string]*group // by ARN
	stale    bool              // snapshot is an earlier round's: it serves additions (I3)
	complete bool              // rules were read to the end
	doubts   []doubt           // rules that may mean other groups than is known
	outbox   []bus.Entry

	again ruleReading // of the rules, before removals

	mu       sync.Mutex
	outcomes map[string]outcome // by group
	findings []targetevent.Finding
	problems []string
}

func (rd *round) requestID() string {
	if rd.wish == nil {
		return ""
	}
	return rd.wish.request.ID
}

func (rd *round) dryRun() bool { return rd.wish != nil && rd.wish.dryRun }

func (rd *round) approval() string {
	if rd.wish == nil {
		return ""
	}
	return rd.wish.request.Approve
}

// trigger says in one word why there is this round, for metrics and events.
func (rd *round) trigger() string {
	if rd.wish == nil {
		return TriggerSchedule
	}
	return rd.wish.trigger
}

func (rd *round) problem(format string, args ...any) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if p := fmt.Sprintf(format, args...); !slices.Contains(rd.problems, p) {
		rd.problems = append(rd.problems, p)
	}
}

// round reads the rules, finds the groups and compares.
func (r *Resync) round(ctx context.Context, rd *round) {
	rd.outcomes = map[string]outcome{}
	r.flaps.begin(rd.began)
	var err error
	if rd.snapshot, err = r.rules.FreshOldest(ctx, oldestRules); err != nil {
		if r.cut(ctx, rd) {
			return
		}
		if r.known.Rules == nil || r.Now().Sub(r.knownAt) >= rulesMaxAge {
			rd.problem("the rules were not read: nothing is compared: %v", err)
			r.finish(ctx, rd)
			return
		}
		rd.problem("the rules were not read: nothing is removed: %v", err)
		rd.snapshot, rd.stale = r.known, true
	} else {
		r.known, r.knownAt = rd.snapshot, r.Now()
	}
	r.resolve(ctx, rd)
	r.rulesChanged(rd)
	r.follow(rd)
	r.compareAll(ctx, rd, r.turn(rd))
	if r.cut(ctx, rd) {
		return
	}
	vanished := r.vanished(rd)
	r.tellRuleChanges(rd)
	rd.findings = append(rd.findings, r.unbound(ctx, rd, vanished)...)
	r.finish(ctx, rd)
}

// cut reports whether the run is over, and ends the round as it is: what was done
// has been told. Only somebody who asked for the round hears of that.
func (r *Resync) cut(ctx context.Context, rd *round) bool {
	switch {
	case ctx.Err() == nil:
		return false
	case rd.wish != nil:
		rd.problems = []string{"the run ended before the round did: ask again"}
		r.finish(ctx, rd)
	default:
		r.send(ctx, rd.outbox)
	}
	return true
}

// follow tells the pictures which pods are asked for.
func (r *Resync) follow(rd *round) {
	for name, p := range r.pictures {
		var of []binding.Binding
		for _, b := range rd.snapshot.Bindings {
			if clusters := b.Pattern.Selection().Clusters; clusters == nil || slices.Contains(clusters, name) {
				of = append(of, b)
			}
		}
		p.Follow(of)
	}
}

// listing reports whether a cluster that the group's bindings cover is being listed.
func (r *Resync) listing(of *group) bool {
	return slices.ContainsFunc(clustersOf(of.bindings, r.Clusters), func(name string) bool {
		p := r.pictures[name]
		if p == nil {
			return false
		}
		s := p.State()
		return !s.Complete && s.Err == nil
	})
}

// turn returns the groups of this round, and forgets those that no rule names.
func (r *Resync) turn(rd *round) []string {
	arns := slices.Sorted(maps.Keys(rd.groups))
	maps.DeleteFunc(r.slots, func(arn string, _ slot) bool { return rd.groups[arn] == nil })
	if rd.wish != nil {
		if asked := rd.wish.request.Groups; len(asked) > 0 {
			for _, arn := range asked {
				if rd.groups[arn] == nil {
					rd.problem("target group %s: no rule of the bus names it", arn)
				}
			}
			return slices.DeleteFunc(arns, func(arn string) bool { return !slices.Contains(asked, arn) })
		}
		return arns
	}
	for _, arn := range arns {
		if s, known := r.slots[arn]; known && !s.dirty {
			s.dirty = r.touchedAt(rd.groups[arn].bindings).After(s.compared)
			r.slots[arn] = s
		}
	}
	return due(arns, r.slots, r.Now(), r.budget.perSecond(), r.Config.Interval)
}

// touchedAt is when pods that the bindings select, or did, moved last.
func (r *Resync) touchedAt(bs []binding.Binding) time.Time {
	var last time.Time
	for _, p := range r.pictures {
		if at := p.TouchedAt(bs); at.After(last) {
			last = at
		}
	}
	return last
}

// settles waits until hints had their time, if pods of the group moved a moment
// ago, and reports whether it did: then the group is to be looked at anew. An
// operator who asks does not wait.
func (r *Resync) settles(ctx context.Context, rd *round, lk *look) bool {
	most, age := min(hintTime, r.Config.Interval/2), r.Now().Sub(r.touchedAt(lk.bindings))
	if rd.wish != nil || age < 0 || age >= most {
		return false
	}
	return r.Sleep(ctx, most-age) == nil
}

// compareAll compares groups. Those of clusters that are being listed come as soon
// as they are, or when that takes too long, and keep no other waiting.
func (r *Resync) compareAll(ctx context.Context, rd *round, turn []string) {
	for until := r.Now().Add(listWait); len(turn) > 0; {
		var ready, later []string
		for _, arn := range turn {
			if r.Now().Before(until) && r.listing(rd.groups[arn]) {
				later = append(later, arn)
			} else {
				ready = append(ready, arn)
			}
		}
		if len(ready) == 0 && r.Sleep(ctx, listPoll) != nil {
			return
		}
		r.compareThese(ctx, rd, ready)
		turn = later
	}
}

// compareThese compares groups, several at once.
func (r *Resync) compareThese(ctx context.Context, rd *round, turn []string) {
	var g errgroup.Group
	g.SetLimit(parallelGroups)
	for _, arn := range turn {
		g.Go(func() error {
			r.compareOne(ctx, rd, arn)
			return nil
		})
	}
	_ = g.Wait() // the outcomes carry the errors
}

func (r *Resync) compareOne(ctx context.Context, rd *round, arn string) {
	of := rd.groups[arn]
	switch {
	case ctx.Err() != nil:
	case !slices.ContainsFunc(of.bindings, func(b binding.Binding) bool { return b.Enabled }):
		rd.done(r, arn, outcome{}) // every rule is disabled: it keeps what it has (I8)
	default:
		if o := r.compare(ctx, rd, r.lookAt(rd, of)); o.err == nil || ctx.Err() == nil { // else it was the run's end, not the group
			rd.done(r, arn, o)
		}
	}
}

// done keeps the outcome of a comparison. The group is due again an interval, or
// a period, after this round began: by its own time it would miss the next one.
func (rd *round) done(r *Resync, arn string, o outcome) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.outcomes[arn] = o
	rd.findings = append(rd.findings, o.findings...)
	if o.err != nil {
		rd.problems = append(rd.problems, fmt.Sprintf("target group %s: %v", arn, o.err))
	}
	if !rd.dryRun() { // which leaves everything to the next round
		r.slots[arn] = slot{compared: rd.began, dirty: o.again}
	}
}

// lookAt prepares a comparison: which clusters it needs, and whether all of them
// were read to the end (I8).
func (r *Resync) lookAt(rd *round, of *group) *look {
	lk := &look{g: of.Group, api: r.paced(of.api, rd.trigger()), bindings: of.bindings, complete: rd.complete, reads: newReads()}
	if d, is := r.doubted(rd, of.ARN); is {
		lk.complete = false
		rd.problem("target group %s: nothing is removed from it, as rule %s may mean it too: %v", of.ARN, d.rule, d.why)
	}
	for _, name := range clustersOf(of.bindings, r.Clusters) {
		p := r.pictures[name]
		if p == nil {
			lk.complete = false
			rd.problem("a rule of target group %s covers cluster %s, which is not among those that are read: nothing is removed from it", of.ARN, name)
			continue
		}
		lk.clusters = append(lk.clusters, name)
		lk.complete = lk.complete && p.State().Complete
	}
	return lk
}

// clustersOf returns the clusters that the bindings cover: those their patterns
// pin, or all that are known; sorted.
func clustersOf[V any](bs []binding.Binding, known map[string]V) []string {
	set := map[string]bool{}
	for i := range bs {
		pinned := bs[i].Pattern.Selection().Clusters
		if pinned == nil {
			for name := range known {
				set[name] = true
			}
		}
		for _, c := range pinned {
			set[c] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// sortFindings brings what several comparisons found into one order.
func sortFindings(fs []targetevent.Finding) {
	slices.SortStableFunc(fs, func(a, b targetevent.Finding) int {
		return cmp.Or(strings.Compare(a.TargetGroup, b.TargetGroup), strings.Compare(a.ID, b.ID), cmp.Compare(a.Port, b.Port), strings.Compare(a.Drift, b.Drift))
	})
}
