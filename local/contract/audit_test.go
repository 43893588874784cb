package contract_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/bus"
)

const (
	auditGroup = "/aws/events/elbridge"
	webGroup   = "arn:aws:elasticloadbalancing:" + region + ":" + account + ":targetgroup/web/0123456789abcdef"
)

// auditRule keeps all that elbridge says of itself, and of pods nothing:
// docs/history.md.
const auditRule = `{"source":["elbridge",{"prefix":"elbridge."}],"detail-type":[{"anything-but":["Pod State Change"]}]}`

// keepAudit makes the bus, the log group and the rule that feeds it.
func keepAudit(t *testing.T, events *eventbridge.Client, logs *cloudwatchlogs.Client) {
	t.Helper()
	ctx, name := t.Context(), aws.String("elbridge")
	_, noBus := events.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: name})
	_, noGroup := logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String(auditGroup)})
	_, noPolicy := logs.PutResourcePolicy(ctx, &cloudwatchlogs.PutResourcePolicyInput{PolicyName: name, PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow",
		"Principal":{"Service":["events.amazonaws.com","delivery.logs.amazonaws.com"]},"Action":["logs:CreateLogStream","logs:PutLogEvents"],"Resource":"arn:aws:logs:` + region + ":" + account + `:log-group:/aws/events/*:*"}]}`)})
	_, noRule := events.PutRule(ctx, &eventbridge.PutRuleInput{Name: aws.String("audit"), EventBusName: name, EventPattern: aws.String(auditRule)})
	_, noTarget := events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: aws.String("audit"), EventBusName: name,
		Targets: []types.Target{{Id: aws.String("log"), Arn: aws.String("arn:aws:logs:" + region + ":" + account + ":log-group:" + auditGroup)}}})
	if err := errors.Join(noBus, noGroup, noPolicy, noRule, noTarget); err != nil {
		t.Fatal(err)
	}
}

// I10: what was put on the bus can be asked for: who removed this address, and why (P041).
func TestAudit(t *testing.T) {
	w := start(t, elb.Config{})
	events, logs := eventbridge.NewFromConfig(w.config(registrar)), cloudwatchlogs.NewFromConfig(w.config(registrar))
	r := audit.New(logs, auditGroup)
	if _, err := r.Events(t.Context(), audit.Query{}); !errors.Is(err, audit.ErrNoLog) {
		t.Errorf("before there is a log group: %v", err)
	}
	keepAudit(t, events, logs)
	now := time.Now()
	entry := func(source, detailType, detail string, ago time.Duration) bus.Entry {
		return bus.Entry{Source: source, DetailType: detailType, Detail: []byte(detail), Time: now.Add(-ago)}
	}
	const removed = `{"schema":1,"targetGroup":"` + webGroup + `","cause":{"kind":"drift","runId":"run-1","round":3,"drift":"extra"},"registered":[],"deregistered":[{"id":"10.64.0.1","port":80},{"id":"fd00::1","port":80}]}`
	_, err := bus.NewPublisher(events, "elbridge", bus.Retry{}).Put(t.Context(), []bus.Entry{
		entry("elbridge", "Pod State Change", `{"podIP":"10.64.0.1"}`, time.Minute),
		entry("elbridge", "Webhook Started", `{"cluster":"prod"}`, 50*time.Minute),
		entry("elbridge.targets", "Targets Changed", removed, 3*time.Minute),
		entry("elbridge.targets", "Targets Changed", strings.ReplaceAll(removed, "10.64.0.1", "10.64.0.12"), 2*time.Minute),
		entry("elbridge.targets", "Resync Completed", `{"schema":1,"runId":"run-1","request":{"id":"req-1"},"findings":[{"targetGroup":"`+webGroup+`","id":"10.64.0.1"}]}`, time.Minute),
		entry("elbridge.guard", "Guard Action", `{"step":"down"}`, 2*time.Hour),
		entry("somebody", "Else", `{}`, time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(q audit.Query) string {
		all, err := r.Events(t.Context(), q)
		if err != nil {
			t.Error(err)
		}
		var names []string
		for _, e := range all {
			names = append(names, e.DetailType)
		}
		return strings.Join(names, ", ")
	}
	await(t, "all are logged", func() bool {
		return ask(audit.Query{}) == "Guard Action, Webhook Started, Targets Changed, Targets Changed, Resync Completed"
	})
	for name, tt := range map[string]struct {
		q    audit.Query
		want string
	}{
		"address":        {audit.Query{Address: "10.64.0.1"}, "Targets Changed, Resync Completed"},
		"IPv6 address":   {audit.Query{Address: "FD00::1"}, "Targets Changed, Targets Changed"},
		"group":          {audit.Query{TargetGroup: webGroup, DetailTypes: []string{"Targets Changed"}}, "Targets Changed, Targets Changed"},
		"run":            {audit.Query{RunID: "run-1"}, "Targets Changed, Targets Changed, Resync Completed"},
		"request":        {audit.Query{Request: "req-1"}, "Resync Completed"},
		"types":          {audit.Query{DetailTypes: []string{"Guard Action", "Webhook Started"}}, "Guard Action, Webhook Started"},
		"from, to":       {audit.Query{From: now.Add(-time.Hour), To: now.Add(-150 * time.Second)}, "Webhook Started, Targets Changed"},
		"the newest two": {audit.Query{Limit: 2}, "Targets Changed, Resync Completed"},
		"nobody":         {audit.Query{Address: "10.64.0.2"}, ""},
	} {
		if got := ask(tt.q); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	all, err := r.Events(t.Context(), audit.Query{Address: "10.64.0.1", DetailTypes: []string{"Targets Changed"}})
	if err != nil || len(all) != 1 || string(all[0].Detail) != removed || all[0].Source != "elbridge.targets" {
		t.Errorf("the removal: %+v, error %v", all, err)
	}

	w.fail(t, core.Fault{ID: "t", Service: "logs", Kind: core.FaultThrottle})
	if _, err := r.Events(t.Context(), audit.Query{}); !errors.Is(err, audit.ErrThrottled) {
		t.Errorf("throttled: %v", err)
	}
	w.fail(t, core.Fault{ID: "t", Service: "logs", Kind: core.FaultError, Code: "AccessDeniedException"})
	if _, err := r.Events(t.Context(), audit.Query{}); !errors.Is(err, audit.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
}
