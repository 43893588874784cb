package elb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
	"github.com/elbridge/elbridge/local/vpc"
)

// The network of the local stack, which is there in every account and region.
const (
	VPCID   = "vpc-00000000000000001"
	SubnetA = "subnet-0000000000000000a" // in eu-west-1a
	SubnetB = "subnet-0000000000000000b"
	SubnetC = "subnet-0000000000000000c"
)

// Config is how the local ELB behaves. The zero value of each field means what
// is said there.
type Config struct {
	Clock core.Clock   // the machine's
	Log   *slog.Logger // silent

	VPCs     []state.VPC                            // DefaultVPC
	Instance func(id string) (state.Instance, bool) // DefaultInstance
	Limits   *state.Limits                          // state.DefaultLimits
	Buckets  *Buckets                               // DefaultBuckets

	// Addresses are given to load balancers, one each: 127.80.0.0/16.
	Addresses netip.Prefix
	// Dial connects to a published address: vpc.Dial, for which an address that
	// is not of the local stack is one that doesn't answer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// How long traffic goes on as if a change had not been made: 100 ms for
	// application load balancers, 500 ms for network load balancers. A negative
	// value means no delay. AWS takes seconds, and minutes for a network load
	// balancer.
	ApplicationPropagation, NetworkPropagation time.Duration
	// RegistrationDelay is the least time that a target spends in
	// Elb.RegistrationInProgress. It spends the propagation delay there in any
	// case, so that a healthy target is one that gets traffic: 0.
	RegistrationDelay time.Duration
	// CheckSpeedup divides the interval between health checks: 1, as in AWS.
	// Their timeout is as the group says.
	CheckSpeedup float64

	// OnChange is told of every change of a target, in order and one at a time.
	// A slow receiver delays nobody; what it is behind by is bounded.
	OnChange func(Change)
}

// Change is one step of a target's life: see state.Change.
type Change = state.Change

// DefaultVPC is the network of the local stack: three zones, each with a node
// and its pods. What belongs to no zone is in the first.
func DefaultVPC() state.VPC {
	prefixes := func(all ...string) []netip.Prefix {
		out := make([]netip.Prefix, len(all))
		for i, p := range all {
			out[i] = netip.MustParsePrefix(p)
		}
		return out
	}
	return state.VPC{
		ID:    VPCID,
		CIDRs: []netip.Prefix{vpc.PodCIDR, vpc.PodCIDR6},
		Subnets: []state.Subnet{
			{ID: SubnetA, Zone: "eu-west-1a", CIDRs: []netip.Prefix{vpc.PodCIDR, vpc.PodCIDR6}},
			{ID: SubnetB, Zone: "eu-west-1b", CIDRs: prefixes("10.64.0.12/32", "10.64.2.0/24", "fd00::200/120")},
			{ID: SubnetC, Zone: "eu-west-1c", CIDRs: prefixes("10.64.0.13/32", "10.64.3.0/24", "fd00::300/120")},
		},
	}
}

// DefaultInstance finds the nodes of the local stack.
func DefaultInstance(id string) (state.Instance, bool) {
	in, ok := map[string]state.Instance{
		"i-0000000000000000a": {Addr: netip.MustParseAddr("10.64.0.11"), Zone: "eu-west-1a", Running: true},
		"i-0000000000000000b": {Addr: netip.MustParseAddr("10.64.0.12"), Zone: "eu-west-1b", Running: true},
		"i-0000000000000000c": {Addr: netip.MustParseAddr("10.64.0.13"), Zone: "eu-west-1c", Running: true},
	}[id]
	return in, ok
}

// withDefaults fills in what was left out, and refuses what makes no sense.
func (c Config) withDefaults() (Config, error) {
	fill(&c.Clock, core.Clock(core.RealClock{}), c.Clock == nil)
	fill(&c.Log, slog.New(slog.DiscardHandler), c.Log == nil)
	fill(&c.VPCs, []state.VPC{DefaultVPC()}, c.VPCs == nil)
	fill(&c.Instance, DefaultInstance, c.Instance == nil)
	fill(&c.Dial, dial, c.Dial == nil)
	fill(&c.Addresses, netip.MustParsePrefix("127.80.0.0/16"), !c.Addresses.IsValid())
	fill(&c.CheckSpeedup, 1, c.CheckSpeedup == 0)
	fill(&c.ApplicationPropagation, 100*time.Millisecond, c.ApplicationPropagation == 0)
	fill(&c.NetworkPropagation, 500*time.Millisecond, c.NetworkPropagation == 0)
	if c.Limits == nil {
		l := state.DefaultLimits()
		c.Limits = &l
	}
	if c.Buckets == nil {
		b := DefaultBuckets()
		c.Buckets = &b
	}
	var errs []error
	if !c.Addresses.Addr().IsLoopback() || !c.Addresses.Addr().Is4() {
		errs = append(errs, fmt.Errorf("load balancer addresses %s: want a part of 127.0.0.0/8", c.Addresses))
	}
	if c.CheckSpeedup < 1 {
		errs = append(errs, fmt.Errorf("check speedup %v: want 1 or more", c.CheckSpeedup))
	}
	if c.RegistrationDelay < 0 {
		errs = append(errs, fmt.Errorf("registration delay %v: want 0 or more", c.RegistrationDelay))
	}
	return c, errors.Join(errs...)
}

func fill[T any](field *T, def T, missing bool) {
	if missing {
		*field = def
	}
}

// unroutable is what happens to packets for an address that is not of the local
// stack: nothing comes back. It doesn't wait for that.
type unroutable struct{ error }

func (unroutable) Timeout() bool   { return true }
func (unroutable) Temporary() bool { return true }

// dial is vpc.Dial; other addresses are like ones that don't answer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := vpc.HostPort(address); err != nil {
		return nil, unroutable{err}
	}
	return vpc.Dial(ctx, network, address)
}
