package elb_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

func TestGroupsOverTheWire(t *testing.T) {
	s := start(t, elb.Config{})
	arn := s.group(t, "web", func(in *elbv2.CreateTargetGroupInput) {
		in.Matcher = &types.Matcher{HttpCode: aws.String("200-299")}
		in.Tags = []types.Tag{{Key: aws.String("elbridge:owner"), Value: aws.String("elbridge")}}
	})
	if !strings.HasPrefix(arn, "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/") || len(arn) != len("arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef") {
		t.Errorf("ARN %s", arn)
	}
	out, err := s.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{Names: []string{"web"}})
	if err != nil {
		t.Fatal(err)
	}
	g := out.TargetGroups[0]
	got := fmt.Sprint(*g.TargetGroupName, g.Protocol, *g.Port, *g.VpcId, g.TargetType, g.IpAddressType, *g.ProtocolVersion, *g.HealthCheckEnabled,
		*g.HealthCheckPort, *g.HealthCheckPath, *g.HealthCheckIntervalSeconds, *g.HealthCheckTimeoutSeconds, *g.HealthyThresholdCount,
		*g.UnhealthyThresholdCount, *g.Matcher.HttpCode, g.LoadBalancerArns)
	want := fmt.Sprint("web", "HTTP", 8080, elb.VPCID, "ip", "ipv4", "HTTP1", true, "traffic-port", "/healthz", 5, 2, 2, 2, "200-299", []string{})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	mod, err := s.ModifyTargetGroup(t.Context(), &elbv2.ModifyTargetGroupInput{TargetGroupArn: &arn, HealthCheckPath: aws.String("/ready"), HealthCheckPort: aws.String("9000")})
	if err != nil || *mod.TargetGroups[0].HealthCheckPath != "/ready" || *mod.TargetGroups[0].HealthCheckPort != "9000" || *mod.TargetGroups[0].HealthCheckIntervalSeconds != 5 {
		t.Errorf("modified: %v %v", mod, err)
	}
	attr, err := s.ModifyTargetGroupAttributes(t.Context(), &elbv2.ModifyTargetGroupAttributesInput{TargetGroupArn: &arn, Attributes: []types.TargetGroupAttribute{
		{Key: aws.String("deregistration_delay.timeout_seconds"), Value: aws.String("7")}}})
	if err != nil || !slices.ContainsFunc(attr.Attributes, func(a types.TargetGroupAttribute) bool {
		return *a.Key == "deregistration_delay.timeout_seconds" && *a.Value == "7"
	}) {
		t.Errorf("attributes: %v %v", attr, err)
	}
	if _, err := s.DeleteTargetGroup(t.Context(), &elbv2.DeleteTargetGroupInput{TargetGroupArn: &arn}); err != nil {
		t.Fatal(err)
	}
	_, err = s.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{TargetGroupArns: []string{arn}})
	if _, gone := errors.AsType[*types.TargetGroupNotFoundException](err); !gone {
		t.Errorf("after deleting: %v, want TargetGroupNotFoundException", err)
	}
}

func TestErrorsAreThoseOfTheSDK(t *testing.T) {
	limits := state.DefaultLimits()
	limits.TargetsPerGroup = 1
	s := start(t, elb.Config{Limits: &limits})
	g := s.group(t, "web")
	_, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	register := func(arn string, d ...types.TargetDescription) error {
		_, err := s.RegisterTargets(t.Context(), &elbv2.RegisterTargetsInput{TargetGroupArn: &arn, Targets: d})
		return err
	}
	zone := func(d types.TargetDescription, z string) types.TargetDescription { d.AvailabilityZone = &z; return d }
	missing := g[:len(g)-1] + "x"
	tests := map[string]struct {
		err  error
		want string
	}{
		"no such group":           {register(missing, at("10.64.1.1", 0)), "TargetGroupNotFound"},
		"P011 empty list":         {register(g, []types.TargetDescription{}...), "ValidationError"},
		"too many":                {register(g, at("10.64.1.1", 0), at("10.64.1.2", 0)), "TooManyTargets"},
		"public address":          {register(g, zone(at("8.8.8.8", 0), "all")), "InvalidTarget"},
		"P013 outside, no zone":   {register(g, at("10.99.0.1", 0)), "ValidationError"},
		"inside, all":             {register(g, zone(at("10.64.1.1", 0), "all")), "ValidationError"},
		"IPv6":                    {register(g, at("fd00::1", 0)), "ValidationError"},
		"port":                    {register(g, at("10.64.1.1", 70000)), "ValidationError"},
		"address of a balancer":   {register(g, zone(at(host, 0), "all")), "InvalidTarget"},
		"deregister, no group":    {second(s.DeregisterTargets(t.Context(), &elbv2.DeregisterTargetsInput{TargetGroupArn: &missing, Targets: []types.TargetDescription{at("10.64.1.1", 0)}})), "TargetGroupNotFound"},
		"health, no group":        {second(s.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: &missing})), "TargetGroupNotFound"},
		"health, no ARN at all":   {second(s.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: aws.String("web")})), "ValidationError"},
		"one subnet":              {second(s.CreateLoadBalancer(t.Context(), &elbv2.CreateLoadBalancerInput{Name: aws.String("x"), Subnets: []string{elb.SubnetA}})), "ValidationError"},
		"no such subnet":          {second(s.CreateLoadBalancer(t.Context(), &elbv2.CreateLoadBalancerInput{Name: aws.String("x"), Subnets: []string{elb.SubnetA, "subnet-1"}})), "SubnetNotFound"},
		"no such load balancer":   {second(s.DescribeLoadBalancers(t.Context(), &elbv2.DescribeLoadBalancersInput{Names: []string{"x"}})), "LoadBalancerNotFound"},
		"more than 20 groups":     {second(s.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{Names: make([]string, 21)})), "ValidationError"},
		"tags of what is nothing": {second(s.DescribeTags(t.Context(), &elbv2.DescribeTagsInput{ResourceArns: []string{"arn:aws:s3:::x"}})), "ValidationError"},
		"an operation not here":   {second(s.DescribeSSLPolicies(t.Context(), &elbv2.DescribeSSLPoliciesInput{})), "InvalidAction"},
		"listeners of nothing":    {second(s.DescribeListeners(t.Context(), &elbv2.DescribeListenersInput{})), "ValidationError"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := code(tt.err); got != tt.want {
				t.Errorf("got %s (%v), want %s", got, tt.err, tt.want)
			}
		})
	}
	t.Run("P013 the text that clients look for", func(t *testing.T) {
		if err := register(g, at("10.99.0.1", 0)); !strings.Contains(err.Error(), "you must specify an Availability Zone") {
			t.Error(err)
		}
	})
	t.Run("typed", func(t *testing.T) {
		var many *types.TooManyTargetsException
		var invalid *types.InvalidTargetException
		if err := tests["too many"].err; !errors.As(err, &many) {
			t.Errorf("%T is no TooManyTargetsException", err)
		}
		if err := tests["public address"].err; !errors.As(err, &invalid) {
			t.Errorf("%T is no InvalidTargetException", err)
		}
	})
	t.Run("health unavailable, by a fault", func(t *testing.T) {
		if _, err := s.server.Faults.Add(core.Fault{Kind: core.FaultError, Operation: "DescribeTargetHealth", Code: "HealthUnavailable", Status: 500, Times: 1}); err != nil {
			t.Fatal(err)
		}
		_, err := s.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: &g})
		if _, unavailable := errors.AsType[*types.HealthUnavailableException](err); !unavailable {
			t.Errorf("got %v, want HealthUnavailableException", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestBuckets(t *testing.T) {
	clock := core.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	b := elb.DefaultBuckets()
	s := start(t, elb.Config{Clock: clock, Buckets: &b})
	g := s.group(t, "web")
	describe := func() error {
		return second(s.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: &g}))
	}
	register := func() error {
		return second(s.RegisterTargets(t.Context(), &elbv2.RegisterTargetsInput{TargetGroupArn: &g, Targets: []types.TargetDescription{at("10.64.1.1", 0)}}))
	}
	deregister := func() error {
		return second(s.DeregisterTargets(t.Context(), &elbv2.DeregisterTargetsInput{TargetGroupArn: &g, Targets: []types.TargetDescription{at("10.64.1.1", 0)}}))
	}
	// accepted counts calls until the first that is refused.
	accepted := func(calls ...func() error) int {
		for n := 0; ; n++ {
			err := calls[n%len(calls)]()
			if code(err) == "Throttling" && strings.Contains(err.Error(), "Rate exceeded") {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		what string
		got  int
		want int
	}{
		{"describes at once", accepted(describe), 40},
		{"registrations and deregistrations share one", accepted(register, deregister), 20},
	} {
		if step.got != step.want {
			t.Errorf("P058 %s: %d accepted, want %d", step.what, step.got, step.want)
		}
	}
	clock.Step(time.Second)
	if d, r := accepted(describe), accepted(register); d != 10 || r != 4 {
		t.Errorf("a second later: %d and %d accepted, want 10 and 4", d, r)
	}
	for name, c := range map[string]*elbv2.Client{"another account": s.client("AKIDTWO", "two", "eu-west-1"), "another region": s.client("AKIDONE", "one", "eu-west-2")} {
		if _, err := c.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{}); err != nil {
			t.Errorf("P059 %s is throttled too: %v", name, err)
		}
	}
	if b.Describe.Burst != 40 || b.Targets.PerSecond != 4 {
		t.Errorf("defaults %+v", b)
	}
}

func TestPages(t *testing.T) {
	s := start(t, elb.Config{})
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("g%d", i)
		want = append(want, name)
		s.group(t, name)
	}
	var got []string
	pages := elbv2.NewDescribeTargetGroupsPaginator(s, &elbv2.DescribeTargetGroupsInput{PageSize: aws.Int32(3)})
	n := 0
	for pages.HasMorePages() {
		p, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n++
		for _, g := range p.TargetGroups {
			got = append(got, *g.TargetGroupName)
		}
	}
	if n != 3 || !slices.Equal(got, want) {
		t.Errorf("%d pages with %v, want 3 with %v", n, got, want)
	}
	for _, size := range []int32{0, 401} {
		if _, err := s.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{PageSize: &size}); code(err) != "ValidationError" {
			t.Errorf("page size %d: %v, want ValidationError", size, err)
		}
	}
}

func TestTagsOverTheWire(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "web")
	lb, _ := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	l := s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	arns := []string{g, lb, l}
	if _, err := s.AddTags(t.Context(), &elbv2.AddTagsInput{ResourceArns: arns, Tags: []types.Tag{
		{Key: aws.String("elbridge:owner"), Value: aws.String("elbridge")}, {Key: aws.String("elbridge:freeze")}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RemoveTags(t.Context(), &elbv2.RemoveTagsInput{ResourceArns: arns[:1], TagKeys: []string{"elbridge:freeze"}}); err != nil {
		t.Fatal(err)
	}
	out, err := s.DescribeTags(t.Context(), &elbv2.DescribeTagsInput{ResourceArns: arns})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"elbridge:owner=elbridge", "elbridge:freeze= elbridge:owner=elbridge", "elbridge:freeze= elbridge:owner=elbridge"} {
		var got []string
		for _, tag := range out.TagDescriptions[i].Tags {
			got = append(got, *tag.Key+"="+aws.ToString(tag.Value))
		}
		if strings.Join(got, " ") != want || *out.TagDescriptions[i].ResourceArn != arns[i] {
			t.Errorf("tags of %s: %v, want %s", arns[i], got, want)
		}
	}
}

func TestListenersOverTheWire(t *testing.T) {
	s := start(t, elb.Config{})
	a, b := s.group(t, "a"), s.group(t, "b")
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	l := s.listen(t, lb, types.ProtocolEnumHttp, 8080, a)
	out, err := s.ModifyListener(t.Context(), &elbv2.ModifyListenerInput{ListenerArn: &l, Port: aws.Int32(8081), DefaultActions: []types.Action{forward(a, b)}})
	if err != nil {
		t.Fatal(err)
	}
	act := out.Listeners[0].DefaultActions[0]
	if len(act.ForwardConfig.TargetGroups) != 2 || act.TargetGroupArn != nil || *out.Listeners[0].Port != 8081 {
		t.Errorf("modified: %+v", out.Listeners[0])
	}
	groups, err := s.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{LoadBalancerArn: &lb})
	if err != nil || len(groups.TargetGroups) != 2 || groups.TargetGroups[0].LoadBalancerArns[0] != lb {
		t.Errorf("groups behind the load balancer: %+v %v", groups, err)
	}
	_, err = s.CreateListener(t.Context(), &elbv2.CreateListenerInput{LoadBalancerArn: &lb, Protocol: types.ProtocolEnumHttp, Port: aws.Int32(8082),
		DefaultActions: []types.Action{{Type: types.ActionTypeEnumFixedResponse, FixedResponseConfig: &types.FixedResponseActionConfig{StatusCode: aws.String("418")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, _, _ := get(t, "http://"+host+":8082/"); status != http.StatusTeapot {
		await(t, "the fixed response", func() bool { status, _, _ = get(t, "http://"+host+":8082/"); return status == http.StatusTeapot })
	}
	all, err := s.DescribeListeners(t.Context(), &elbv2.DescribeListenersInput{LoadBalancerArn: &lb})
	if err != nil || len(all.Listeners) != 2 {
		t.Errorf("listeners: %+v %v", all, err)
	}
	t.Run("a port that somebody else has is an error that says so", func(t *testing.T) {
		ln, err := net.Listen("tcp", host+":8083")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		_, err = s.CreateListener(t.Context(), &elbv2.CreateListenerInput{LoadBalancerArn: &lb, Protocol: types.ProtocolEnumHttp, Port: aws.Int32(8083), DefaultActions: []types.Action{forward(a)}})
		if code(err) != "InvalidConfigurationRequest" || !strings.Contains(err.Error(), host+":8083") || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("got %v", err)
		}
	})
	if _, err := s.DeleteLoadBalancer(t.Context(), &elbv2.DeleteLoadBalancerInput{LoadBalancerArn: &lb}); err != nil {
		t.Fatal(err)
	}
	await(t, "the ports are closed", func() bool { _, err := net.Dial("tcp", host+":8081"); return err != nil })
	if got := s.states(t, a); got != "" {
		t.Errorf("targets %q", got)
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]elb.Config{
		"slowed down":    {CheckSpeedup: 0.5},
		"negative delay": {RegistrationDelay: -1},
	} {
		if s, err := elb.New(cfg); err == nil {
			s.Close(t.Context())
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestP011EmptyListOnTheWire(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "web")
	_, err := s.DeregisterTargets(t.Context(), &elbv2.DeregisterTargetsInput{TargetGroupArn: &g, Targets: []types.TargetDescription{}})
	if code(err) != "ValidationError" {
		t.Errorf("got %v, want ValidationError", err)
	}
}
