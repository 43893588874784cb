package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

// DecisionMaxAge is the age of a reading that is still acted on (I3).
const DecisionMaxAge = 2 * time.Second

// TagBook keeps tags as long as a decision is still acted on (I3).
type TagBook struct {
	now func() time.Time
	mu  sync.Mutex
	m   map[string]tagEntry
}

type tagEntry struct {
	tags map[string]string
	read time.Time
}

// NewTagBook returns an empty book.
func NewTagBook(now func() time.Time) *TagBook { return &TagBook{now: now} }

// Limits are the strictest rails of the group's bindings bs, with the owner's and
// the operators' word on group and bus. Whether everything was read to the end
// (Complete) is the caller's to say.
func (t *TagBook) Limits(ctx context.Context, busARN string, rules Rules, api Groups, g claim.Group, bs []binding.Binding) (plan.Limits, error) {
	group, err := t.Group(ctx, api, g.ARN)
	if err != nil {
		return plan.Limits{}, err
	}
	busTags, err := t.of(ctx, busARN, rules.Tags)
	if err != nil {
		return plan.Limits{}, err
	}
	lim := plan.Limits{Owned: binding.Owns(group[binding.OwnerTag], busARN, g.ARN), Frozen: binding.Frozen(group) || binding.Frozen(busTags), MaxRemovalPercent: 100}
	for i := range bs {
		lim.MaxRemovalPercent = min(lim.MaxRemovalPercent, bs[i].MaxRemovalPercent)
		lim.MinTargets = max(lim.MinTargets, bs[i].MinTargets)
		lim.Owned = lim.Owned && !bs[i].KeepForeign
	}
	return lim, nil
}

// Group returns the tags of a group.
func (t *TagBook) Group(ctx context.Context, api Groups, arn string) (map[string]string, error) {
	return t.of(ctx, arn, api.Tags)
}

func (t *TagBook) of(ctx context.Context, arn string, read func(context.Context, string) (map[string]string, error)) (map[string]string, error) {
	t.mu.Lock()
	e, known := t.m[arn]
	t.mu.Unlock()
	if known && t.now().Sub(e.read) < DecisionMaxAge {
		return e.tags, nil
	}
	at := t.now()
	tags, err := read(ctx, arn)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil || len(t.m) >= maxRemembered {
		t.m = map[string]tagEntry{}
	}
	t.m[arn] = tagEntry{tags, at}
	return tags, nil
}
