package targetgroup

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
)

// chunkSize is the number of targets in one call. The API names no maximum;
// aws-load-balancer-controller has sent 200 for years.
const chunkSize = 200

// Result is what became of the keys of one Register or Deregister. A key that
// is not in Failed was accepted.
type Result struct {
	// Failed holds an error for each key: ErrInvalidTarget only where the key was
	// refused by itself, ErrUnavailable where it was not tried by itself.
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

// Register puts keys into the group, each with its port (I7). zone is what an
// address outside the group's VPC is registered with, ZoneAuto means ZoneAll; it
// is sent only where ELB asks for one (P013, P014). A target that a call is
// refused for doesn't keep its neighbours out, and at a quota what fits gets in
// (I6, P010).
func (c *Client) Register(ctx context.Context, g claim.Group, ks []claim.Key, zone string) Result {
	if zone == "" || zone == binding.ZoneAuto {
		zone = binding.ZoneAll
	}
	ordinary, refused := c.suspects.part(g.ARN, inOrder(ks))
	send := func(ctx context.Context, ks []claim.Key) (int, error) { return c.register(ctx, g, ks, zone) }
	r := run(ctx, ordinary, send)
	for i, k := range refused {
		if i >= suspectsTried {
			r.Failed[k.key] = k.err
			continue
		}
		calls, err := send(ctx, []claim.Key{k.key})
		r.Calls += calls
		if err != nil {
			r.Failed[k.key] = err
		}
	}
	c.suspects.learn(g.ARN, ks, r.Failed)
	return r
}

// Deregister takes keys out of the group, each with the port it was registered
// with (P056). An absent key is no error.
func (c *Client) Deregister(ctx context.Context, g claim.Group, ks []claim.Key) Result {
	return run(ctx, inOrder(ks), func(ctx context.Context, ks []claim.Key) (int, error) {
		in := &elb.DeregisterTargetsInput{TargetGroupArn: &g.ARN, Targets: targets(ks, func(claim.Key) string { return "" })}
		_, err := c.api.DeregisterTargets(ctx, in)
		return 1, classify("deregistering", err)
	})
}

// register makes one call, and one more with the other choice of zone where the
// first was refused for it. What was right is remembered for addresses nearby.
func (c *Client) register(ctx context.Context, g claim.Group, ks []claim.Key, zone string) (calls int, err error) {
	send := func(zones func(claim.Key) string) error {
		calls++
		_, err := c.api.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: &g.ARN, Targets: targets(ks, zones)})
		return err
	}
	first := send(func(k claim.Key) string {
		if c.zones.outside(g.ARN, k) {
			return zone
		}
		return ""
	})
	if !aboutZone(first) {
		return calls, classify("registering", first)
	}
	outside := wantsZone(first)
	second := send(func(claim.Key) string {
		if outside {
			return zone
		}
		return ""
	})
	switch {
	case second == nil:
		c.zones.remember(g.ARN, ks, outside)
		return calls, nil
	case aboutZone(second): // some of ks are inside, some outside: one by one it will show
		return calls, classify("registering", first)
	default:
		return calls, classify("registering", second)
	}
}

func targets(ks []claim.Key, zone func(claim.Key) string) []types.TargetDescription {
	out := make([]types.TargetDescription, len(ks))
	for i, k := range ks {
		out[i] = types.TargetDescription{Id: &k.ID, Port: &k.Port}
		if z := zone(k); z != "" {
			out[i].AvailabilityZone = &z
		}
	}
	return out
}

// inOrder sorts keys so that neighbours in the network stand together: they have
// a zone, and often a fault, in common.
func inOrder(ks []claim.Key) []claim.Key {
	out := slices.Clone(ks)
	slices.SortFunc(out, func(a, b claim.Key) int {
		x, errX := netip.ParseAddr(a.ID)
		y, errY := netip.ParseAddr(b.ID)
		if errX != nil || errY != nil {
			return claim.Compare(a, b)
		}
		return cmp.Or(x.Compare(y), cmp.Compare(a.Port, b.Port))
	})
	return out
}
