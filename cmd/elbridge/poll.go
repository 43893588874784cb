package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// Waits between two looks: far below what an account may ask a second, also when
// several pipelines wait at once.
const (
	pollEvery = 2 * time.Second
	pollSlow  = 30 * time.Second // at most, while AWS says that we ask too often
)

// poller looks again and again, until there is something to see or the time is up.
type poller struct {
	now   func() time.Time
	pause func(context.Context, time.Duration) error
}

func newPoller() poller { return poller{now: time.Now, pause: pauseFor} }

// until calls look until it says that it is done or fails, and says whether it was
// done within the timeout. Look says too whether it was told to ask less often. It
// looks at least once, and once more at the end.
func (p poller) until(ctx context.Context, timeout time.Duration, look func() (done, slower bool, err error)) (bool, error) {
	end := p.now().Add(timeout)
	wait := pollEvery
	for {
		done, slower, err := look()
		if err != nil || done {
			return done, err
		}
		left := end.Sub(p.now())
		if left <= 0 {
			return false, nil
		}
		if slower {
			wait = min(2*wait, pollSlow)
		} else {
			wait = pollEvery
		}
		if err := p.pause(ctx, min(left, jittered(wait))); err != nil {
			return false, err
		}
	}
}

// jittered is d, give or take a quarter: those who start together don't ask together.
func jittered(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2)
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
