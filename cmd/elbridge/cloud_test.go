package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/local/cloud"
	"github.com/elbridge/elbridge/local/cloud/core"
	cloudelb "github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

const operatorARN = "arn:aws:sts::111122223333:assumed-role/Operator/kim"

// cloudOf serves a local AWS with one bus and one group, and points the SDK at it.
func cloudOf(t *testing.T) aws.Config {
	t.Helper()
	c, err := cloud.New(cloud.Config{Seed: 1, Principals: []core.Principal{{AccessKeyID: "ASIAOPERATOR", SecretAccessKey: "secret", SessionToken: "token", Account: "111122223333", ARN: operatorARN}}})
	if err != nil {
		t.Fatal(err)
	}
	lb, err := cloudelb.New(cloudelb.Config{Buckets: &cloudelb.Buckets{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register("elasticloadbalancing", lb); err != nil {
		t.Fatal(err)
	}
	c.Run("elasticloadbalancing", lb.Run)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the local AWS: %v", err)
		}
	})
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": "http://" + l.Addr().String(), "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "ASIAOPERATOR",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token", "AWS_PROFILE": "", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "ELBRIDGE_RESYNC_QUEUE_URL": ""} {
		t.Setenv(name, value)
	}
	cfg, err := awsconfig.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, noBus := eventbridge.NewFromConfig(cfg).CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: new("elbridge")})
	_, noGroup := elb.NewFromConfig(cfg).CreateTargetGroup(t.Context(), &elb.CreateTargetGroupInput{Name: new("web"), Port: new(int32(80)),
		Protocol: elbtypes.ProtocolEnumHttp, TargetType: elbtypes.TargetTypeEnumIp, VpcId: new(cloudelb.VPCID)})
	if err := errors.Join(noBus, noGroup); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// elbridge runs a command line and returns what it says, and its exit code.
func elbridge(t *testing.T, line string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := root()
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(shellWords(line))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		exit := exitError{code: 1}
		if !errors.As(err, &exit) {
			errs.WriteString(err.Error())
		}
		code = exit.code
	}
	return out.String(), errs.String(), code
}

// TestOperator_I18: what people tell elbridge by tags goes over the wire, with who
// did so.
func TestOperator_I18(t *testing.T) {
	cloudOf(t)
	by := " by " + operatorARN + " : "
	for _, step := range []struct {
		line, want string
		code       int
	}{
		{"unfreeze --reason x", " is not frozen\n", 0},
		{`freeze --reason "incident 7, really?" --dry-run`, " would be frozen: at ", 0},
		{`freeze --reason "incident 7, really?"`, by + "incident 7 really\n", 0},
		{"freeze --reason again", " is frozen already: at ", 0},
		{"freeze -o json", `"changed": false`, 0},
		{"freeze --group web", "targetgroup/web/", 0},
		{"unfreeze --reason over", by + "incident 7 really\n", 0},
		{"unfreeze --reason over", " is not frozen\n", 0},
		{"freeze --group web", " is frozen already: at ", 0},
		{"unfreeze --group web --reason over", " is not frozen any more; it was: at ", 0},
		{"freeze --group other", "target group other", 1},
		{"freeze --bus other", `no such event bus "other"`, 1},
		{"adopt web --reason why -o json", by + "why", 0},
		{"adopt web", " owns already ", 0},
	} {
		out, errs, code := elbridge(t, step.line)
		if code != step.code || !strings.Contains(out+errs, step.want) {
			t.Fatalf("%s: exit code %d, said\n%s%s\nwant %d, %q", step.line, code, out, errs, step.code, step.want)
		}
	}
}

func TestOperator_Wait(t *testing.T) {
	cfg := cloudOf(t)
	out, errs, code := elbridge(t, "wait --group web --healthy 1 --timeout 0s")
	if code != 3 || !strings.Contains(out, "the group holds no targets") {
		t.Errorf("exit code %d, said\n%s%s", code, out, errs)
	}
	queue, err := sqs.NewFromConfig(cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: new("elbridge-resync")})
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, code := elbridge(t, "wait --group web --healthy 1 --timeout 0s -o json"); code != 3 || !strings.Contains(out, `"request": "`) {
		t.Errorf("exit code %d, said\n%s%s", code, out, errs)
	}
	asked := received(t, cfg, *queue.QueueUrl)
	if len(asked.Request.Groups) != 1 || groupName(asked.Request.Groups[0]) != "web" || asked.Request.By != operatorARN || asked.DryRun {
		t.Errorf("asked for %+v", asked)
	}
}

func received(t *testing.T, cfg aws.Config, url string) queue.Request {
	t.Helper()
	out, err := sqs.NewFromConfig(cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("received %v, %v", out, err)
	}
	var m queue.Request
	if err := json.Unmarshal([]byte(*out.Messages[0].Body), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOperator_History: nothing is asked for, and nothing said, that no log can
// answer; with one, a removal is found with its cause (I10).
func TestOperator_History_I10(t *testing.T) {
	cfg := cloudOf(t)
	if _, err := sqs.NewFromConfig(cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: new("elbridge-resync")}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"history --target 10.64.1.9", "drift", "resync --dry-run"} {
		if out, errs, code := elbridge(t, line); code != 1 || !strings.Contains(errs, "docs/history.md") {
			t.Errorf("%s: exit code %d, said\n%s%s", line, code, out, errs)
		}
	}
	keepEvents(t, cfg)
	removal := targetevent.TargetsChanged{Schema: 1, Cause: targetevent.Cause{Kind: targetevent.Drift, RunID: "r1", Round: 3}, Rule: "rule/elbridge/web", TargetGroup: groupARN, At: time.Now().UTC(),
		Registered: []targetevent.Key{}, Deregistered: []targetevent.Key{{ID: "10.64.1.9", Port: 80, Reason: "extra", Witness: "load-balancer"}}}
	detail, err := json.Marshal(removal)
	if err != nil {
		t.Fatal(err)
	}
	_, err = eventbridge.NewFromConfig(cfg).PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		EventBusName: new("elbridge"), Source: new(targetevent.Source), DetailType: new(targetevent.DetailTypeTargetsChanged), Detail: new(string(detail))}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "deregistered 10.64.1.9:80 web drift extra, run r1 round 3; witness load-balancer"
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		out, errs, code := elbridge(t, "history --target 10.64.1.9")
		if code == 0 && strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			break
		}
		if code != 0 || time.Now().After(deadline) {
			t.Fatalf("exit code %d, said\n%s%s", code, out, errs)
		}
	}
	if out, errs, code := elbridge(t, "drift --group web"); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "extra web 1 0 0 0 0") {
		t.Errorf("exit code %d, said\n%s%s", code, out, errs)
	}
	if out, errs, code := elbridge(t, "resync --wait --timeout 0s"); code != 3 || !strings.Contains(errs, "is resync running?") {
		t.Errorf("exit code %d, said\n%s%s", code, out, errs)
	}
}

// keepEvents has the bus's events kept in the audit log.
func keepEvents(t *testing.T, cfg aws.Config) {
	t.Helper()
	logs, events, ctx := cloudwatchlogs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg), t.Context()
	const arn = "arn:aws:logs:eu-west-1:111122223333:log-group:" + defaultLogGroup
	_, noLog := logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: new(defaultLogGroup)})
	_, noPolicy := logs.PutResourcePolicy(ctx, &cloudwatchlogs.PutResourcePolicyInput{PolicyName: new("elbridge-audit"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow",
		"Principal":{"Service":["events.amazonaws.com","delivery.logs.amazonaws.com"]},"Action":["logs:CreateLogStream","logs:PutLogEvents"],"Resource":"` + arn + `:*"}]}`)})
	_, noRule := events.PutRule(ctx, &eventbridge.PutRuleInput{Name: new("elbridge-audit"), EventBusName: new("elbridge"), EventPattern: new(`{"source":["elbridge.targets"]}`)})
	_, noTarget := events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: new("elbridge-audit"), EventBusName: new("elbridge"), Targets: []types.Target{{Id: new("log"), Arn: new(arn)}}})
	if err := errors.Join(noLog, noPolicy, noRule, noTarget); err != nil {
		t.Fatal(err)
	}
}
