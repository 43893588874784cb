package node

import (
	"context"
	"sync"
)

// link is a node's connection to the API server: up, or cut.
type link struct {
	mu     sync.Mutex
	ctx    context.Context // ends when the link is cut; nil while it is
	cancel context.CancelFunc
	wake   chan struct{} // closed when the link comes up
}

func newLink() *link { return &link{wake: make(chan struct{})} }

// up connects, for as long as parent lives. It does nothing if the link is up.
func (l *link) up(parent context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx != nil {
		return
	}
	l.ctx, l.cancel = context.WithCancel(parent)
	close(l.wake)
}

// cut breaks every call under way.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		return
	}
	l.cancel()
	l.ctx, l.wake = nil, make(chan struct{})
}

func (l *link) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx != nil
}

// wait returns the connection's context once the link is up.
func (l *link) wait(ctx context.Context) (context.Context, error) {
	for {
		l.mu.Lock()
		up, wake := l.ctx, l.wake
		l.mu.Unlock()
		if up != nil {
			return up, up.Err() // ended already: the agent is stopping
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-wake:
		}
	}
}

// both ends when either context does.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}
