package state

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"
)

// Probe is a health check to be made.
type Probe struct {
	GroupARN string
	Target   Key
	Addr     netip.AddrPort
	Check    Check

	target *target
	gen    uint64
}

// Outcome is how a health check ended.
type Outcome int

// The outcomes of a health check.
const (
	Passed   Outcome = iota
	Mismatch         // answered, with another code than the group wants
	TimedOut
	Failed // no connection, or no sensible answer
)

// Result is the result of a probe.
type Result struct {
	Outcome Outcome
	Code    int // of an HTTP answer
}

func (r Result) status() Status {
	switch r.Outcome {
	case Mismatch:
		return status("unhealthy", "Target.ResponseCodeMismatch", fmt.Sprintf("Health checks failed with these codes: [%d]", r.Code))
	case TimedOut:
		return status("unhealthy", "Target.Timeout", "Request timed out")
	default:
		return status("unhealthy", "Target.FailedHealthChecks", "Health checks failed")
	}
}

// Advance does what is due: deregistration delays end, and the health checks
// to be made now are returned. next is when there is more to do; zero means
// not before Wake. Each probe returned wants one Observe.
func (s *Store) Advance(now time.Time) (due []Probe, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := map[*group]bool{}
	for len(s.timers) > 0 && !s.timers[0].at.After(now) {
		e := s.timers.next()
		t := e.target
		if e.gen != t.gen {
			continue
		}
		if t.phase == draining {
			delete(t.group.targets, t.Key)
			t.gen++
			s.changed(t, statusDraining, Status{}, now)
			touched[t.group] = true
			continue
		}
		if t.phase == registering {
			t.phase = checking
			s.changed(t, statusRegistering, statusChecking, now)
		}
		due = append(due, s.probe(t))
	}
	for g := range touched {
		s.publishGroup(g)
	}
	if len(s.timers) > 0 {
		next = s.timers[0].at
	}
	return due, next
}

// probe describes the next health check of a target.
func (s *Store) probe(t *target) Probe {
	c := t.group.Check
	port := t.Port
	if c.Port != TrafficPort {
		n, _ := strconv.ParseUint(c.Port, 10, 16) // checked when it was set
		port = int32(n)
	}
	return Probe{
		GroupARN: t.group.ARN, Target: t.Key, Addr: netip.AddrPortFrom(t.addr, uint16(port)), Check: c,
		target: t, gen: t.gen,
	}
}

// Observe takes the result of a probe that was begun at start, and plans the
// target's next one. The result of a target that has been deregistered or
// registered again since counts for nothing.
func (s *Store) Observe(p Probe, r Result, start, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := p.target
	if t.gen != p.gen || t.phase == draining || t.phase == unused {
		return
	}
	before := t.status()
	t.count(r)
	if to := t.status(); to != before {
		t.health.Set(t.phase == healthy)
		s.changed(t, before, to, now)
		if t.phase == unhealthy && before.State == "healthy" && t.group.attributes[attrUnhealthyTermination] == "true" {
			for _, b := range t.group.Balancers {
				s.cfg.Unhealthy(b, t.group.ARN, t.Key)
			}
		}
	}
	at := start.Add(s.cfg.CheckInterval(t.group.Check.Interval))
	if at.Before(now) {
		at = now
	}
	s.add(timer{at: at, target: t, gen: t.gen})
}

// count adds a result to the streak and moves the target when it is long enough.
func (t *target) count(r Result) {
	if r.Outcome == Passed {
		t.ups, t.downs = t.ups+1, 0
		if t.phase != healthy && t.ups >= t.group.Check.HealthyThreshold {
			t.phase = healthy
		}
		return
	}
	t.ups, t.downs = 0, t.downs+1
	if t.phase == unhealthy || t.downs >= t.group.Check.UnhealthyThreshold {
		t.phase, t.why = unhealthy, r.status()
	}
}
