// Package registrar turns hints into right target groups: it reads the pods that
// a batch of pod events speaks of, asks of every key they touch whether a live
// pod claims it now, registers and deregisters accordingly, and looks again
// (I1 to I7, I9, I10, I18, I19). It keeps no state that correctness depends on;
// what it remembers only saves calls. It never creates or replaces a target group.
package registrar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

const (
	// reserve is kept of an invocation's time for telling the queue what became
	// of the messages.
	reserve = 1500 * time.Millisecond
	// parallel bounds the reads under way for one group, and the groups and the
	// messages under way at once: a batch has ten messages.
	parallel = 10
	// tellTimeout bounds the calls that end a message, should the invocation's
	// own deadline have been used up by the work, and the one that hands groups over.
	tellTimeout = time.Second
)

// Registrar is the use case. Its fields are set once, before Process is called.
type Registrar struct {
	Config   Config
	Clusters map[string]reconcile.Cluster
	Observed map[string]bool // clusters that are only observed (I19)
	Groups   func(b *binding.Binding) reconcile.Groups
	Rules    reconcile.Rules
	Queue    Queue
	Handover Handover // nil: nobody is asked
	Events   reconcile.Publisher
	Meter    *telemetry.Meter
	Log      *slog.Logger
	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error // the function Sleep, but for tests

	once   sync.Once
	rules  *reconcile.RuleBook
	groups *reconcile.GroupBook
	tags   *reconcile.TagBook
	hands  *reconcile.Hands
	pace   pacer
	spare  *rate.Limiter
}

func (r *Registrar) init() {
	r.rules = reconcile.NewRuleBook(r.Rules, r.Config.QueueARN, r.Now, r.faultyRule)
	r.groups = reconcile.NewGroupBook(r.Now)
	r.tags = reconcile.NewTagBook(r.Now)
	r.hands = &reconcile.Hands{Observe: r.Config.Observe, Observed: r.Observed, Events: r.Events, Meter: r.Meter, Log: r.Log, Now: r.Now}
	r.pace = pacer{pace: r.Config.RegisterPace, now: r.Now}
	// A burst of one keeps a full batch from spending what several batches share.
	r.spare = rate.NewLimiter(rate.Limit(r.Config.DescribeSpare), max(1, int(r.Config.DescribeSpare)))
}

// Process handles a batch and returns the ids of the messages that have to come
// again. One message never decides about another (I6): each is acknowledged,
// buried in the dead-letter queue with its reason, or left for later.
func (r *Registrar) Process(ctx context.Context, batch []queue.Message) (failed []string) {
	r.once.Do(r.init)
	defer r.Meter.Flush()
	work, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		work, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
	}
	outcomes := make([]outcome, len(batch))
	groups, expired := r.sort(work, batch, outcomes)
	var g errgroup.Group
	g.SetLimit(parallel)
	if len(expired) > 0 && r.Handover != nil {
		g.Go(func() error { r.handOver(work, expired); return nil })
	}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		w := groups[id]
		g.Go(func() error {
			r.group(work, w)
			for _, h := range w.hints {
				outcomes[h.index] = h.outcome
			}
			return nil
		})
	}
	_ = g.Wait() // the outcomes carry the errors
	cancel()
	return r.end(ctx, batch, outcomes)
}

// sort reads the batch and gathers its hints by target group. What is no hint,
// or has no binding that can be followed, gets its outcome here. expired are the
// groups, as far as messages give an ARN, whose hints are too old.
func (r *Registrar) sort(ctx context.Context, batch []queue.Message, outcomes []outcome) (work map[string]*groupWork, expired []string) {
	since := r.Now()
	hints := make([]*hint, len(batch))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, m := range batch {
		h, o := r.read(ctx, i, m)
		outcomes[i] = o
		if o.expired != "" {
			expired = append(expired, o.expired)
		}
		if h == nil {
			continue
		}
		g.Go(func() error {
			b, err := r.rules.Own(ctx, &h.Message, since)
			if outcomes[i] = r.unbound(h, b, err); outcomes[i].result == "" {
				h.bind, hints[i] = b, h
			}
			return nil
		})
	}
	_ = g.Wait() // the outcomes carry the errors
	disputed := disputedRules(hints)
	groups := make([]claim.Group, len(batch))
	for i, h := range hints {
		if h == nil {
			continue
		}
		g.Go(func() error {
			if groups[i], outcomes[i] = r.bind(ctx, h, since, disputed[h.bind.Rule]); outcomes[i].result != "" {
				hints[i] = nil
			}
			return nil
		})
	}
	_ = g.Wait() // as above
	work = map[string]*groupWork{}
	for i, h := range hints {
		if h == nil {
			continue
		}
		w := work[groups[i].ARN]
		if w == nil {
			w = &groupWork{Work: reconcile.Work{Group: groups[i], API: r.Groups(h.bind)}}
			work[w.Group.ARN] = w
		}
		w.hints = append(w.hints, h)
	}
	return work, expired
}

// handOver asks resync for the groups of expired hints. Where that fails resync
// has them no later than its next round.
func (r *Registrar) handOver(ctx context.Context, groups []string) {
	slices.Sort(groups)
	groups = slices.Compact(groups)
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if err := r.Handover.Ask(ctx, groups); err != nil {
		r.Log.WarnContext(ctx, "resync was not asked for the groups of expired hints", "target_groups", groups, "err", err)
	}
}

// disputedRules returns the rules of which the batch carries different constants:
// they were changed meanwhile, or the rule has several targets.
func disputedRules(hints []*hint) map[string]bool {
	first, out := map[string]*binding.Binding{}, map[string]bool{}
	for _, h := range hints {
		if h == nil {
			continue
		}
		if b, met := first[h.bind.Rule]; met && !binding.SameConstants(*b, *h.bind) {
			out[h.bind.Rule] = true
		}
		first[h.bind.Rule] = h.bind
	}
	return out
}

// unbound is the outcome of a hint whose binding can't be followed, or none.
func (r *Registrar) unbound(h *hint, b *binding.Binding, err error) outcome {
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return done(RuleGone)
	case err != nil:
		return r.failure(h, err)
	case b == nil, !b.Enabled:
		return done(RuleGone) // it holds what it had (I8)
	}
	return outcome{}
}

// bind settles on the binding of a hint and finds the group that it names.
func (r *Registrar) bind(ctx context.Context, h *hint, since time.Time, disputed bool) (claim.Group, outcome) {
	b, err := r.rules.Current(ctx, h.bind, since, disputed)
	if o := r.unbound(h, b, err); o.result != "" {
		return claim.Group{}, o
	}
	h.bind = b
	g, err := r.describe(ctx, b)
	switch {
	case errors.Is(err, targetgroup.ErrNotFound), errors.Is(err, targetgroup.ErrAmbiguous):
		r.invalid(ctx, problem(h.msg, h.Message, err))
		return claim.Group{}, bury(Invalid, err)
	case err != nil:
		return claim.Group{}, r.failure(h, err)
	case g.Type != claim.IP:
		err := fmt.Errorf("target group %s has targets of type %q: only ip is supported so far", g.ARN, g.Type)
		r.invalid(ctx, problem(h.msg, h.Message, err))
		return claim.Group{}, bury(Invalid, err)
	}
	return g, outcome{}
}

func (r *Registrar) describe(ctx context.Context, b *binding.Binding) (claim.Group, error) {
	return r.groups.Get(ctx, r.Groups(b), b)
}

// failure puts an error of an edge into an outcome: try again, sooner or later.
func (r *Registrar) failure(h *hint, err error) outcome {
	age := h.age(r.Now())
	switch {
	case errors.Is(err, targetgroup.ErrThrottled):
		return again(Throttled, waitFor(waitShort, age), err)
	case errors.Is(err, targetgroup.ErrQuota):
		return again(Quota, waitFor(waitHeld, age), err)
	case errors.Is(err, targetgroup.ErrDenied), errors.Is(err, cluster.ErrUnauthorized):
		return again(Unauthorized, waitLong, err)
	case errors.Is(err, targetgroup.ErrInvalidTarget), errors.Is(err, targetgroup.ErrNotFound):
		return bury(Invalid, err)
	default:
		return again(Unreachable, waitFor(waitShort, age), err)
	}
}

// end tells the queue what became of each message and returns those that come
// again. A message that could not be buried comes again: nothing is lost.
func (r *Registrar) end(ctx context.Context, batch []queue.Message, outcomes []outcome) (failed []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	retry := make([]bool, len(batch))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, m := range batch {
		o := outcomes[i]
		r.Meter.Count(telemetry.HintsTotal, 1, telemetry.DimResult, string(o.result))
		r.logOutcome(ctx, m, o)
		g.Go(func() error {
			switch {
			case o.bury != "":
				if err := r.Queue.Bury(ctx, m, o.bury); err != nil {
					r.Log.ErrorContext(ctx, "message could not be buried, it comes again", "message_id", m.ID, "err", err)
					retry[i] = true
				}
			case o.again > 0:
				retry[i] = true
				if err := r.Queue.Again(ctx, m, o.again); err != nil {
					r.Log.WarnContext(ctx, "message comes again after the queue's own time", "message_id", m.ID, "err", err)
				}
			}
			return nil
		})
	}
	_ = g.Wait() // errors are logged, and retry says what follows
	for i, m := range batch {
		if retry[i] {
			failed = append(failed, m.ID)
		}
	}
	return failed
}
