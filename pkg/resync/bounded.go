package resync

import (
	"context"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/reconcile"
)

// How long a call may take, the SDK's attempts included: it has no limit of its
// own, and a round ends when its last call does (P092).
const (
	readTimeout   = 15 * time.Second
	changeTimeout = time.Minute // of one group: up to some dozen calls
	sendTimeout   = endReserve / 2
)

// boundedRules are rules whose readings end.
type boundedRules struct{ reconcile.Rules }

func (b boundedRules) List(ctx context.Context) ([]binding.Rule, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return b.Rules.List(ctx)
}

func (b boundedRules) Targets(ctx context.Context, rule string) ([]binding.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return b.Rules.Targets(ctx, rule)
}

func (b boundedRules) Tags(ctx context.Context, busARN string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return b.Rules.Tags(ctx, busARN)
}

// send puts events on the bus, also when the run is over: what they tell of was
// done (I10).
func (r *Resync) send(ctx context.Context, entries []bus.Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	r.hands.Send(ctx, entries)
}
