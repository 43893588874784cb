package elb_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
)

func TestLoadBalancersOverTheWire(t *testing.T) {
	s := start(t, elb.Config{})
	arn, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	again, sameHost := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	network, otherHost := s.balancer(t, "edge", types.LoadBalancerTypeEnumNetwork)
	if again != arn || sameHost != host || otherHost == host {
		t.Errorf("the same again: %s on %s, want %s on %s; another on %s", again, sameHost, arn, host, otherHost)
	}
	if !strings.Contains(arn, ":loadbalancer/app/front/") || !strings.Contains(network, ":loadbalancer/net/edge/") {
		t.Errorf("ARNs %s and %s", arn, network)
	}
	out, err := s.DescribeLoadBalancers(t.Context(), &elbv2.DescribeLoadBalancersInput{Names: []string{"front"}})
	if err != nil || len(out.LoadBalancers) != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	b := out.LoadBalancers[0]
	if got := fmt.Sprint(b.Type, b.State.Code, b.Scheme, *b.VpcId, len(b.AvailabilityZones), b.CreatedTime.IsZero()); got != fmt.Sprint("application", "active", "internet-facing", elb.VPCID, 3, false) {
		t.Errorf("described: %s", got)
	}
	for name, in := range map[string]*elbv2.CreateLoadBalancerInput{
		"DuplicateLoadBalancerName":   {Name: aws.String("front"), Type: "network", Subnets: []string{elb.SubnetA}},
		"ValidationError":             {Name: aws.String("internal-x"), Subnets: []string{elb.SubnetA, elb.SubnetB}},
		"InvalidConfigurationRequest": {Name: aws.String("x"), Type: "gateway", Subnets: []string{elb.SubnetA}},
	} {
		if _, err := s.CreateLoadBalancer(t.Context(), in); code(err) != name {
			t.Errorf("%+v: %v, want %s", in, err, name)
		}
	}
	set := func(key, value string) error {
		return second(s.ModifyLoadBalancerAttributes(t.Context(), &elbv2.ModifyLoadBalancerAttributesInput{LoadBalancerArn: &arn,
			Attributes: []types.LoadBalancerAttribute{{Key: &key, Value: &value}}}))
	}
	if err := errors.Join(set("idle_timeout.timeout_seconds", "7"), set("deletion_protection.enabled", "true")); err != nil {
		t.Fatal(err)
	}
	attr, err := s.DescribeLoadBalancerAttributes(t.Context(), &elbv2.DescribeLoadBalancerAttributesInput{LoadBalancerArn: &arn})
	if err != nil || !slices.ContainsFunc(attr.Attributes, func(a types.LoadBalancerAttribute) bool {
		return *a.Key == "idle_timeout.timeout_seconds" && *a.Value == "7"
	}) {
		t.Errorf("attributes: %v %v", attr, err)
	}
	if err := set("idle_timeout.timeout_seconds", "4001"); code(err) != "ValidationError" {
		t.Errorf("a timeout too long: %v", err)
	}
	remove := func() error {
		return second(s.DeleteLoadBalancer(t.Context(), &elbv2.DeleteLoadBalancerInput{LoadBalancerArn: &arn}))
	}
	if err := remove(); code(err) != "OperationNotPermitted" {
		t.Errorf("deleting a protected one: %v", err)
	}
	if err := errors.Join(set("deletion_protection.enabled", "false"), remove(), remove()); err != nil {
		t.Errorf("deleting twice: %v", err)
	}
	limits, err := s.DescribeAccountLimits(t.Context(), &elbv2.DescribeAccountLimitsInput{})
	if err != nil || !slices.ContainsFunc(limits.Limits, func(l types.Limit) bool { return *l.Name == "targets-per-target-group" && *l.Max == "1000" }) {
		t.Errorf("limits: %v %v", limits, err)
	}
}

func TestRedirectOverTheWire(t *testing.T) {
	s := start(t, elb.Config{})
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	act := func(r *types.RedirectActionConfig) []types.Action {
		return []types.Action{{Type: types.ActionTypeEnumRedirect, RedirectConfig: r}}
	}
	create := func(r *types.RedirectActionConfig) (*elbv2.CreateListenerOutput, error) {
		return s.CreateListener(t.Context(), &elbv2.CreateListenerInput{LoadBalancerArn: &lb, Protocol: types.ProtocolEnumHttp, Port: aws.Int32(8080), DefaultActions: act(r)})
	}
	if _, err := create(&types.RedirectActionConfig{StatusCode: types.RedirectActionStatusCodeEnumHttp301}); code(err) != "InvalidLoadBalancerAction" {
		t.Errorf("a redirect to itself: %v", err)
	}
	out, err := create(&types.RedirectActionConfig{StatusCode: types.RedirectActionStatusCodeEnumHttp302, Path: aws.String("/there")})
	if err != nil || *out.Listeners[0].DefaultActions[0].RedirectConfig.Host != "#{host}" {
		t.Fatalf("%+v %v", out, err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get("http://" + host + ":8080/here")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("Location"); resp.StatusCode != 302 || got != "http://"+host+":8080/there" {
		t.Errorf("%d to %s", resp.StatusCode, got)
	}
	if _, err := s.DeleteListener(t.Context(), &elbv2.DeleteListenerInput{ListenerArn: out.Listeners[0].ListenerArn}); err != nil {
		t.Fatal(err)
	}
	await(t, "the port is closed", func() bool { _, err := net.Dial("tcp", host+":8080"); return err != nil })
	if _, err := s.DeleteListener(t.Context(), &elbv2.DeleteListenerInput{ListenerArn: out.Listeners[0].ListenerArn}); code(err) != "ListenerNotFound" {
		t.Errorf("deleting it again: %v", err)
	}
}

// A network load balancer closes the connections of a target that turns
// unhealthy, unless it is told not to.
func TestConnectionsOfAnUnhealthyTarget(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "web", tcp)
	lb, host := s.balancer(t, "edge", types.LoadBalancerTypeEnumNetwork)
	s.listen(t, lb, types.ProtocolEnumTcp, 8080, g)
	ln := listenPod(t, "10.64.217.1:8080")
	go func() { // ends with the listener
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	s.register(t, g, at("10.64.217.1", 0))
	s.awaitStates(t, g, "10.64.217.1:8080=healthy")
	c, err := net.Dial("tcp", host+":8080")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	r := bufio.NewReader(c)
	fmt.Fprintln(c, "x")
	if line, err := r.ReadString('\n'); line != "x\n" {
		t.Fatalf("echo: %q %v", line, err)
	}
	_ = ln.Close() // what is open stays open, but checks fail
	s.awaitStates(t, g, "10.64.217.1:8080=unhealthy/Target.FailedHealthChecks")
	if _, err := r.ReadString('\n'); err == nil {
		t.Error("the connection is still open")
	}
}

// An address that is nowhere is one that does not answer.
func TestUnroutableTargetTimesOut(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "web")
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	d := at("10.99.0.1", 0)
	d.AvailabilityZone = aws.String("all")
	s.register(t, g, d)
	s.awaitStates(t, g, "10.99.0.1:8080=unhealthy/Target.Timeout")
	if status, _, _ := get(t, "http://"+host+":8080/"); status != http.StatusGatewayTimeout {
		t.Errorf("through the load balancer: %d, want 504", status)
	}
}

// The whole service runs on the clock that it is given.
func TestInjectedClock(t *testing.T) {
	clock := core.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := start(t, elb.Config{Clock: clock, CheckSpeedup: 1, ApplicationPropagation: 3 * time.Second, RegistrationDelay: 7 * time.Second})
	g := s.group(t, "web")
	lb, _ := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	pod(t, "10.64.218.1:8080", nil)
	s.register(t, g, at("10.64.218.1", 0))
	// step moves the clock once everybody sleeps on it again.
	step := func(d time.Duration, want string) {
		t.Helper()
		clock.Step(d)
		s.awaitStates(t, g, want)
	}
	step(7*time.Second-1, "10.64.218.1:8080=initial/Elb.RegistrationInProgress")
	step(1, "10.64.218.1:8080=initial/Elb.InitialHealthChecking")
	await(t, "the first check", func() bool {
		clock.Step(time.Second)
		return s.states(t, g) == "10.64.218.1:8080=healthy"
	})
	s.deregister(t, g, at("10.64.218.1", 0))
	step(299*time.Second, "10.64.218.1:8080=draining/Target.DeregistrationInProgress")
	step(time.Second, "")
}

func TestControl(t *testing.T) {
	s := start(t, elb.Config{})
	s.service.RouteControl(s.server)
	do := func(method, body string) (int, string) {
		req, _ := http.NewRequest(method, s.url+"/_local/elb/propagation", strings.NewReader(body))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, strings.TrimSpace(string(b))
	}
	if status, _ := do(http.MethodPut, `{"application":"2s"}`); status != http.StatusNoContent {
		t.Errorf("setting: %d", status)
	}
	if _, got := do(http.MethodGet, ""); got != `{"application":"2s","network":"0s"}` {
		t.Errorf("after setting: %s", got)
	}
	if status, got := do(http.MethodPut, `{"alb":"2s"}`); status != http.StatusBadRequest || !strings.Contains(got, "alb") {
		t.Errorf("an unknown field: %d %s", status, got)
	}
}
