package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// Config is what the state depends on. The zero value of an optional field is
// what AWS does.
type Config struct {
	VPCs   []VPC
	Limits Limits
	// Instance finds an EC2 instance by its id.
	Instance func(id string) (Instance, bool)
	// NewID returns 16 hex digits, another each time.
	NewID func() string
	// RegistrationDelay is how long a target stays in Elb.RegistrationInProgress
	// before its first health check. Optional.
	RegistrationDelay func(route.Kind) time.Duration
	// CheckInterval turns the interval of a group into the one that is kept, so
	// that a test need not wait 5 s. Optional.
	CheckInterval func(time.Duration) time.Duration

	// Route is told what a load balancer forwards to, whenever that changes;
	// a load balancer that was deleted gets no more. Optional.
	Route func(route.Table)
	// Unhealthy is told of a target that turned unhealthy while its group wants
	// such connections closed. Optional.
	Unhealthy func(balancer, group string, target Key)
	// Change is told of every change of a target. Optional.
	Change func(Change)
}

// Change is one step of a target's life.
type Change struct {
	Time      time.Time
	Scope     core.Scope
	GroupARN  string
	GroupName string
	Target    Key
	From, To  Status        // From is empty for a new target, To for one that is gone
	Since     time.Duration // since its registration
}

// Store holds the resources of all accounts and regions. Its methods may be
// called from many goroutines.
type Store struct {
	cfg Config

	mu      sync.Mutex
	scopes  map[core.Scope]*scope
	timers  timers
	sweepAt int           // length of timers at which stale ones go
	wake    chan struct{} // has a token when an earlier timer was set
	version uint64
}

// scope is what one account has in one region.
type scope struct {
	core.Scope
	groups    map[string]*group    // by ARN
	balancers map[string]*balancer // by ARN
	listeners map[string]*listener // by ARN
}

type group struct {
	Group
	scope      *scope
	attributes map[string]string
	tags       map[string]string
	targets    map[Key]*target
}

type balancer struct {
	Balancer
	attributes map[string]string
	tags       map[string]string
}

type listener struct {
	Listener
	tags map[string]string
}

// New returns an empty store.
func New(cfg Config) *Store {
	if cfg.RegistrationDelay == nil {
		cfg.RegistrationDelay = func(route.Kind) time.Duration { return 0 }
	}
	if cfg.CheckInterval == nil {
		cfg.CheckInterval = func(d time.Duration) time.Duration { return d }
	}
	if cfg.Instance == nil {
		cfg.Instance = func(string) (Instance, bool) { return Instance{}, false }
	}
	if cfg.Route == nil {
		cfg.Route = func(route.Table) {}
	}
	if cfg.Unhealthy == nil {
		cfg.Unhealthy = func(string, string, Key) {}
	}
	if cfg.Change == nil {
		cfg.Change = func(Change) {}
	}
	return &Store{cfg: cfg, scopes: map[core.Scope]*scope{}, wake: make(chan struct{}, 1)}
}

// Limits returns the quotas.
func (s *Store) Limits() Limits { return s.cfg.Limits }

// scope returns the account's part of a region, made when it is first used.
// The store is locked.
func (s *Store) scope(sc core.Scope) *scope {
	a := s.scopes[sc]
	if a == nil {
		a = &scope{
			Scope:     sc,
			groups:    map[string]*group{},
			balancers: map[string]*balancer{},
			listeners: map[string]*listener{},
		}
		s.scopes[sc] = a
	}
	return a
}

func (s *Store) vpc(sc core.Scope, id string) (VPC, bool) {
	for _, v := range s.cfg.VPCs {
		if v.ID == id && (v.Account == "" || v.Account == sc.Account) {
			return v, true
		}
	}
	return VPC{}, false
}

func (a *scope) group(arn string) (*group, error) {
	if g := a.groups[arn]; g != nil {
		return g, nil
	}
	if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":targetgroup/") {
		return nil, core.Errorf("ValidationError", "'%s' is not a valid target group ARN", arn)
	}
	return nil, core.Errorf("TargetGroupNotFound", "Target groups '%s' not found", arn)
}

func (a *scope) balancer(arn string) (*balancer, error) {
	if b := a.balancers[arn]; b != nil {
		return b, nil
	}
	if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":loadbalancer/") {
		return nil, core.Errorf("ValidationError", "'%s' is not a valid load balancer ARN", arn)
	}
	return nil, core.Errorf("LoadBalancerNotFound", "Load balancer '%s' not found", arn)
}

func (a *scope) listener(arn string) (*listener, error) {
	if l := a.listeners[arn]; l != nil {
		return l, nil
	}
	if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":listener/") {
		return nil, core.Errorf("ValidationError", "'%s' is not a valid listener ARN", arn)
	}
	return nil, core.Errorf("ListenerNotFound", "One or more listeners not found")
}

// users returns the load balancers that forward to a group, in order.
func (a *scope) users(groupARN string) []string {
	var out []string
	for _, l := range a.listeners {
		if slices.Contains(groupsOf(l.Actions), groupARN) && !slices.Contains(out, l.Balancer) {
			out = append(out, l.Balancer)
		}
	}
	slices.Sort(out)
	return out
}

// groupsBehind returns the groups that a load balancer forwards to, in order.
func (a *scope) groupsBehind(balancerARN string) []*group {
	var out []*group
	for _, g := range a.groups {
		if slices.Contains(g.Balancers, balancerARN) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(x, y *group) int { return cmp.Compare(x.ARN, y.ARN) })
	return out
}

func (a *scope) listenersOf(balancerARN string) []*listener {
	var out []*listener
	for _, l := range a.listeners {
		if l.Balancer == balancerARN {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(x, y *listener) int { return cmp.Compare(x.Port, y.Port) })
	return out
}

// status returns the words of DescribeTargetHealth, in the service's English.
func status(state, reason, description string) Status {
	return Status{State: state, Reason: reason, Description: description}
}

func constraint(value, at, want string, args ...any) error {
	return core.Errorf("ValidationError", "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must %s",
		value, at, fmt.Sprintf(want, args...))
}
