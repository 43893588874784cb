package elb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/local/cloud/elb"
)

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestALifeOfATarget(t *testing.T) {
	var mu sync.Mutex
	var changes []string
	s := start(t, elb.Config{OnChange: func(c elb.Change) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, fmt.Sprintf("%s %s %s>%s", c.GroupName, c.Target.ID, c.From.State, c.To.State))
	}})
	g := s.group(t, "web")
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	pod(t, "10.64.210.1:8080", nil)
	s.register(t, g, at("10.64.210.1", 0))
	s.awaitStates(t, g, "10.64.210.1:8080=healthy")
	if status, body, _ := get(t, "http://"+host+":8080/"); status != 200 || body != "10.64.210.1:8080" {
		t.Errorf("through the load balancer: %d %q", status, body)
	}
	if got := s.states(t, g, at("10.64.210.1", 0), at("10.64.210.2", 0)); got != "10.64.210.1:8080=healthy 10.64.210.2:8080=unused/Target.NotRegistered" {
		t.Errorf("asked for two: %s", got)
	}
	s.deregister(t, g, at("10.64.210.1", 0))
	s.awaitStates(t, g, "10.64.210.1:8080=draining/Target.DeregistrationInProgress")
	if status, _, h := get(t, "http://"+host+":8080/"); status != 503 || h.Get("Server") != "awselb/2.0" {
		t.Errorf("with no target: %d by %q, want 503 by awselb/2.0", status, h.Get("Server"))
	}
	s.register(t, g, at("10.64.210.1", 0)) // I5: wanted again
	s.awaitStates(t, g, "10.64.210.1:8080=healthy")
	want := "web 10.64.210.1 >initial, web 10.64.210.1 initial>initial, web 10.64.210.1 initial>healthy, web 10.64.210.1 healthy>draining, " +
		"web 10.64.210.1 draining>initial, web 10.64.210.1 initial>initial, web 10.64.210.1 initial>healthy"
	await(t, "the feed of changes", func() bool { mu.Lock(); defer mu.Unlock(); return strings.Join(changes, ", ") == want })
}

func TestChecksAreTrue(t *testing.T) {
	s := start(t, elb.Config{})
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" || !strings.HasPrefix(r.UserAgent(), "ELB-HealthChecker/") {
				status = http.StatusNotFound
			}
			w.WriteHeader(status)
		})
	}
	pod(t, "10.64.211.1:8080", answer(200))
	pod(t, "10.64.211.2:8080", answer(503))
	pod(t, "10.64.211.4:8080", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	pod(t, "10.64.211.5:8080", answer(302))
	g := s.group(t, "web")
	lb, _ := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	s.register(t, g, at("10.64.211.1", 0), at("10.64.211.2", 0), at("10.64.211.3", 0), at("10.64.211.4", 0), at("10.64.211.5", 0))
	s.awaitStates(t, g, "10.64.211.1:8080=healthy 10.64.211.2:8080=unhealthy/Target.ResponseCodeMismatch 10.64.211.3:8080=unhealthy/Target.FailedHealthChecks "+
		"10.64.211.4:8080=unhealthy/Target.Timeout 10.64.211.5:8080=unhealthy/Target.ResponseCodeMismatch")
	_, err := s.ModifyTargetGroup(t.Context(), &elbv2.ModifyTargetGroupInput{TargetGroupArn: &g, Matcher: &types.Matcher{HttpCode: aws.String("200,302")}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "302 is healthy now", func() bool { return strings.HasSuffix(s.states(t, g), "10.64.211.5:8080=healthy") })
}

func TestInstanceTargets(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "nodes", func(in *elbv2.CreateTargetGroupInput) {
		in.TargetType, in.HealthCheckPort = types.TargetTypeEnumInstance, aws.String("31999")
	})
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	pod(t, "10.64.0.13:31999", nil) // the check has a port of its own
	pod(t, "10.64.0.13:31080", nil)
	s.register(t, g, at("i-0000000000000000c", 31080))
	s.awaitStates(t, g, "i-0000000000000000c:31080=healthy")
	if status, body, _ := get(t, "http://"+host+":8080/"); status != 200 || body != "10.64.0.13:31080" {
		t.Errorf("through the load balancer: %d %q", status, body)
	}
}

func TestSixthFamily(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "v6", func(in *elbv2.CreateTargetGroupInput) { in.IpAddressType = types.TargetGroupIpAddressTypeEnumIpv6 })
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	pod(t, "[fd00::2d3]:8080", nil)
	s.register(t, g, at("fd00:0::2d3", 0))
	s.awaitStates(t, g, "fd00::2d3:8080=healthy")
	if _, body, _ := get(t, "http://"+host+":8080/"); body != "[fd00::2d3]:8080" {
		t.Errorf("through the load balancer: %q", body)
	}
}

func TestAllUnhealthyFailsOpen(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "web")
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	pod(t, "10.64.216.1:8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(500)
		}
	}))
	s.register(t, g, at("10.64.216.1", 0))
	s.awaitStates(t, g, "10.64.216.1:8080=unhealthy/Target.ResponseCodeMismatch")
	if status, _, _ := get(t, "http://"+host+":8080/"); status != 200 {
		t.Errorf("with unhealthy targets only: %d, want 200", status)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	s := start(t, elb.Config{ApplicationPropagation: time.Minute})
	g := s.group(t, "web")
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	pod(t, "10.64.219.1:8080", nil)
	s.register(t, g, at("10.64.219.1", 0))
	c, err := net.Dial("tcp", host+":8080") // a client that says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.service.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	const front = 8 // the API's server and its client, and the pod
	await(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+front })
	if _, err := net.Dial("tcp", host+":8080"); err == nil {
		t.Error("the listener is still there")
	}
	s.service.Close(t.Context()) // a second time does nothing
	if err := errors.Join(second(s.DescribeTargetGroups(t.Context(), &elbv2.DescribeTargetGroupsInput{}))); err != nil {
		t.Errorf("the API without its data plane: %v", err)
	}
}
