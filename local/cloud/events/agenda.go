package events

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// agenda is what has to be delivered, and when.
type agenda struct {
	clock core.Clock

	mu     sync.Mutex
	due    dueHeap
	number uint64        // keeps the order of what is due at once
	wake   chan struct{} // closed and renewed with each addition
	rand   *rand.Rand
}

func newAgenda(clock core.Clock, seed uint64) *agenda {
	return &agenda{clock: clock, wake: make(chan struct{}), rand: rand.New(rand.NewPCG(seed, 1))}
}

func (a *agenda) add(d *delivery, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d.due, d.number = at, a.number
	a.number++
	heap.Push(&a.due, d)
	close(a.wake)
	a.wake = make(chan struct{})
}

// length is the number of deliveries that wait.
func (a *agenda) length() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.due)
}

// next waits for the delivery that is due first. It returns nil when ctx ends.
func (a *agenda) next(ctx context.Context) *delivery {
	for ctx.Err() == nil {
		a.mu.Lock()
		now, wake := a.clock.Now(), a.wake
		if len(a.due) > 0 && !a.due[0].due.After(now) {
			d := heap.Pop(&a.due).(*delivery)
			a.mu.Unlock()
			return d
		}
		var timer <-chan time.Time
		stop := func() {}
		if len(a.due) > 0 {
			timer, stop = a.clock.After(a.due[0].due.Sub(now))
		}
		a.mu.Unlock()
		select {
		case <-wake:
		case <-timer:
		case <-ctx.Done():
		}
		stop()
	}
	return nil
}

// Longest pause between two attempts: 185 of them fill a day.
const maxPause = 8 * time.Minute

// pause is how long to wait after the given number of attempts: exponential,
// with jitter.
func (a *agenda) pause(attempts int) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	base := maxPause
	if attempts < 9 {
		base = min(maxPause, time.Second<<attempts)
	}
	return base/2 + time.Duration(a.rand.Int64N(int64(base)))
}

type dueHeap []*delivery

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].number < h[j].number
	}
	return h[i].due.Before(h[j].due)
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface's.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(*delivery)) }

// Pop is heap.Interface's.
func (h *dueHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}
