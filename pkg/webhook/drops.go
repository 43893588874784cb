package webhook

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
)

// Causes of dropped pod events, a closed set.
const (
	causeQueueFull = "queue_full"
	causeExpired   = "expired" // waited longer than a hint is good for
	causeShutdown  = "shutdown"
	causeTooLarge  = "too_large"
	causeThrottled = "throttled"
	causeDenied    = "denied"
	causeRefused   = "refused"
)

// dropCause tells why the publisher did not send an entry.
func dropCause(u bus.Unsent, stopping bool) string {
	switch {
	case u.Code == bus.CodeInterrupted && stopping:
		return causeShutdown
	case u.Code == bus.CodeInterrupted, u.Code == bus.CodeUnreachable:
		return causeExpired
	case u.Code == bus.CodeTooLarge:
		return causeTooLarge
	case strings.Contains(u.Code, "Throttl"), u.Code == "InternalFailure":
		return causeThrottled
	case strings.HasPrefix(u.Code, "AccessDenied"), strings.HasPrefix(u.Code, "NotAuthorized"):
		return causeDenied
	default:
		return causeRefused
	}
}

// ledger counts drops until an "Events Dropped" event has told of them.
type ledger struct {
	mu     sync.Mutex
	since  time.Time // of the first drop not yet told of
	total  uint64    // since the start
	causes map[string]uint64
}

func (l *ledger) add(cause string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.causes) == 0 {
		l.causes = map[string]uint64{}
		l.since = at
	}
	l.causes[cause]++
	l.total++
}

// pending returns what has not been told of, or nil.
func (l *ledger) pending() (causes map[string]uint64, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.causes) == 0 {
		return nil, time.Time{}
	}
	return maps.Clone(l.causes), l.since
}

// told takes off what an event has told of by now.
func (l *ledger) told(causes map[string]uint64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for cause, n := range causes {
		if l.causes[cause] -= n; l.causes[cause] == 0 {
			delete(l.causes, cause)
		}
	}
	l.since = at
}

func (l *ledger) dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
