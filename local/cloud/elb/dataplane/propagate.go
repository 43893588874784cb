package dataplane

import (
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/alarm"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// queue holds the tables that the data plane doesn't know yet. Tables that
// come close together (a twentieth of the delay) are one, so it stays short.
type queue struct {
	mu      sync.Mutex
	pending []announced
	wake    chan struct{}
}

type announced struct {
	first, due time.Time
	table      route.Table
}

// Announce makes a table known; traffic follows it after the propagation delay.
func (p *Plane) Announce(t route.Table) {
	delay := p.cfg.Propagation()
	if delay <= 0 {
		p.Apply(t) // what still waits is older, and ignored when its time comes
		return
	}
	due := p.cfg.Clock.Now().Add(delay)
	q := &p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.pending); n > 0 && due.Sub(q.pending[n-1].first) < delay/20 {
		q.pending[n-1].due, q.pending[n-1].table = due, t
		return
	}
	q.pending = append(q.pending, announced{first: due, due: due, table: t})
	if len(q.pending) > 1 {
		return // who waits for the first comes to this one after it
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// propagate applies tables as they fall due, until the plane is closed.
func (p *Plane) propagate() {
	for {
		table, next, ok := p.queue.take(p.cfg.Clock.Now())
		if ok {
			p.Apply(table)
			continue
		}
		var due <-chan time.Time // nil, and so never, while nothing waits
		cancel := func() {}
		if !next.IsZero() {
			due, cancel = alarm.At(p.cfg.Clock, next)
		}
		select {
		case <-due:
		case <-p.queue.wake:
		case <-p.stop:
			cancel()
			return
		}
		cancel()
	}
}

// take returns the oldest table if it is due, or when it will be; zero if there
// is none.
func (q *queue) take(now time.Time) (t route.Table, next time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		return t, next, false
	}
	if due := q.pending[0].due; due.After(now) {
		return t, due, false
	}
	t = q.pending[0].table
	q.pending = append(q.pending[:0], q.pending[1:]...)
	return t, next, true
}
