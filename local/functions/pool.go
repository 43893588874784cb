package functions

import (
	"context"
	"sync"
	"time"
)

// A pool holds the instances of one function. The one used last is used next,
// so that the others can grow old.
type pool struct {
	fn    Function
	start launch

	mu    sync.Mutex
	idle  []*member        // frozen; the last one was used last
	busy  map[*member]bool // each runs an invocation
	size  int              // idle, busy and starting
	stats Stats
}

type member struct {
	id       string
	instance instance
	used     time.Time // when it was last let go
}

// Stats counts what happened to one function since the Runner was made.
type Stats struct {
	Invocations   int // that reached an instance
	Errors        int // of the function, time-outs and crashes included
	Timeouts      int
	Crashes       int // the process exited
	Throttles     int
	Lost          int // emulator or instance broke; neither answer nor error
	ColdStarts    int
	Reaped        int // instances ended for idleness
	Dropped       int // asynchronous events given up
	Concurrent    int // running now
	MaxConcurrent int
	Instances     int // idle, busy and starting now
}

// acquire returns a thawed instance that nobody else uses: an idle one, or a new
// one (cold) if there may be one more.
func (p *pool) acquire(ctx context.Context, newID func(*pool) string) (m *member, cold bool, err error) {
	for {
		m, err = p.take()
		if err != nil {
			return nil, false, err
		}
		if m == nil {
			break
		}
		if m.instance.healthy() && m.instance.thaw() == nil {
			p.run(m)
			return m, false, nil
		}
		p.discard(m, func(s *Stats) { s.Crashes++; s.Invocations-- }) // died while idle: another takes its place
	}
	id := newID(p)
	i, err := p.start(ctx, p.fn, id)
	if err != nil {
		p.count(func(s *Stats) { p.size--; s.Concurrent--; s.Invocations--; s.Lost++ })
		return nil, true, err
	}
	m = &member{id: id, instance: i}
	p.run(m)
	return m, true, nil
}

// run notes that a member is about to run an invocation.
func (p *pool) run(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == nil {
		p.busy = map[*member]bool{}
	}
	p.busy[m] = true
}

// take reserves an idle member, or room for a new one (nil).
func (p *pool) take() (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 && p.size >= p.fn.MaxConcurrency {
		p.stats.Throttles++
		return nil, ErrThrottled
	}
	p.stats.Invocations++
	p.stats.Concurrent++
	p.stats.MaxConcurrent = max(p.stats.MaxConcurrent, p.stats.Concurrent)
	if n == 0 {
		p.size++
		p.stats.ColdStarts++
		return nil, nil // start one
	}
	m := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return m, nil
}

// release counts how the invocation went, freezes the instance and keeps it for
// the next one, or ends it if it is of no more use.
func (p *pool) release(m *member, now time.Time, out outcome, err error) {
	p.count(func(s *Stats) {
		delete(p.busy, m)
		switch {
		case err != nil:
			s.Lost++
		case out.failed:
			s.Errors++
			if out.errorType == errorTypeTimeout {
				s.Timeouts++
			} else if out.spent {
				s.Crashes++
			}
		}
	})
	if out.spent || err != nil || m.instance.freeze() != nil {
		p.discard(m, func(s *Stats) {})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m.used = now
	p.stats.Concurrent--
	p.idle = append(p.idle, m)
}

// discard ends a busy member and waits for its end.
func (p *pool) discard(m *member, also func(*Stats)) {
	m.instance.end()
	p.count(func(s *Stats) {
		p.size--
		s.Concurrent--
		also(s)
	})
}

// kill kills the functions that run an invocation now and returns how many.
func (p *pool) kill() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for m := range p.busy {
		if m.instance.kill() {
			n++
		}
	}
	return n
}

func (p *pool) endIdle(which func(*member) bool) {
	p.mu.Lock()
	var old, kept []*member
	for _, m := range p.idle {
		if which(m) {
			old = append(old, m)
		} else {
			kept = append(kept, m)
		}
	}
	p.idle = kept
	p.size -= len(old)
	p.stats.Reaped += len(old)
	p.mu.Unlock()
	for _, m := range old {
		m.instance.end()
	}
}

func (p *pool) count(change func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}

// Stats returns the counts of a function; all zero for an unknown one.
func (r *Runner) Stats(name string) Stats {
	p, ok := r.pools[name]
	if !ok {
		return Stats{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Instances = p.size
	return s
}
