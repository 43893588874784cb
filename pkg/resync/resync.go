// Package resync compares everything that is claimed with everything that target
// groups hold, round after round, and repairs what differs: whatever went wrong,
// the groups are right again within a round (I3, I5, I7 to I10, I18, I19). It
// needs no event and keeps no state that correctness depends on; what it
// remembers witnesses removals, saves calls and keeps events from being told
// twice. It never removes on doubt, and never creates or replaces a target group.
package resync

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/internal/pause"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/resync/picture"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

const (
	// endReserve is kept of an invocation's time for ending a round that is under
	// way: its calls end with their context, and its events leave.
	endReserve = 10 * time.Second
	// listWait is how long groups wait for their clusters' pods, while those are listed:
	// 100,000 pods take less. Groups of those that take longer only gain targets
	// until the list is whole.
	listWait = 15 * time.Second
	// listPoll is how often that is looked at.
	listPoll = 50 * time.Millisecond
	// parallelGroups bounds the comparisons under way: a slow group delays no other
	// (P092), and our share of the account's rates is what really limits them.
	parallelGroups = 8
	// hintTime is how long a change of pods is left to the registrar, which needs a
	// fifth of a second for it: what its hints repair is no drift.
	hintTime = 3 * time.Second
	// tellEvery is the longest time between two events about rounds that found
	// nothing new: that nothing is said must mean that nothing runs.
	tellEvery = 5 * time.Minute
	// rulesMaxAge is how old rules may be that additions are made by, while they
	// can't be read: as old as the registrar takes them at most.
	rulesMaxAge = time.Minute
)

// Resync is the use case. Its fields are set once, before Run is called.
type Resync struct {
	Config   Config
	Clusters map[string]Cluster
	Observed map[string]bool // clusters that are only observed (I19)
	Groups   func(b *binding.Binding) Groups
	Rules    reconcile.Rules
	Inbox    Inbox // nil: nobody can ask for a round
	Events   reconcile.Publisher
	Meter    *telemetry.Meter
	Log      *slog.Logger
	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error // the function Sleep, but for tests

	once      sync.Once
	budget    *budget
	rules     *reconcile.RuleBook
	directory *directory
	tags      *reconcile.TagBook
	hands     *reconcile.Hands
	pictures  map[string]*picture.Picture // by cluster
	nodes     nodeBook
	flaps     flaps
	would     toldWould

	// What one round leaves to the next; rounds don't overlap.
	known         reconcile.Snapshot // the rules as they were read last
	knownAt       time.Time
	slots         map[string]slot // by group
	before        *reconcile.Snapshot
	groupsBefore  map[string][]string // by rule
	named         map[string][]string // by rule, those of rules in doubt as they were known before
	pending       []ruleChange        // whose effect is not known yet
	unboundGroups unboundBook
	lists         map[string]int // whole ones of each picture, counted so far
	toldAs        string         // findings of the last event about a round
	toldAt        time.Time
}

// Sleep waits for d or the context's end.
func Sleep(ctx context.Context, d time.Duration) error { return pause.For(ctx, d) }

func (r *Resync) init() {
	r.budget = newBudget(r.Config.Share, r.Meter, r.Now)
	r.rules = reconcile.NewRuleBook(pacedRules{boundedRules{r.Rules}, r.budget}, r.Config.QueueARN, r.Now, nil)
	r.directory = newDirectory(r.Now)
	r.directory.region, r.directory.perSecond = r.envelope().Region, r.budget.perSecond()
	r.tags = reconcile.NewTagBook(r.Now)
	r.hands = &reconcile.Hands{Observe: r.Config.Observe, Observed: r.Observed, Events: r.Events, Meter: r.Meter, Log: r.Log, Now: r.Now}
	r.flaps.now, r.would.now = r.Now, r.Now
	r.slots, r.lists = map[string]slot{}, map[string]int{}
	r.pictures = map[string]*picture.Picture{}
	env := r.envelope()
	for name, c := range r.Clusters {
		r.pictures[name] = picture.New(picture.Config{Cluster: name, Source: c, Annotations: r.Config.Annotations,
			Account: env.Account, Region: env.Region, Now: r.Now, Sleep: r.Sleep, Log: r.Log})
	}
}

// envelope is that of the events on the bus, so far as patterns can ask for it.
func (r *Resync) envelope() podmatch.Envelope {
	parts := strings.Split(r.Config.BusARN, ":")
	if len(parts) < 5 {
		return podmatch.Envelope{}
	}
	return podmatch.Envelope{Region: parts[3], Account: parts[4]}
}

func (r *Resync) paced(api Groups, cause string) paced {
	return paced{Groups: api, budget: r.budget, cause: cause, had: new(bool)}
}

// Run compares round after round until its time is over or the context ends. run
// names it in events and logs. Two runs at once do no harm, and one after the
// other share what is remembered.
func (r *Resync) Run(ctx context.Context, run string) {
	r.once.Do(r.init)
	defer r.Meter.Flush()
	end := r.Now().Add(r.Config.RunLength)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-endReserve).Before(end) {
		end = deadline.Add(-endReserve)
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	var pictures sync.WaitGroup
	defer pictures.Wait()
	defer cancel()
	for _, p := range r.pictures {
		pictures.Go(func() { _ = p.Run(ctx) }) // it ends with ctx; what is wrong its state says
	}
	r.Log.InfoContext(ctx, "run begins", "run_id", run, "until", end)
	for number := 1; ctx.Err() == nil; {
		began := r.Now()
		r.round(ctx, &round{run: run, number: number, began: began})
		number++
		for next, asked := began.Add(r.Config.Interval), false; ctx.Err() == nil && (!asked || within(r.Now(), began, next)); asked = true {
			for _, w := range r.receive(ctx, r.until(next, asked)) {
				if !w.asked() {
					r.hurry(w)
					continue
				}
				r.round(ctx, &round{run: run, number: number, began: r.Now(), wish: &w})
				number++
			}
		}
	}
	r.Log.InfoContext(context.WithoutCancel(ctx), "run ends", "run_id", run)
}

// until is how long requests are waited for before the next round is due. They are
// asked for once between any two rounds, however late it is by then: whoever asks
// is not to wait for rounds that take longer than an interval.
func (r *Resync) until(next time.Time, asked bool) time.Time {
	if least := r.Now().Add(leastPoll); !asked && r.Inbox != nil && next.Before(least) {
		return least
	}
	return next
}

// within reports whether a moment is in a span. A clock that was turned back ends
// the span as one that went on does.
func within(at, from, to time.Time) bool { return !at.Before(from) && at.Before(to) }

// hurry has groups compared in the next round: somebody knows that their hints
// may be lost.
func (r *Resync) hurry(w wish) {
	mark := func(arn string) {
		s := r.slots[arn]
		s.dirty = true
		r.slots[arn] = s
	}
	if len(w.request.Groups) == 0 {
		for arn := range r.slots {
			mark(arn)
		}
	}
	for _, arn := range w.request.Groups {
		if _, known := r.slots[arn]; known { // else it is new, and its turn is next
			mark(arn)
		}
	}
}
