package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// role is a principal of the stack: an access key that stands for a role.
type role struct{ name, session, key, secret string }

var (
	admin         = role{"elbridge-admin", "operator", "AKIALOCALADMIN000000", "local-admin-secret-0000000000000000000000"}
	registrarRole = role{RegistrarRole, Registrar, "AKIALOCALREGISTRAR00", "local-registrar-secret-00000000000000000"}
	resyncRole    = role{ResyncRole, Resync, "AKIALOCALRESYNC00000", "local-resync-secret-00000000000000000000"}
	webhookRole   = role{"elbridge-webhook", "webhook", "AKIALOCALWEBHOOK0000", "local-webhook-secret-0000000000000000000"}
)

func (r role) arn() string { return "arn:aws:iam::" + Account + ":role/" + r.name }

func (r role) principal() core.Principal {
	return core.Principal{AccessKeyID: r.key, SecretAccessKey: r.secret, Account: Account,
		ARN: "arn:aws:sts::" + Account + ":assumed-role/" + r.name + "/" + r.session}
}

// env is the environment by which SDKs find the local cloud as this role.
func (r role) env(endpoint string) map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": Region, "AWS_DEFAULT_REGION": Region,
		"AWS_ACCESS_KEY_ID": r.key, "AWS_SECRET_ACCESS_KEY": r.secret,
		"AWS_EC2_METADATA_DISABLED": "true",
	}
}

// sdk is an SDK configuration of that role.
func (r role) sdk(endpoint string) aws.Config {
	return aws.Config{Region: Region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider(r.key, r.secret, "")}
}

// AWS gives access to the local cloud as an administrator.
type AWS struct {
	Endpoint string
	Events   *eventbridge.Client
	SQS      *sqs.Client
	ELB      *elbv2.Client
	Logs     *cloudwatchlogs.Client
	QueueURL string
	DeadURL  string
	Resync   string // URL of the queue of requests for a round
}

// patient has a client wait where the account's rate is used up, which it shares
// with everybody.
func patient(o *elbv2.Options) { o.RetryMaxAttempts = 10 }

// setUpAWS makes what an account has before the first rule: the bus, the queues
// of registrar and resync with their dead-letter queues, and the record.
func setUpAWS(ctx context.Context, endpoint string) (*AWS, error) {
	sdk := admin.sdk(endpoint)
	a := &AWS{Endpoint: endpoint, Events: eventbridge.NewFromConfig(sdk), SQS: sqs.NewFromConfig(sdk), ELB: elbv2.NewFromConfig(sdk, patient),
		Logs:     cloudwatchlogs.NewFromConfig(sdk),
		QueueURL: queueURL(endpoint, Queue), DeadURL: queueURL(endpoint, DeadLetters), Resync: queueURL(endpoint, ResyncQueue)}
	if _, err := a.Events.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: new(Bus)}); err != nil {
		return nil, err
	}
	_, err := a.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new(DeadLetters), Attributes: map[string]string{"Policy": queuePolicy(DeadLettersARN)}})
	if err != nil {
		return nil, err
	}
	_, err = a.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new(Queue), Attributes: map[string]string{
		"VisibilityTimeout": fmt.Sprint(int(visibility.Seconds())),
		"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, DeadLettersARN, maxReceives),
		"Policy":            queuePolicy(QueueARN),
	}})
	if err != nil {
		return nil, err
	}
	return a, errors.Join(a.setUpResync(ctx), a.setUpAudit(ctx), a.setUpOther(ctx))
}

// queuePolicy lets the rules of our bus send to a queue: one statement for all
// of them, so that a new rule needs no change here.
func queuePolicy(arn string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},`+
		`"Action":"sqs:SendMessage","Resource":%q,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:%s:%s:rule/%s/*"}}}]}`, arn, Region, Account, Bus)
}

// functionEnv is the environment of registrar and resync.
func functionEnv(r role, endpoint string) map[string]string {
	env := r.env(endpoint)
	maps.Copy(env, map[string]string{
		telemetry.EnvBus: BusARN, telemetry.EnvQueueURL: queueURL(endpoint, Queue), telemetry.EnvQueueARN: QueueARN,
		telemetry.EnvDeadLetterURL:  queueURL(endpoint, DeadLetters),
		telemetry.EnvResyncQueueURL: queueURL(endpoint, ResyncQueue),
		telemetry.EnvClusters:       fmt.Sprintf(`[{"name":%q,"eks":{"name":%q}}]`, ClusterName, ClusterName),
	})
	return env
}

// queueURL is SQS's own form.
func queueURL(endpoint, name string) string { return endpoint + "/" + Account + "/" + name }

// Group makes a target group of ip targets on port, with fast health checks, and
// the owner tag if owned.
func (a *AWS) Group(ctx context.Context, name string, port int32, owned bool) (arn string, err error) {
	out, err := a.ELB.CreateTargetGroup(ctx, &elbv2.CreateTargetGroupInput{
		Name: &name, Port: &port, Protocol: elbtypes.ProtocolEnumHttp, TargetType: elbtypes.TargetTypeEnumIp, VpcId: new(elb.VPCID),
		HealthCheckPath: new("/healthz"), HealthCheckIntervalSeconds: new(int32(5)), HealthCheckTimeoutSeconds: new(int32(2)),
		HealthyThresholdCount: new(int32(2)), UnhealthyThresholdCount: new(int32(2)),
	})
	if err != nil {
		return "", err
	}
	arn = *out.TargetGroups[0].TargetGroupArn
	if owned {
		_, err = a.ELB.AddTags(ctx, &elbv2.AddTagsInput{ResourceArns: []string{arn}, Tags: []elbtypes.Tag{{Key: new(binding.OwnerTag), Value: new(BusARN)}}})
	}
	return arn, err
}

// DrainFor sets how long the group's targets drain, in seconds.
func (a *AWS) DrainFor(ctx context.Context, group string, seconds int) error {
	_, err := a.ELB.ModifyTargetGroupAttributes(ctx, &elbv2.ModifyTargetGroupAttributesInput{TargetGroupArn: &group,
		Attributes: []elbtypes.TargetGroupAttribute{{Key: new("deregistration_delay.timeout_seconds"), Value: new(fmt.Sprint(seconds))}}})
	return err
}

// LoadBalancer puts an application load balancer with a listener on port before
// the group and returns its URL.
func (a *AWS) LoadBalancer(ctx context.Context, name string, port int32, group string) (string, error) {
	lb, err := a.ELB.CreateLoadBalancer(ctx, &elbv2.CreateLoadBalancerInput{Name: &name, Subnets: []string{elb.SubnetA, elb.SubnetB, elb.SubnetC}})
	if err != nil {
		return "", err
	}
	_, err = a.ELB.CreateListener(ctx, &elbv2.CreateListenerInput{LoadBalancerArn: lb.LoadBalancers[0].LoadBalancerArn, Port: &port,
		Protocol:       elbtypes.ProtocolEnumHttp,
		DefaultActions: []elbtypes.Action{{Type: elbtypes.ActionTypeEnumForward, TargetGroupArn: &group}}})
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", *lb.LoadBalancers[0].DNSName, port), Path: "/"}
	return u.String(), nil
}

// Rule binds pods to a group: detail is the pattern's part on the pod event, and
// constants the binding's, both JSON objects.
func (a *AWS) Rule(ctx context.Context, name, detail, constants string) error {
	return a.RuleOn(ctx, Bus, QueueARN, name, detail, constants)
}

// RuleOn does that on another bus, whose registrar has another queue.
func (a *AWS) RuleOn(ctx context.Context, bus, queueARN, name, detail, constants string) error {
	_, err := a.Events.PutRule(ctx, &eventbridge.PutRuleInput{Name: &name, EventBusName: &bus,
		EventPattern: new(`{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":` + detail + `}`)})
	if err != nil {
		return err
	}
	out, err := a.Events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &name, EventBusName: &bus, Targets: []types.Target{{
		Id: new("registrar"), Arn: &queueARN,
		InputTransformer: &types.InputTransformer{InputTemplate: new(`{"binding":` + constants + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`)},
		RetryPolicy:      &types.RetryPolicy{MaximumEventAgeInSeconds: new(int32(900)), MaximumRetryAttempts: new(int32(185))},
		DeadLetterConfig: &types.DeadLetterConfig{Arn: new(DeadLettersARN)},
	}}})
	if err == nil && out.FailedEntryCount > 0 {
		err = fmt.Errorf("target of rule %s: %s: %s", name, *out.FailedEntries[0].ErrorCode, *out.FailedEntries[0].ErrorMessage)
	}
	return err
}
