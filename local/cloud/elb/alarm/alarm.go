// Package alarm waits for a moment on a clock that somebody else may move.
package alarm

import (
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// slack is how much a clock may have moved while a timer was set.
const slack = 10 * time.Millisecond

// At returns a channel that gets the time when clock reaches the moment, and a
// function that gives the timer up. A clock takes durations, and may be moved
// between reading it and setting the timer: then the timer is set again.
func At(clock core.Clock, moment time.Time) (<-chan time.Time, func()) {
	for {
		now := clock.Now()
		c, cancel := clock.After(moment.Sub(now))
		if clock.Now().Sub(now) < slack {
			return c, cancel
		}
		cancel()
	}
}
