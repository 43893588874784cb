package targetgroup

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
)

const (
	// chunkSize is the number of targets in one call. The API names no maximum;
	// aws-load-balancer-controller has sent 200 for years.
	chunkSize = 200
	// splitCalls bounds the calls that one refused chunk may cost: isolating one
	// bad target of 200 by halves takes 2·log2(200) = 16, three of them about 40.
	splitCalls = 48
)

// Result is what became of the keys of one Register or Deregister. A key that
// is not in Failed was accepted.
type Result struct {
	Failed map[claim.Key]error
	Calls  int // mutating calls sent
}

// Err joins what failed, or is nil.
func (r Result) Err() error {
	var errs []error
	for _, k := range slices.SortedFunc(maps.Keys(r.Failed), claim.Compare) {
		errs = append(errs, r.Failed[k])
	}
	return errors.Join(errs...)
}

// Register puts keys into the group, each with its port (I7). zone is the
// binding's: ZoneAuto sends one only where ELB asks for it, as it does for an
// address outside the VPC (P013, P014). A call that is refused for one target is
// halved until that target stands alone, so its neighbours get in (I6).
func (c *Client) Register(ctx context.Context, g claim.Group, ks []claim.Key, zone string) Result {
	if zone == "" {
		zone = binding.ZoneAuto
	}
	send := func(ctx context.Context, ks []claim.Key) (int, error) { return c.register(ctx, g, ks, zone) }
	return apply(ctx, ks, send)
}

// Deregister takes keys out of the group, each with the port it was registered
// with (P056). An absent key is no error.
func (c *Client) Deregister(ctx context.Context, g claim.Group, ks []claim.Key) Result {
	send := func(ctx context.Context, ks []claim.Key) (int, error) {
		_, err := c.api.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: &g.ARN, Targets: targets(ks, "")})
		return 1, classify("deregistering", err)
	}
	return apply(ctx, ks, send)
}

// register makes one call, and one more with the other choice of zone where the
// first was refused for it. What was right is remembered for addresses nearby.
func (c *Client) register(ctx context.Context, g claim.Group, ks []claim.Key, zone string) (calls int, err error) {
	send := func(zone string) error {
		calls++
		_, err := c.api.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: &g.ARN, Targets: targets(ks, zone)})
		return err
	}
	if zone != binding.ZoneAuto {
		return calls, classify("registering", send(zone))
	}
	first, second := "", binding.ZoneAll
	if c.zones.outside(g.ARN, ks) {
		first, second = second, first
	}
	err = send(first)
	if err == nil || (first == "" && !wantsZone(err)) || (first != "" && !errors.Is(class(err), ErrInvalidTarget)) {
		return calls, classify("registering", err)
	}
	if again := send(second); again == nil {
		c.zones.remember(g.ARN, ks, second != "")
		return calls, nil
	}
	return calls, classify("registering", err)
}

// apply sends ks in chunks; an empty list sends nothing (P011). A chunk's
// failure never stops the next one.
func apply(ctx context.Context, ks []claim.Key, send func(context.Context, []claim.Key) (int, error)) Result {
	r := Result{Failed: map[claim.Key]error{}}
	for chunk := range slices.Chunk(ks, chunkSize) {
		budget := splitCalls
		r.split(ctx, chunk, &budget, send)
	}
	return r
}

// split sends ks, and on a refusal that is some target's own its halves.
func (r *Result) split(ctx context.Context, ks []claim.Key, budget *int, send func(context.Context, []claim.Key) (int, error)) {
	calls, err := send(ctx, ks)
	r.Calls += calls
	*budget -= calls
	own := errors.Is(err, ErrInvalidTarget) || errors.Is(err, ErrQuota)
	if own && len(ks) > 1 && *budget > 0 && ctx.Err() == nil {
		r.split(ctx, ks[:len(ks)/2], budget, send)
		r.split(ctx, ks[len(ks)/2:], budget, send)
		return
	}
	if err != nil {
		for _, k := range ks {
			r.Failed[k] = err
		}
	}
}

func targets(ks []claim.Key, zone string) []types.TargetDescription {
	out := make([]types.TargetDescription, len(ks))
	for i, k := range ks {
		out[i] = types.TargetDescription{Id: &k.ID, Port: &k.Port}
		if zone != "" {
			out[i].AvailabilityZone = &zone
		}
	}
	return out
}

// zoneMemory remembers, for a group and a /24 or /64, that its addresses are
// outside the VPC. It saves a refused call and nothing depends on it.
type zoneMemory struct {
	mu   sync.Mutex
	nets map[string]map[netip.Prefix]bool
}

// outside reports whether every key is known to be outside.
func (z *zoneMemory) outside(group string, ks []claim.Key) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, k := range ks {
		if !z.nets[group][neighbourhood(k.ID)] {
			return false
		}
	}
	return len(ks) > 0
}

func (z *zoneMemory) remember(group string, ks []claim.Key, outside bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.nets == nil {
		z.nets = map[string]map[netip.Prefix]bool{}
	}
	m := z.nets[group]
	if m == nil || len(m) > maxNeighbourhoods { // bounded: forgetting costs one refused call
		m = map[netip.Prefix]bool{}
		z.nets[group] = m
	}
	for _, k := range ks {
		m[neighbourhood(k.ID)] = outside
	}
}

// maxNeighbourhoods bounds the memory for one group: 256 networks of /24 are a /16.
const maxNeighbourhoods = 256

func neighbourhood(id string) netip.Prefix {
	a, err := netip.ParseAddr(id)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 24
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
