package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/local/cloud"
	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/eks"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
	"github.com/elbridge/elbridge/pkg/binding"
)

// account is the AWS of a fleet.
type account struct {
	cloud  *cloud.Cloud
	groups []string // ARNs
	events *eventbridge.Client
	elb    *elbv2.Client
	queues *sqs.Client
	port   int32 // of the listeners
}

// balancers have their addresses here, apart from those of a stack.
var balancers = netip.MustParsePrefix("127.81.0.0/16")

// newAccount makes bus, rules, groups and targets as they are when nothing is to
// be repaired. Describe calls are limited as AWS limits them; calls that change
// something are not, so that this takes no minutes.
func newAccount(ctx context.Context, spec Spec, cluster eks.Cluster) (*account, error) {
	c, err := cloud.New(cloud.Config{Principals: []core.Principal{principal}, Clusters: []eks.Cluster{cluster}})
	if err != nil {
		return nil, err
	}
	vpc := elb.DefaultVPC()
	everything := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	vpc.CIDRs, vpc.Subnets[0].CIDRs = everything, everything
	limits := state.DefaultLimits()
	limits.Balancers, limits.TargetsPerZoneNLB = Groups, limits.TargetsPerGroup
	cfg := elb.Config{VPCs: []state.VPC{vpc}, Limits: &limits, Buckets: &elb.Buckets{Describe: elb.DefaultBuckets().Describe}, Addresses: balancers, Dial: answers}
	balancing, err := elb.New(cfg) //nolint:contextcheck // it runs until it is closed
	if err != nil {
		return nil, err
	}
	if err := c.Register("elasticloadbalancing", balancing); err != nil {
		return nil, err
	}
	c.Run("elb", balancing.Run)
	sdk := aws.Config{Region: Region, BaseEndpoint: new("http://fleet.invalid"), HTTPClient: &http.Client{Transport: core.InMemory(c.Handler())},
		Credentials: credentials.NewStaticCredentialsProvider(principal.AccessKeyID, principal.SecretAccessKey, "")}
	a := &account{cloud: c, events: eventbridge.NewFromConfig(sdk), elb: elbv2.NewFromConfig(sdk), queues: sqs.NewFromConfig(sdk)}
	for _, step := range []func(context.Context, Spec) error{a.putQueues, a.putGroups, a.putRules} {
		if err := step(ctx, spec); err != nil {
			return nil, fmt.Errorf("the fleet's account: %w", err)
		}
	}
	return a, nil
}

func (a *account) putQueues(ctx context.Context, _ Spec) error {
	for _, name := range []string{DeadLetters, Queue, Requests} {
		if _, err := a.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name}); err != nil {
			return err
		}
	}
	_, err := a.events.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: new(Bus)})
	return err
}

// answers stands for pods that do: it is dialled for health checks alone.
func answers(context.Context, string, string) (net.Conn, error) {
	near, _ := net.Pipe()
	return near, nil
}

// putGroups makes the groups, ours by their tag, each with the targets that are
// claimed and with a load balancer of its own, so that targets are healthy. They are
// checked by TCP and as seldom as the API allows, which costs next to nothing.
func (a *account) putGroups(ctx context.Context, spec Spec) error {
	var err error
	if a.port, err = freePort(); err != nil {
		return err
	}
	for g, claimed := range spec.claims() {
		out, err := a.elb.CreateTargetGroup(ctx, &elbv2.CreateTargetGroupInput{Name: new(fmt.Sprintf("fleet-%03d", g)), Port: new(int32(trafficPort)),
			Protocol: elbtypes.ProtocolEnumTcp, TargetType: elbtypes.TargetTypeEnumIp, VpcId: new(elb.VPCID), HealthCheckIntervalSeconds: new(int32(300)),
			HealthyThresholdCount: new(int32(2)), UnhealthyThresholdCount: new(int32(2)),
			Tags: []elbtypes.Tag{{Key: new(binding.OwnerTag), Value: new(BusARN)}}})
		if err != nil {
			return err
		}
		arn := out.TargetGroups[0].TargetGroupArn
		a.groups = append(a.groups, *arn)
		var targets []elbtypes.TargetDescription
		for i := range claimed {
			targets = append(targets, elbtypes.TargetDescription{Id: new(addressOf(i).String()), Port: new(int32(trafficPort))})
		}
		if len(targets) > 0 {
			if _, err := a.elb.RegisterTargets(ctx, &elbv2.RegisterTargetsInput{TargetGroupArn: arn, Targets: targets}); err != nil {
				return err
			}
		}
		if err := a.putBalancer(ctx, g, arn); err != nil {
			return err
		}
	}
	return nil
}

// freePort returns a port that no other fleet on this machine listens on.
func freePort() (int32, error) {
	l, err := net.Listen("tcp", balancers.Addr().Next().String()+":0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseInt(text, 10, 32)
	return int32(port), err
}

func (a *account) putBalancer(ctx context.Context, g int, group *string) error {
	lb, err := a.elb.CreateLoadBalancer(ctx, &elbv2.CreateLoadBalancerInput{Name: new(fmt.Sprintf("fleet-%03d", g)), Type: elbtypes.LoadBalancerTypeEnumNetwork, Subnets: []string{elb.SubnetA}})
	if err != nil {
		return err
	}
	_, err = a.elb.CreateListener(ctx, &elbv2.CreateListenerInput{LoadBalancerArn: lb.LoadBalancers[0].LoadBalancerArn, Port: &a.port, Protocol: elbtypes.ProtocolEnumTcp,
		DefaultActions: []elbtypes.Action{{Type: elbtypes.ActionTypeEnumForward, TargetGroupArn: group}}})
	return err
}

func (a *account) putRules(ctx context.Context, _ Spec) error {
	for _, r := range rules() {
		_, err := a.events.PutRule(ctx, &eventbridge.PutRuleInput{Name: &r.name, EventBusName: new(Bus),
			EventPattern: new(`{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":` + r.detail() + `}`)})
		if err != nil {
			return err
		}
		var targets []types.Target
		for n, g := range r.groups {
			constants := fmt.Sprintf(`{"targetGroup":%q,"port":%d}`, a.groups[g], trafficPort)
			targets = append(targets, types.Target{Id: new(fmt.Sprintf("registrar-%d", n)), Arn: new(QueueARN),
				InputTransformer: &types.InputTransformer{InputTemplate: new(`{"binding":` + constants + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`)}})
		}
		out, err := a.events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &r.name, EventBusName: new(Bus), Targets: targets})
		if err != nil {
			return err
		}
		if out.FailedEntryCount > 0 {
			return fmt.Errorf("targets of rule %s: %s", r.name, *out.FailedEntries[0].ErrorMessage)
		}
	}
	return nil
}

// takeOut takes a target out of a group, as a hand would.
func (a *account) takeOut(ctx context.Context, group int, spec Spec) (string, error) {
	for i := range spec.claims()[group] {
		target := elbtypes.TargetDescription{Id: new(addressOf(i).String()), Port: new(int32(trafficPort))}
		_, err := a.elb.DeregisterTargets(ctx, &elbv2.DeregisterTargetsInput{TargetGroupArn: &a.groups[group], Targets: []elbtypes.TargetDescription{target}})
		return *target.Id, err
	}
	return "", fmt.Errorf("group %d has no target", group)
}
