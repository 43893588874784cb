package elb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/dataplane"
	"github.com/elbridge/elbridge/local/cloud/elb/health"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

// Service answers ELBv2 calls, and runs health checks and load balancers.
type Service struct {
	cfg     Config
	store   *state.Store
	limits  *limiters
	changes *feed

	application, network atomic.Int64 // propagation delays, in ns

	mu     sync.Mutex
	planes map[string]*dataplane.Plane // by the load balancer's ARN
	used   map[netip.Addr]bool
	closed bool

	stop context.CancelFunc // of the health checks
	done sync.WaitGroup
}

// New returns a service that runs until it is closed.
func New(cfg Config) (*Service, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, limits: newLimiters(*cfg.Buckets), changes: newFeed(cfg.OnChange, cfg.Log),
		planes: map[string]*dataplane.Plane{}, used: map[netip.Addr]bool{},
	}
	s.SetPropagation(cfg.ApplicationPropagation, cfg.NetworkPropagation)
	s.store = state.New(state.Config{
		VPCs: cfg.VPCs, Limits: *cfg.Limits, Instance: cfg.Instance, NewID: newID,
		RegistrationDelay: func(k route.Kind) time.Duration { return max(cfg.RegistrationDelay, s.propagation(k)) },
		CheckInterval:     func(d time.Duration) time.Duration { return time.Duration(float64(d) / cfg.CheckSpeedup) },
		Route:             s.announce,
		Unhealthy:         s.unhealthy,
		Change:            s.changes.add,
	})
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	checker := health.New(health.Config{Store: s.store, Clock: cfg.Clock, Dial: cfg.Dial})
	s.done.Go(func() { checker.Run(ctx) })
	s.done.Go(func() { s.changes.run(ctx) })
	return s, nil
}

// SetPropagation changes how long traffic goes on as if a change had not been
// made, from the next change on. Negative means no delay.
func (s *Service) SetPropagation(application, network time.Duration) {
	s.application.Store(int64(max(application, 0)))
	s.network.Store(int64(max(network, 0)))
}

func (s *Service) propagation(k route.Kind) time.Duration {
	if k == route.Network {
		return time.Duration(s.network.Load())
	}
	return time.Duration(s.application.Load())
}

// Traffic says whether a target of a group may still get something new from a
// load balancer, and how many requests or connections it has there. It is what
// a preStop hook would like to know.
func (s *Service) Traffic(groupARN string, target state.Key) (takesNew bool, underWay int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.planes {
		more, n := p.Traffic(groupARN, target)
		takesNew, underWay = takesNew || more, underWay+n
	}
	return takesNew, underWay
}

// Close ends health checks and load balancers. Requests under way may go on
// until ctx ends. No call may come any more.
func (s *Service) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	planes := s.planes
	s.planes = map[string]*dataplane.Plane{}
	s.mu.Unlock()
	for _, p := range planes {
		s.done.Go(func() { p.Close(ctx) })
	}
	s.stop()
	s.done.Wait()
}

// closing bounds how long requests may go on when Run ends.
const closing = 2 * time.Second

// Run waits for ctx to end and closes the service.
func (s *Service) Run(ctx context.Context) error {
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	s.Close(end)
	return nil
}

// newID returns 16 hex digits.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (s *Service) plane(balancer string) *dataplane.Plane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planes[balancer]
}

// announce and unhealthy are called by the store, which is locked: they must
// not call it.
func (s *Service) announce(t route.Table) {
	if p := s.plane(t.Balancer); p != nil {
		p.Announce(t)
	}
}

func (s *Service) unhealthy(balancer, group string, target state.Key) {
	if p := s.plane(balancer); p != nil {
		p.CutTarget(group, target)
	}
}

// address returns a loopback address that no load balancer has.
func (s *Service) address() (netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := s.cfg.Addresses.Masked().Addr().Next(); s.cfg.Addresses.Contains(a); a = a.Next() {
		if last := a.As4()[3]; !s.used[a] && last != 0 && last != 255 {
			s.used[a] = true
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %s are in use by load balancers", s.cfg.Addresses)
}

// start gives a load balancer its data plane, unless it has it.
func (s *Service) start(b state.Balancer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planes[b.ARN] != nil || s.closed {
		return
	}
	s.planes[b.ARN] = dataplane.New(dataplane.Config{
		Clock: s.cfg.Clock, Log: s.cfg.Log, Dial: s.cfg.Dial, Propagation: func() time.Duration { return s.propagation(b.Kind) },
	}, b.Kind, b.Address)
}

// deleted bounds how long requests go on after their load balancer was deleted.
const deleted = 5 * time.Second

// end closes the data plane of a load balancer that was deleted, in the
// background.
func (s *Service) end(b state.Balancer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.planes[b.ARN]
	if p == nil {
		return
	}
	delete(s.planes, b.ARN)
	s.done.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deleted)
		defer cancel()
		p.Close(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.used, b.Address)
	})
}

// ServeAWS answers one call.
func (s *Service) ServeAWS(_ context.Context, call *core.Call) (any, error) {
	op, ok := operations[call.Operation]
	if !ok {
		return nil, call.UnknownOperation()
	}
	if err := s.limits.take(call.Scope, call.Operation, call.Time); err != nil {
		return nil, err
	}
	return op(s, call)
}

// operations are what the service can do.
var operations = map[string]func(*Service, *core.Call) (any, error){
	"CreateTargetGroup":              (*Service).createTargetGroup,
	"ModifyTargetGroup":              (*Service).modifyTargetGroup,
	"DeleteTargetGroup":              (*Service).deleteTargetGroup,
	"DescribeTargetGroups":           (*Service).describeTargetGroups,
	"DescribeTargetGroupAttributes":  (*Service).targetGroupAttributes,
	"ModifyTargetGroupAttributes":    (*Service).targetGroupAttributes,
	"RegisterTargets":                (*Service).registerTargets,
	"DeregisterTargets":              (*Service).deregisterTargets,
	"DescribeTargetHealth":           (*Service).describeTargetHealth,
	"CreateLoadBalancer":             (*Service).createLoadBalancer,
	"DescribeLoadBalancers":          (*Service).describeLoadBalancers,
	"DeleteLoadBalancer":             (*Service).deleteLoadBalancer,
	"DescribeLoadBalancerAttributes": (*Service).loadBalancerAttributes,
	"ModifyLoadBalancerAttributes":   (*Service).loadBalancerAttributes,
	"CreateListener":                 (*Service).createListener,
	"ModifyListener":                 (*Service).modifyListener,
	"DescribeListeners":              (*Service).describeListeners,
	"DeleteListener":                 (*Service).deleteListener,
	"AddTags":                        (*Service).addTags,
	"RemoveTags":                     (*Service).removeTags,
	"DescribeTags":                   (*Service).describeTags,
	"DescribeAccountLimits":          (*Service).describeAccountLimits,
}
