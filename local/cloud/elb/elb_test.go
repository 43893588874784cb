package elb_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/vpc"
)

// stack is a local ELB behind a real HTTP server, and an unmodified SDK client.
type stack struct {
	*elbv2.Client
	service *elb.Service
	server  *core.Server
	url     string
}

var testNet atomic.Int32

// start serves an ELB. Each has load balancer addresses of its own, other
// processes' included.
func start(t *testing.T, cfg elb.Config) *stack {
	t.Helper()
	if cfg.Buckets == nil {
		cfg.Buckets = &elb.Buckets{}
	}
	if cfg.CheckSpeedup == 0 {
		cfg.CheckSpeedup = 250 // 5 s are 20 ms
	}
	if cfg.ApplicationPropagation == 0 {
		cfg.ApplicationPropagation = -1
	}
	if cfg.NetworkPropagation == 0 {
		cfg.NetworkPropagation = -1
	}
	pid := os.Getpid()
	cfg.Addresses = netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 100 + byte(testNet.Add(1)%100), byte(pid >> 8), byte(pid)}), 16)
	service, err := elb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server, err := core.NewServer(core.Options{Clock: cfg.Clock, Principals: []core.Principal{
		{AccessKeyID: "AKIDONE", SecretAccessKey: "one", Account: "111122223333", ARN: "arn:aws:iam::111122223333:user/one"},
		{AccessKeyID: "AKIDTWO", SecretAccessKey: "two", Account: "444455556666", ARN: "arn:aws:iam::444455556666:user/two"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Register("elasticloadbalancing", service); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(server)
	t.Cleanup(func() {
		front.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		service.Close(ctx)
	})
	s := &stack{service: service, server: server, url: front.URL}
	s.Client = s.client("AKIDONE", "one", "eu-west-1")
	return s
}

// client is an SDK client without retries, so that each error is seen.
func (s *stack) client(id, secret, region string) *elbv2.Client {
	return elbv2.New(elbv2.Options{
		Region: region, BaseEndpoint: aws.String(s.url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, ""),
	})
}

// group makes a target group of ip targets and returns its ARN.
func (s *stack) group(t *testing.T, name string, change ...func(*elbv2.CreateTargetGroupInput)) string {
	t.Helper()
	in := &elbv2.CreateTargetGroupInput{
		Name: &name, Protocol: types.ProtocolEnumHttp, Port: aws.Int32(8080), VpcId: aws.String(elb.VPCID),
		TargetType: types.TargetTypeEnumIp, HealthCheckIntervalSeconds: aws.Int32(5), HealthCheckTimeoutSeconds: aws.Int32(2),
		HealthyThresholdCount: aws.Int32(2), UnhealthyThresholdCount: aws.Int32(2), HealthCheckPath: aws.String("/healthz"),
	}
	for _, c := range change {
		c(in)
	}
	out, err := s.CreateTargetGroup(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.TargetGroups[0].TargetGroupArn
}

func tcp(in *elbv2.CreateTargetGroupInput) {
	in.Protocol, in.HealthCheckPath = types.ProtocolEnumTcp, nil
}

// balancer makes a load balancer and returns its ARN and address.
func (s *stack) balancer(t *testing.T, name string, kind types.LoadBalancerTypeEnum) (arn, host string) {
	t.Helper()
	out, err := s.CreateLoadBalancer(t.Context(), &elbv2.CreateLoadBalancerInput{
		Name: &name, Type: kind, Subnets: []string{elb.SubnetA, elb.SubnetB, elb.SubnetC},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.LoadBalancers[0].LoadBalancerArn, *out.LoadBalancers[0].DNSName
}

// listen forwards a port to groups, with equal weights.
func (s *stack) listen(t *testing.T, balancer string, protocol types.ProtocolEnum, port int32, groups ...string) string {
	t.Helper()
	out, err := s.CreateListener(t.Context(), &elbv2.CreateListenerInput{
		LoadBalancerArn: &balancer, Protocol: protocol, Port: &port, DefaultActions: []types.Action{forward(groups...)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Listeners[0].ListenerArn
}

func forward(groups ...string) types.Action {
	a := types.Action{Type: types.ActionTypeEnumForward, ForwardConfig: &types.ForwardActionConfig{}}
	for _, g := range groups {
		a.ForwardConfig.TargetGroups = append(a.ForwardConfig.TargetGroups, types.TargetGroupTuple{TargetGroupArn: aws.String(g), Weight: aws.Int32(1)})
	}
	return a
}

// at is a target; port 0 leaves the port out.
func at(id string, port int32) types.TargetDescription {
	d := types.TargetDescription{Id: &id}
	if port != 0 {
		d.Port = &port
	}
	return d
}

func (s *stack) register(t *testing.T, group string, targets ...types.TargetDescription) {
	t.Helper()
	if _, err := s.RegisterTargets(t.Context(), &elbv2.RegisterTargetsInput{TargetGroupArn: &group, Targets: targets}); err != nil {
		t.Fatal(err)
	}
}

func (s *stack) deregister(t *testing.T, group string, targets ...types.TargetDescription) {
	t.Helper()
	if _, err := s.DeregisterTargets(t.Context(), &elbv2.DeregisterTargetsInput{TargetGroupArn: &group, Targets: targets}); err != nil {
		t.Fatal(err)
	}
}

// states returns "id:port=state/reason" for each target, in order.
func (s *stack) states(t *testing.T, group string, asked ...types.TargetDescription) string {
	t.Helper()
	out, err := s.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: &group, Targets: asked})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for i, h := range out.TargetHealthDescriptions {
		if i > 0 {
			text += " "
		}
		text += fmt.Sprintf("%s:%d=%s", *h.Target.Id, *h.Target.Port, h.TargetHealth.State)
		if h.TargetHealth.Reason != "" {
			text += "/" + string(h.TargetHealth.Reason)
		}
	}
	return text
}

// await waits until a condition holds, at most 10 s.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (s *stack) awaitStates(t *testing.T, group, want string) {
	t.Helper()
	last := ""
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if last = s.states(t, group); last == want {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("targets are %q, want %q", last, want)
}

// pod serves on a published address until it is closed; it answers with its
// address. handler may be nil.
func pod(t *testing.T, address string, handler http.Handler) *http.Server {
	t.Helper()
	ln := listenPod(t, address)
	if handler == nil {
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, address) })
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(ln) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

// code is the code of an API error.
func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

// listenPod listens where a published address really is.
func listenPod(t *testing.T, address string) net.Listener {
	t.Helper()
	real, err := vpc.HostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", real)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}
