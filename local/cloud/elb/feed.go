package elb

import (
	"context"
	"log/slog"
	"sync"
)

// feedBound is how many changes wait for a slow receiver before the oldest are
// forgotten.
const feedBound = 1 << 16

// feed hands changes to their receiver in order, without holding up who makes
// them.
type feed struct {
	to   func(Change)
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	waiting []Change
	lost    int
}

func newFeed(to func(Change), log *slog.Logger) *feed {
	return &feed{to: to, log: log, wake: make(chan struct{}, 1)}
}

func (f *feed) add(c Change) {
	if f.to == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == feedBound {
		f.waiting = f.waiting[1:]
		f.lost++
	}
	f.waiting = append(f.waiting, c)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run delivers until ctx ends, and then what is still waiting.
func (f *feed) run(ctx context.Context) {
	for {
		f.deliver()
		select {
		case <-f.wake:
		case <-ctx.Done():
			f.deliver()
			return
		}
	}
}

func (f *feed) deliver() {
	f.mu.Lock()
	batch, lost := f.waiting, f.lost
	f.waiting, f.lost = nil, 0
	f.mu.Unlock()
	if lost > 0 {
		f.log.Warn("changes of targets were not shown: the receiver is too slow", "lost", lost)
	}
	for _, c := range batch {
		f.to(c)
	}
}
