package functions

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// ports hands out free loopback addresses, none of them twice at a time. Another
// program may still take one before it is listened on: then the start fails and
// is tried with another.
type ports struct {
	mu    sync.Mutex
	taken map[string]bool
}

func newPorts() *ports { return &ports{taken: make(map[string]bool)} }

func (p *ports) take() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("finding a free port: %w", err)
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			return "", fmt.Errorf("finding a free port: %w", err)
		}
		if !p.taken[addr] {
			p.taken[addr] = true
			return addr, nil
		}
	}
}

func (p *ports) give(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, addr)
}

func listening(ctx context.Context, addr string) bool {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return false
	}
	return c.Close() == nil
}
