package state

import (
	"net/netip"
	"slices"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// phase is where a target is in its life.
type phase int

const (
	unused      phase = iota // no listener forwards to its group, or its zone is not enabled
	registering              // initial: not yet checked
	checking                 // initial: checked, not often enough
	healthy
	unhealthy
	draining
)

// target is a registered target, or one that drains.
type target struct {
	Key
	group *group
	addr  netip.Addr
	zone  string // where it is; "all" for one outside the VPC that said so
	shown string // what DescribeTargetHealth says for the zone

	phase      phase
	registered time.Time
	gen        uint64        // timers and checks of an older one mean nothing
	why        Status        // of unused and unhealthy
	ups, downs int           // successes and failures in a row
	health     *route.Health // shared with the data plane
}

// The statuses that need no more than themselves.
var (
	statusRegistering = status("initial", "Elb.RegistrationInProgress", "Target registration is in progress")
	statusChecking    = status("initial", "Elb.InitialHealthChecking", "Initial health checks in progress")
	statusHealthy     = status("healthy", "", "")
	statusDraining    = status("draining", "Target.DeregistrationInProgress", "Target deregistration is in progress")
	statusNotInUse    = status("unused", "Target.NotInUse", "Target group is not configured to receive traffic from the load balancer")
	statusZone        = status("unused", "Target.NotInUse", "Target is in an Availability Zone that is not enabled for the load balancer")
	statusStopped     = status("unused", "Target.InvalidState", "Target is in the stopped state")
	statusAbsent      = status("unused", "Target.NotRegistered", "Target is not registered to the target group")
)

func (t *target) status() Status {
	switch t.phase {
	case registering:
		return statusRegistering
	case checking:
		return statusChecking
	case healthy:
		return statusHealthy
	case draining:
		return statusDraining
	default:
		return t.why
	}
}

// live says whether the target counts as registered.
func (t *target) live() bool { return t.phase != draining }

// place puts a registered target at the start of its life, or among the
// unused. The store is locked; the caller publishes the routes.
func (s *Store) place(t *target, now time.Time) {
	before := t.status()
	t.gen++
	t.ups, t.downs = 0, 0
	t.health = &route.Health{}
	if why, ok := s.usable(t); !ok {
		t.phase, t.why = unused, why
	} else {
		t.phase = registering
		s.add(timer{at: now.Add(s.cfg.RegistrationDelay(s.kindOf(t.group))), target: t, gen: t.gen})
	}
	if t.registered.IsZero() {
		t.registered, before = now, Status{}
	}
	s.changed(t, before, t.status(), now)
}

// usable says whether a target's group is in use and its zone enabled.
func (s *Store) usable(t *target) (Status, bool) {
	g := t.group
	if len(g.Balancers) == 0 {
		return statusNotInUse, false
	}
	if g.TargetType == TypeInstance {
		if in, ok := s.cfg.Instance(t.ID); !ok || !in.Running {
			return statusStopped, false
		}
	}
	b := g.scope.balancers[g.Balancers[0]]
	enabled := slices.ContainsFunc(b.Subnets, func(n Subnet) bool { return n.Zone == t.zone })
	if t.zone != "all" && !enabled {
		return statusZone, false
	}
	return Status{}, true
}

func (s *Store) kindOf(g *group) route.Kind {
	if len(g.Balancers) == 0 {
		return route.Application
	}
	return g.scope.balancers[g.Balancers[0]].Kind
}

func (s *Store) changed(t *target, from, to Status, now time.Time) {
	if from == to {
		return
	}
	s.cfg.Change(Change{
		Time: now, Scope: t.group.scope.Scope, GroupARN: t.group.ARN, GroupName: t.group.Name,
		Target: t.Key, From: from, To: to, Since: now.Sub(t.registered),
	})
}
