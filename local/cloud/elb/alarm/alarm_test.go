package alarm_test

import (
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/alarm"
)

// moving is a clock that somebody moves just before a timer is set, once.
type moving struct {
	*core.FakeClock
	by time.Duration
}

func (m *moving) After(d time.Duration) (<-chan time.Time, func()) {
	m.Step(m.by)
	m.by = 0
	return m.FakeClock.After(d)
}

func TestAt(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, by := range map[string]time.Duration{"stands still": 0, "is moved": 9 * time.Second, "is moved past": time.Minute} {
		t.Run(name, func(t *testing.T) {
			clock := &moving{core.NewFakeClock(start), by}
			c, cancel := alarm.At(clock, start.Add(10*time.Second))
			defer cancel()
			clock.Step(max(0, 10*time.Second-by))
			select {
			case <-c:
			default:
				t.Error("not fired at its moment")
			}
			if n, _ := clock.Timers(); n != 0 {
				t.Errorf("%d timers are left", n)
			}
		})
	}
}
