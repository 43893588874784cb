package registrar

import (
	"context"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/internal/pause"
)

// maxPaced bounds the memory of calls; forgetting costs one call.
const maxPaced = 4096

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
	if p.last == nil || len(p.last) >= maxPaced {
		p.last = map[string]time.Time{}
	}
	p.last[group] = p.now()
}

// Sleep waits for d or the context's end.
func Sleep(ctx context.Context, d time.Duration) error { return pause.For(ctx, d) }
