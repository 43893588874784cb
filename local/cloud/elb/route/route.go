// Package route is what a load balancer forwards to, as a value: the state of
// the API produces a [Table], the data plane carries it out. It decides
// nothing and talks to nobody.
package route

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// Kind is the type of a load balancer.
type Kind string

// The kinds that have a data plane.
const (
	Application Kind = "application"
	Network     Kind = "network"
)

// Key is how a target group knows a target: the same id may be registered with
// several ports.
type Key struct {
	ID   string // an IP address in its short form, or an instance id
	Port int32  // 1..65535
}

// Table is all that a load balancer's data plane needs, at one moment.
type Table struct {
	Balancer    string // ARN
	Version     uint64 // grows with each change; the data plane ignores an older one
	Kind        Kind
	IdleTimeout time.Duration // how long a target may be silent
	Listeners   map[string]Listener
	Groups      map[string]Group // by ARN: those that a listener forwards to
}

// Listener is a port and what happens to what comes in there.
type Listener struct {
	ARN    string
	Port   int32
	Action Action
}

// Action is one of the three: a forward, a fixed response or a redirect.
type Action struct {
	Forward  []Weighted
	Fixed    *Fixed
	Redirect *Redirect
}

// Weighted is a target group and its share, 0..999.
type Weighted struct {
	GroupARN string
	Weight   int32
}

// Fixed is a response that the load balancer gives itself.
type Fixed struct {
	Status      int
	ContentType string
	Body        string
}

// Redirect is a redirect with the placeholders #{protocol}, #{host}, #{port},
// #{path} and #{query}.
type Redirect struct {
	Status                            int
	Protocol, Host, Port, Path, Query string
}

// Algorithm is how a target is chosen.
type Algorithm string

// The algorithms of target groups.
const (
	RoundRobin       Algorithm = "round_robin"
	LeastOutstanding Algorithm = "least_outstanding_requests"
	WeightedRandom   Algorithm = "weighted_random"
)

// Group is a target group as the data plane sees it.
type Group struct {
	ARN       string
	Protocol  string // HTTP, HTTPS or TCP
	Algorithm Algorithm

	// With fewer healthy targets than these, all registered ones get traffic.
	MinHealthyCount   int
	MinHealthyPercent int // 0 is off

	// CutAtEnd closes what is left of a target's connections when its
	// deregistration delay is over.
	CutAtEnd bool
	// CutUnhealthy closes a target's connections when it turns unhealthy.
	CutUnhealthy bool

	Targets []Target // sorted; those that drain included
}

// Target is a target as the data plane sees it.
type Target struct {
	Key
	Addr     netip.AddrPort // where it is, as published
	Draining bool           // gets nothing new
	Health   *Health
}

// Health is whether a target is healthy. It is shared by the health checks and
// the data plane, so a change reaches all tables at once.
type Health struct{ healthy atomic.Bool }

// Healthy says whether the target may get traffic.
func (h *Health) Healthy() bool { return h.healthy.Load() }

// Set is called by the state of the target.
func (h *Health) Set(healthy bool) { h.healthy.Store(healthy) }
