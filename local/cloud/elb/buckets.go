package elb

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// Bucket is a token bucket: so many calls at once, and so many a second after.
// A Burst of 0 is no limit.
type Bucket struct {
	Burst     int
	PerSecond float64
}

// Buckets are the rate limits of an account in a region. Each kind of call has
// a bucket of its own.
type Buckets struct {
	Describe Bucket // Describe*
	Targets  Bucket // RegisterTargets and DeregisterTargets together
	Modify   Bucket // everything else

	// Code is that of the error: Throttling, which SDKs see, if it is empty.
	// (The guide calls it ThrottlingException; SDKs know both.)
	Code string
}

// DefaultBuckets are those of an AWS account.
func DefaultBuckets() Buckets {
	return Buckets{
		Describe: Bucket{Burst: 40, PerSecond: 10},
		Targets:  Bucket{Burst: 20, PerSecond: 4},
		Modify:   Bucket{Burst: 20, PerSecond: 3},
	}
}

// limiters holds the buckets of all accounts and regions.
type limiters struct {
	cfg Buckets
	mu  sync.Mutex
	by  map[limiterKey]*rate.Limiter
}

type limiterKey struct {
	core.Scope
	kind string
}

func newLimiters(cfg Buckets) *limiters {
	if cfg.Code == "" {
		cfg.Code = "Throttling"
	}
	return &limiters{cfg: cfg, by: map[limiterKey]*rate.Limiter{}}
}

// take takes a token for a call, or returns the error that the caller gets.
func (l *limiters) take(sc core.Scope, operation string, now time.Time) error {
	kind, b := "modify", l.cfg.Modify
	switch {
	case strings.HasPrefix(operation, "Describe"):
		kind, b = "describe", l.cfg.Describe
	case operation == "RegisterTargets", operation == "DeregisterTargets":
		kind, b = "targets", l.cfg.Targets
	}
	if b.Burst == 0 {
		return nil
	}
	k := limiterKey{sc, kind}
	l.mu.Lock()
	defer l.mu.Unlock()
	lim := l.by[k]
	if lim == nil {
		lim = rate.NewLimiter(rate.Limit(b.PerSecond), b.Burst)
		l.by[k] = lim
	}
	if !lim.AllowN(now, 1) {
		return core.Errorf(l.cfg.Code, "Rate exceeded")
	}
	return nil
}
