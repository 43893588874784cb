package registrar

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/internal/pause"
)

const (
	// groupMaxAge: type, family and port of a group never change; which group a
	// name or tags mean may.
	groupMaxAge = time.Minute
	// maxRemembered bounds each of the caches here; forgetting costs one call.
	maxRemembered = 4096
)

// groupBook remembers what groups are.
type groupBook struct {
	now func() time.Time
	mu  sync.Mutex
	m   map[string]groupEntry
}

type groupEntry struct {
	g    claim.Group
	read time.Time
}

// get returns the group that ref names, from memory or from describe.
func (b *groupBook) get(ctx context.Context, id string, ref binding.GroupRef, describe func(context.Context, binding.GroupRef) (claim.Group, error)) (claim.Group, error) {
	b.mu.Lock()
	e, known := b.m[id]
	b.mu.Unlock()
	if known && b.now().Sub(e.read) < groupMaxAge {
		return e.g, nil
	}
	g, err := describe(ctx, ref)
	if err != nil {
		return claim.Group{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil || len(b.m) >= maxRemembered {
		b.m = map[string]groupEntry{}
	}
	b.m[id] = groupEntry{g, b.now()}
	return g, nil
}

// forget drops a group after it proved gone.
func (b *groupBook) forget(arn string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.m, func(_ string, e groupEntry) bool { return e.g.ARN == arn })
}

// pacer spaces an instance's RegisterTargets calls for one group.
type pacer struct {
	pace time.Duration
	now  func() time.Time
	mu   sync.Mutex
	last map[string]time.Time
}

// due returns how long to wait until group may be registered into again.
func (p *pacer) due(group string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.last[group]
	if !known {
		return 0
	}
	return max(0, p.pace-p.now().Sub(last))
}

func (p *pacer) called(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || len(p.last) >= maxRemembered {
		p.last = map[string]time.Time{}
	}
	p.last[group] = p.now()
}

// Sleep waits for d or the context's end.
func Sleep(ctx context.Context, d time.Duration) error { return pause.For(ctx, d) }
