package resync

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/internal/pause"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// What an account may call in a region, a second, and at once. Describe is of
// ELB's guide on throttling; for RegisterTargets and DeregisterTargets, which have
// a bucket of their own, the guide's figures are recalled, not looked up.
const (
	describeRate, describeBurst = 10, 40
	mutateRate, mutateBurst     = 4, 20
	// EventBridge's guide has 50 calls a second for the operations on rules. The
	// share of them is fixed: nothing else that runs all the time asks for rules.
	rulesRate, rulesBurst = 20, 20
	// oldestRules is how many rules have their targets read again in each round:
	// five seconds' worth, so that constants are a minute old at most with 300 rules
	// a bus, EventBridge's quota, and a round with up to 100.
	oldestRules = 100
)

// budget is our share of the account's rates. Whoever waits for it is delayed,
// never refused (P058, P059).
type budget struct {
	describe, mutate *rate.Limiter
	rules            *rate.Limiter
	meter            *telemetry.Meter
	now              func() time.Time
}

func newBudget(share float64, meter *telemetry.Meter, now func() time.Time) *budget {
	limiter := func(perSecond, burst float64) *rate.Limiter {
		return rate.NewLimiter(rate.Limit(perSecond*share), max(1, int(burst*share)))
	}
	return &budget{describe: limiter(describeRate, describeBurst), mutate: limiter(mutateRate, mutateBurst),
		rules: rate.NewLimiter(rulesRate, rulesBurst), meter: meter, now: now}
}

// perSecond is how many groups a second may be described.
func (b *budget) perSecond() float64 { return float64(b.describe.Limit()) }

// wait takes n calls from a bucket and says in the metrics what for (P064).
func (b *budget) wait(ctx context.Context, l *rate.Limiter, n int, operation, cause string) error {
	start, calls := b.now(), n
	for ; n > 0; n -= min(n, l.Burst()) { // a limiter refuses more than its burst at once
		// Not WaitN: it fails ahead of a deadline, as if the account were at fault
		// for the end of a run.
		turn := l.ReserveN(time.Now(), min(n, l.Burst()))
		if err := pause.For(ctx, turn.Delay()); err != nil {
			turn.Cancel()
			return err
		}
	}
	if waited := b.now().Sub(start); waited > time.Millisecond {
		b.meter.Observe(telemetry.AWSWaitSeconds, waited.Seconds(), telemetry.DimOperation, operation)
	}
	b.meter.Count(telemetry.AWSCallsTotal, float64(calls), telemetry.DimOperation, operation, telemetry.DimCause, cause)
	return nil
}

// owe takes calls from a bucket that were made already: a change of many targets,
// or of some that were refused, is several. Whoever comes next waits for them.
func (b *budget) owe(l *rate.Limiter, n int, operation, cause string) {
	if n <= 0 {
		return
	}
	b.meter.Count(telemetry.AWSCallsTotal, float64(n), telemetry.DimOperation, operation, telemetry.DimCause, cause)
	for ; n > 0; n -= min(n, l.Burst()) {
		l.ReserveN(time.Now(), min(n, l.Burst()))
	}
}

// pacedRules reads rules within our share of the account's rate.
type pacedRules struct {
	reconcile.Rules
	budget *budget
}

func (p pacedRules) List(ctx context.Context) ([]binding.Rule, error) {
	if err := p.budget.wait(ctx, p.budget.rules, 1, "ListRules", "rules"); err != nil {
		return nil, err
	}
	return p.Rules.List(ctx)
}

func (p pacedRules) Targets(ctx context.Context, rule string) ([]binding.Target, error) {
	if err := p.budget.wait(ctx, p.budget.rules, 1, "ListTargetsByRule", "rules"); err != nil {
		return nil, err
	}
	return p.Rules.Targets(ctx, rule)
}

// paced is a group's API within our share of the account's rates.
type paced struct {
	Groups
	budget *budget
	cause  string // what the calls are made for
	had    *bool  // a change's turn was waited for, and not used yet
}

func (p paced) Describe(ctx context.Context, ref binding.GroupRef) (claim.Group, error) {
	if err := p.budget.wait(ctx, p.budget.describe, 1, "DescribeTargetGroups", p.cause); err != nil {
		return claim.Group{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return p.Groups.Describe(ctx, ref)
}

func (p paced) List(ctx context.Context) ([]targetgroup.Listed, error) {
	if err := p.budget.wait(ctx, p.budget.describe, 1, "DescribeTargetGroups", p.cause); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := p.Groups.List(ctx)
	p.budget.owe(p.budget.describe, (len(all)-1)/groupsAPage, "DescribeTargetGroups", p.cause)
	return all, err
}

func (p paced) Health(ctx context.Context, g claim.Group) (map[claim.Key]plan.Target, error) {
	if err := p.budget.wait(ctx, p.budget.describe, 1, "DescribeTargetHealth", p.cause); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return p.Groups.Health(ctx, g)
}

func (p paced) Tags(ctx context.Context, arn string) (map[string]string, error) {
	if err := p.budget.wait(ctx, p.budget.describe, 1, "DescribeTags", p.cause); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return p.Groups.Tags(ctx, arn)
}

const (
	// groupsAPage is how many groups one call of a listing returns.
	groupsAPage = 400
	// tagsACall is how many groups' tags one call returns (API model).
	tagsACall = 20
)

// TagsOf waits for its share call by call: 3,000 groups' tags are 150.
func (p paced) TagsOf(ctx context.Context, arns []string) (map[string]map[string]string, error) {
	all := make(map[string]map[string]string, len(arns))
	for chunk := range slices.Chunk(arns, tagsACall) {
		if err := p.budget.wait(ctx, p.budget.describe, 1, "DescribeTags", p.cause); err != nil {
			return nil, err
		}
		tags, err := p.tagsOf(ctx, chunk)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, tags)
	}
	return all, nil
}

func (p paced) tagsOf(ctx context.Context, arns []string) (map[string]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return p.Groups.TagsOf(ctx, arns)
}

func (p paced) Register(ctx context.Context, g claim.Group, ks []claim.Key, zone string) targetgroup.Result {
	return p.change(ctx, registerTargets, ks, func(ctx context.Context) targetgroup.Result { return p.Groups.Register(ctx, g, ks, zone) })
}

func (p paced) Deregister(ctx context.Context, g claim.Group, ks []claim.Key) targetgroup.Result {
	return p.change(ctx, deregisterTargets, ks, func(ctx context.Context) targetgroup.Result { return p.Groups.Deregister(ctx, g, ks) })
}

// The operations that change targets.
const (
	registerTargets   = "RegisterTargets"
	deregisterTargets = "DeregisterTargets"
)

// turn waits until a change may be made, in advance of the call: what it rests on
// can be looked at once more then.
func (p paced) turn(ctx context.Context, operation string) error {
	if *p.had {
		return nil
	}
	err := p.budget.wait(ctx, p.budget.mutate, 1, operation, p.cause)
	*p.had = err == nil
	return err
}

func (p paced) change(ctx context.Context, operation string, ks []claim.Key, do func(context.Context) targetgroup.Result) targetgroup.Result {
	if err := p.turn(ctx, operation); err != nil {
		return notTried(ks, err)
	}
	*p.had = false
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	res := do(ctx)
	p.budget.owe(p.budget.mutate, res.Calls-1, operation, p.cause)
	return res
}

func notTried(ks []claim.Key, err error) targetgroup.Result {
	r := targetgroup.Result{Failed: make(map[claim.Key]error, len(ks))}
	for _, k := range ks {
		r.Failed[k] = err
	}
	return r
}
