package state

import (
	"container/heap"
	"slices"
	"time"
)

// timer is something that happens to a target: a health check while it is
// registered, its end while it drains.
type timer struct {
	at     time.Time
	target *target
	gen    uint64
}

// timers is a heap, the earliest first.
type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = timer{}
	*t = old[:len(old)-1]
	return last
}

func (t *timers) next() timer { return heap.Pop(t).(timer) }

// add plans a timer. Those of earlier lives are thrown out when there are many,
// so the heap stays within twice the number of targets. The store is locked.
func (s *Store) add(x timer) {
	if len(s.timers) >= s.sweepAt {
		s.timers = slices.DeleteFunc(s.timers, func(t timer) bool { return t.gen != t.target.gen })
		heap.Init(&s.timers)
		s.sweepAt = 2*len(s.timers) + 1024
	}
	heap.Push(&s.timers, x)
	s.signal()
}

// signal wakes who waits for the next timer. The store is locked.
func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wake has a token after a timer was set, so that who sleeps until the time
// that Advance returned can look again.
func (s *Store) Wake() <-chan struct{} { return s.wake }
