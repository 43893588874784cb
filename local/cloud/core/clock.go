package core

import (
	"slices"
	"sync"
	"time"
)

// Clock is where the local cloud takes its time from.
type Clock interface {
	Now() time.Time
	// After returns a channel that gets the time once d has passed, and a
	// function that gives the timer up. A timer that is not positive fires at
	// once.
	After(d time.Duration) (<-chan time.Time, func())
}

// RealClock is the machine's clock.
type RealClock struct{}

// Now returns the time.
func (RealClock) Now() time.Time { return time.Now() }

// After starts a timer.
func (RealClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// FakeClock stands still until it is told to move.
type FakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*fakeTimer
	armed  chan struct{} // closed and renewed with each new timer
}

type fakeTimer struct {
	at time.Time
	c  chan time.Time
}

// NewFakeClock returns a clock that says start.
func NewFakeClock(start time.Time) *FakeClock {
	return &FakeClock{now: start, armed: make(chan struct{})}
}

// Now returns the clock's time.
func (f *FakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// After starts a timer that Step fires.
func (f *FakeClock) After(d time.Duration) (<-chan time.Time, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{at: f.now.Add(d), c: make(chan time.Time, 1)}
	if d <= 0 {
		t.c <- f.now
		return t.c, func() {}
	}
	f.timers = append(f.timers, t)
	close(f.armed)
	f.armed = make(chan struct{})
	return t.c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.timers = slices.DeleteFunc(f.timers, func(o *fakeTimer) bool { return o == t })
	}
}

// Step moves the clock and fires what is due.
func (f *FakeClock) Step(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	f.timers = slices.DeleteFunc(f.timers, func(t *fakeTimer) bool {
		if t.at.After(f.now) {
			return false
		}
		t.c <- f.now
		return true
	})
}

// Timers returns the number of timers that wait, and a channel that is closed
// when the next one is started: a test that steps the clock first waits until
// somebody sleeps on it.
func (f *FakeClock) Timers() (int, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers), f.armed
}
