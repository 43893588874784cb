package contract_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// group makes a target group of ip targets with the tags.
func (w *world) group(t *testing.T, name string, change func(*elbv2.CreateTargetGroupInput), tags ...string) string {
	t.Helper()
	in := &elbv2.CreateTargetGroupInput{Name: &name, Protocol: types.ProtocolEnumHttp, Port: aws.Int32(8080), VpcId: aws.String(elb.VPCID), TargetType: types.TargetTypeEnumIp}
	for i := 0; i+1 < len(tags); i += 2 {
		in.Tags = append(in.Tags, types.Tag{Key: &tags[i], Value: &tags[i+1]})
	}
	if change != nil {
		change(in)
	}
	out, err := elbv2.NewFromConfig(w.config(registrar)).CreateTargetGroup(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.TargetGroups[0].TargetGroupArn
}

// client is the edge and what it says of a new group.
func (w *world) client(t *testing.T) (*targetgroup.Client, claim.Group) {
	t.Helper()
	c := targetgroup.New(elbv2.NewFromConfig(w.config(registrar)))
	g, err := c.Describe(t.Context(), binding.GroupRef{ARN: w.group(t, "web", nil)})
	if err != nil {
		t.Fatal(err)
	}
	return c, g
}

// keys are n addresses from first on, with the port.
func keys(first string, n int, port int32) []claim.Key {
	out := make([]claim.Key, n)
	for i, a := 0, netip.MustParseAddr(first); i < n; i, a = i+1, a.Next() {
		out[i] = claim.Key{ID: a.String(), Port: port}
	}
	return out
}

// live returns the targets that are registered and don't drain.
func live(t *testing.T, c *targetgroup.Client, g claim.Group) []claim.Key {
	t.Helper()
	all, err := c.Health(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	var out []claim.Key
	for k, target := range all {
		if target.Health != plan.Draining {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, claim.Compare)
	return out
}

func TestRegisterInChunks_P001(t *testing.T) {
	w := start(t, elb.Config{})
	c, g := w.client(t)
	if r := c.Register(t.Context(), g, nil, ""); r.Calls != 0 || w.calls("RegisterTargets") != 0 {
		t.Error("P011: a call for nothing")
	}
	ks := keys("10.64.1.0", 450, 9000)
	for range 2 { // the second time nothing changes
		if r := c.Register(t.Context(), g, ks, ""); r.Err() != nil || r.Calls != 3 {
			t.Fatalf("%d calls, error %v; want 3", r.Calls, r.Err())
		}
	}
	if got := live(t, c, g); len(got) != 450 || w.calls("RegisterTargets") != 6 {
		t.Errorf("%d targets after %d calls", len(got), w.calls("RegisterTargets"))
	}
	for range 2 {
		if r := c.Deregister(t.Context(), g, ks[:449]); r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
	if got := live(t, c, g); len(got) != 1 || got[0] != ks[449] {
		t.Errorf("left: %v, want %v", got, ks[449])
	}
}

func TestIsolation_I6(t *testing.T) {
	w := start(t, elb.Config{})
	c, g := w.client(t)
	ks := keys("10.64.1.0", 198, 8080)
	bad := []claim.Key{{ID: "203.0.113.7", Port: 8080}, {ID: "fd00::7", Port: 8080}} // public; of the other family
	r := c.Register(t.Context(), g, append(slices.Clone(ks), bad...), "")
	for _, k := range bad {
		if !errors.Is(r.Failed[k], targetgroup.ErrInvalidTarget) {
			t.Errorf("%v failed with %v", k, r.Failed[k])
		}
	}
	if got := live(t, c, g); len(got) != 198 || len(r.Failed) != 2 || r.Calls > 50 {
		t.Errorf("%d are in, %d failed, %d calls", len(got), len(r.Failed), r.Calls)
	}
}

func TestQuota_P010(t *testing.T) {
	limits := state.DefaultLimits()
	limits.TargetsPerGroup = 130
	w := start(t, elb.Config{Limits: &limits})
	c, g := w.client(t)
	ks := keys("10.64.1.0", 200, 8080)
	r := c.Register(t.Context(), g, ks, "")
	if got := live(t, c, g); len(got) != 130 || len(r.Failed) != 70 || r.Calls > 24 {
		t.Fatalf("%d are in, %d failed, %d calls; want what fits: 130", len(got), len(r.Failed), r.Calls)
	}
	for k, err := range r.Failed {
		if !errors.Is(err, targetgroup.ErrQuota) {
			t.Fatalf("%v failed with %v", k, err)
		}
	}
	c.Deregister(t.Context(), g, live(t, c, g)[:20]) // removals make room
	var waiting []claim.Key
	for k := range r.Failed {
		waiting = append(waiting, k)
	}
	c.Register(t.Context(), g, waiting, "")
	if got := live(t, c, g); len(got) != 130 {
		t.Errorf("%d are in, want 130 again", len(got))
	}
}

func TestZones_P013_P014(t *testing.T) {
	w := start(t, elb.Config{})
	c, g := w.client(t)
	ks := append(keys("10.64.1.0", 100, 8080), keys("192.168.5.0", 100, 8080)...)
	if r := c.Register(t.Context(), g, ks, binding.ZoneAuto); r.Err() != nil || r.Calls > 6 {
		t.Fatalf("%d calls, error %v", r.Calls, r.Err())
	}
	if r := c.Register(t.Context(), g, keys("192.168.5.200", 5, 8080), "eu-west-1b"); r.Err() != nil || r.Calls != 1 {
		t.Errorf("a neighbour of those: %d calls, error %v; want one", r.Calls, r.Err())
	}
	out, err := elbv2.NewFromConfig(w.config(registrar)).DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: &g.ARN})
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]int{}
	for _, d := range out.TargetHealthDescriptions {
		zones[aws.ToString(d.Target.AvailabilityZone)]++
	}
	if got := fmt.Sprint(zones); got != "map[all:100 eu-west-1a:100 eu-west-1b:5]" {
		t.Errorf("zones %s", got)
	}
}

func TestPortAsRegistered_P056(t *testing.T) {
	w := start(t, elb.Config{})
	c, g := w.client(t)
	ks := []claim.Key{{ID: "10.64.1.7", Port: 8080}, {ID: "10.64.1.7", Port: 9000}}
	c.Register(t.Context(), g, ks, "")
	if r := c.Deregister(t.Context(), g, ks[1:]); r.Err() != nil {
		t.Fatal(r.Err())
	}
	if got := live(t, c, g); len(got) != 1 || got[0] != ks[0] {
		t.Errorf("left: %v, want %v", got, ks[0])
	}
}

func TestDrainingIsShown_I5(t *testing.T) {
	w := start(t, elb.Config{})
	c, g := w.client(t)
	api := elbv2.NewFromConfig(w.config(registrar))
	lb, err := api.CreateLoadBalancer(t.Context(), &elbv2.CreateLoadBalancerInput{Name: aws.String("front"), Type: types.LoadBalancerTypeEnumApplication, Subnets: []string{elb.SubnetA, elb.SubnetB}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CreateListener(t.Context(), &elbv2.CreateListenerInput{LoadBalancerArn: lb.LoadBalancers[0].LoadBalancerArn, Protocol: types.ProtocolEnumHttp, Port: aws.Int32(8099),
		DefaultActions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: &g.ARN}}}); err != nil {
		t.Fatal(err)
	}
	ks := keys("10.64.1.7", 1, 8080)
	health := func() plan.Health {
		all, err := c.Health(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		return all[ks[0]].Health
	}
	c.Register(t.Context(), g, ks, "")
	await(t, "the target is checked", func() bool { h := health(); return h == plan.Initial || h == plan.Unhealthy })
	c.Deregister(t.Context(), g, ks)
	if h := health(); h != plan.Draining {
		t.Fatalf("deregistered and %q, want draining", h)
	}
	c.Register(t.Context(), g, ks, "") // claimed again while it drains
	if h := health(); h == plan.Draining {
		t.Error("registered again and still draining")
	}
}

func TestHealthOnDoubt_I8(t *testing.T) {
	tests := map[string]struct {
		fault core.Fault
		want  error
	}{
		"HealthUnavailable":      {core.Fault{Kind: core.FaultError, Code: "HealthUnavailable", Status: 500}, targetgroup.ErrUnavailable},
		"throttled":              {core.Fault{Kind: core.FaultThrottle}, targetgroup.ErrThrottled},
		"no answer":              {core.Fault{Kind: core.FaultLostAnswer}, targetgroup.ErrUnavailable},
		"our role may not do it": {core.Fault{Kind: core.FaultError, Code: "AccessDenied", Status: 403}, targetgroup.ErrDenied},
	}
	w := start(t, elb.Config{})
	c, g := w.client(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.fault.Operation, tt.fault.Times = "DescribeTargetHealth", 1
			w.fail(t, tt.fault)
			if all, err := c.Health(t.Context(), g); all != nil || !errors.Is(err, tt.want) {
				t.Errorf("%v, error %v; want no answer and %v", all, err, tt.want)
			}
		})
	}
	if all, err := c.Health(t.Context(), g); err != nil || all == nil || len(all) != 0 {
		t.Errorf("an empty group: %v, error %v", all, err)
	}
	g.ARN = g.ARN[:len(g.ARN)-1] + "x"
	if _, err := c.Health(t.Context(), g); !errors.Is(err, targetgroup.ErrNotFound) {
		t.Errorf("a group that is gone: %v", err)
	}
}

// A call whose answer was lost was made. Made again, nothing changes.
func TestLostAnswer_I3(t *testing.T) {
	w := start(t, elb.Config{})
	c, g := w.client(t)
	ks := keys("10.64.1.0", 3, 8080)
	w.fail(t, core.Fault{Operation: "RegisterTargets", Kind: core.FaultLostAnswer, Times: 1})
	r := c.Register(t.Context(), g, ks, "")
	if len(r.Failed) != 3 || !errors.Is(r.Failed[ks[0]], targetgroup.ErrUnavailable) {
		t.Errorf("failed: %v, want all as ErrUnavailable", r.Failed)
	}
	if r := c.Register(t.Context(), g, ks, ""); r.Err() != nil {
		t.Error(r.Err())
	}
	if got := live(t, c, g); len(got) != 3 {
		t.Errorf("targets %v", got)
	}
}

func TestDescribe(t *testing.T) {
	w := start(t, elb.Config{})
	sdk := w.config(registrar)
	sdk.RetryMaxAttempts = 3 // as the registrar has it: what is held here is the reading, not the connection
	c := targetgroup.New(elbv2.NewFromConfig(sdk))
	for i := range 45 { // more than one chunk of tags
		tags := []string{"n", fmt.Sprint(i), "team", fmt.Sprint("t", i%2)}
		w.group(t, fmt.Sprintf("g%02d", i), nil, tags...)
	}
	six := w.group(t, "six", func(in *elbv2.CreateTargetGroupInput) {
		in.IpAddressType, in.Port = types.TargetGroupIpAddressTypeEnumIpv6, aws.Int32(443)
	})
	node := w.group(t, "node", func(in *elbv2.CreateTargetGroupInput) { in.TargetType = types.TargetTypeEnumInstance })

	tests := map[string]struct {
		ref  binding.GroupRef
		want claim.Group
		err  error
	}{
		"by ARN, IPv6":          {binding.GroupRef{ARN: six}, claim.Group{ARN: six, Type: claim.IP, Family: claim.IPv6, Port: 443}, nil},
		"by name, of instances": {binding.GroupRef{Name: "node"}, claim.Group{ARN: node, Type: claim.Instance, Family: claim.IPv4, Port: 8080}, nil},
		"by name, none":         {binding.GroupRef{Name: "nobody"}, claim.Group{}, targetgroup.ErrNotFound},
		"by tags, one":          {binding.GroupRef{Tags: map[string]string{"n": "44", "team": "t0"}}, claim.Group{Type: claim.IP, Family: claim.IPv4, Port: 8080}, nil},
		"by tags, none":         {binding.GroupRef{Tags: map[string]string{"n": "44", "team": "t1"}}, claim.Group{}, targetgroup.ErrAmbiguous},
		"by tags, several":      {binding.GroupRef{Tags: map[string]string{"team": "t1"}}, claim.Group{}, targetgroup.ErrAmbiguous},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := c.Describe(t.Context(), tt.ref)
			if tt.ref.Tags != nil {
				got.ARN = ""
			}
			if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("%+v, error %v; want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
