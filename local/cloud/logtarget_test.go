package cloud_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/elbridge/elbridge/local/cloud/core"
	localsts "github.com/elbridge/elbridge/local/cloud/sts"
)

const (
	logGroupARN = "arn:aws:logs:eu-west-1:111122223333:log-group:" + logGroup
	// trust is the policy of the EventBridge user guide.
	trust = `{"Statement":[{"Action":["logs:CreateLogStream","logs:PutLogEvents"],"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","delivery.logs.amazonaws.com"]},
		"Resource":"arn:aws:logs:eu-west-1:111122223333:log-group:/aws/events/*:*","Sid":"TrustEventsToStoreLogEvent"}],"Version":"2012-10-17"}`
)

func (w *world) trust(t *testing.T, document string) {
	t.Helper()
	must[*cloudwatchlogs.PutResourcePolicyOutput](t)(w.logs().PutResourcePolicy(t.Context(), &cloudwatchlogs.PutResourcePolicyInput{PolicyName: aws.String("events"), PolicyDocument: &document}))
}

func TestEventReachesLogGroup(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	w.group(t, logGroup)
	w.trust(t, trust)
	if out := must[*cloudwatchlogs.DescribeResourcePoliciesOutput](t)(w.logs().DescribeResourcePolicies(t.Context(), &cloudwatchlogs.DescribeResourcePoliciesInput{})); len(out.ResourcePolicies) != 1 || *out.ResourcePolicies[0].PolicyDocument != trust {
		t.Errorf("policies %+v", out.ResourcePolicies)
	}
	part, written := to("part", logGroupARN+":*"), to("written", logGroupARN)
	part.InputPath = aws.String("$.detail")
	written.InputTransformer = &types.InputTransformer{InputPathsMap: map[string]string{"at": "$.time", "pod": "$.detail.name"},
		InputTemplate: aws.String(`{"timestamp":<at>,"message":"pod <pod>"}`)}
	w.rule(t, "audit", anyPod, to("whole", logGroupARN+":*"), part, written)

	at := w.clock.Now()
	entry := podEvent(`{"name":"web-0"}`)
	entry.Time = &at
	id := *w.put(t, entry).Entries[0].EventId
	var got []string
	eventually(t, "the event is logged three times", func() bool {
		got, _, _ = w.read(t, cloudwatchlogs.FilterLogEventsInput{StartTime: aws.Int64(at.UnixMilli()), EndTime: aws.Int64(at.UnixMilli())})
		return len(got) == 3
	})
	all := strings.Join(got, "\n")
	for _, want := range []string{`"id":"` + id + `"`, "\n" + `{"name":"web-0"}`, "pod web-0"} {
		if !strings.Contains("\n"+all, want) {
			t.Errorf("nothing with %s is logged: %s", want, all)
		}
	}
}

func TestEventsForLogGroupThatAreNotLogged(t *testing.T) {
	t.Parallel()
	const there = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"logs:*","Resource":"arn:aws:logs:eu-west-1:111122223333:log-group:/there:*"}]}`
	tests := map[string]struct{ arn, policy, input, code string }{
		"no group":            {logGroupARN + "-not", trust, "", "NO_RESOURCE"},
		"no policy":           {logGroupARN, "", "", "NO_PERMISSIONS"},
		"for another group":   {logGroupARN, there, "", "NO_PERMISSIONS"},
		"for another service": {logGroupARN, strings.Replace(trust, `"events.amazonaws.com",`, "", 1), "", "NO_PERMISSIONS"},
		"one of two actions":  {logGroupARN, strings.Replace(trust, `"logs:CreateLogStream",`, "", 1), "", "NO_PERMISSIONS"},
		"a time that is none": {logGroupARN, trust, `{"timestamp":"noon","message":"m"}`, "SDK_CLIENT_ERROR"},
		"long ago":            {logGroupARN, trust, `{"timestamp":1000,"message":"m"}`, "SDK_CLIENT_ERROR"},
		"nothing to say":      {logGroupARN, trust, `{"timestamp":1000,"message":""}`, "SDK_CLIENT_ERROR"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.bus(t, "elbridge")
			w.group(t, logGroup)
			if tt.policy != "" {
				w.trust(t, tt.policy)
			}
			dead, deadARN := w.open(t, "dead")
			target := to("log", tt.arn)
			if tt.input != "" {
				target.Input = &tt.input
			}
			target.DeadLetterConfig = &types.DeadLetterConfig{Arn: &deadARN}
			w.rule(t, "audit", anyPod, target)
			w.put(t, podEvent(`{}`))
			m := w.wait(t, dead, 1)[0]
			if got := *m.MessageAttributes["ERROR_CODE"].StringValue; got != tt.code {
				t.Errorf("%s, want %s", got, tt.code)
			}
		})
	}
}

func TestInputForLogGroup(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	w.rule(t, "audit", anyPod)
	target := to("log", logGroupARN)
	target.Input = aws.String(`{"note":"no message"}`)
	_, err := w.events().PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("audit"), EventBusName: aws.String("elbridge"), Targets: []types.Target{target}})
	if code(err) != "ValidationException" {
		t.Errorf("an input without a message: %v", err)
	}
}

// Who sent a message, as the queue saw it: what a request's sender can't choose.
func TestSenderID(t *testing.T) {
	t.Parallel()
	w := start(t)
	url, arn := w.open(t, "requests")
	w.bus(t, "elbridge")
	w.rule(t, "all", anyPod, to("q", arn))
	sender := func(send func()) string {
		send()
		var got []sqstypes.Message
		eventually(t, "the message comes", func() bool {
			got = must[*sqs.ReceiveMessageOutput](t)(w.sqs().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url,
				MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameSenderId}})).Messages
			return len(got) == 1
		})
		if len(got[0].Attributes) != 1 {
			t.Errorf("attributes %v", got[0].Attributes)
		}
		return got[0].Attributes["SenderId"]
	}
	by := func(p core.Principal) string { return sender(func() { w.by(p).send(t, url, "x") }) }

	role := core.RoleID("111122223333", "registrar")
	if got := by(robot); got != role+":run-1" || len(role) != 21 || !strings.HasPrefix(role, "AROA") {
		t.Errorf("a role's session is %s", got)
	}
	next := robot
	next.AccessKeyID, next.ARN = "ASIANEXT", strings.Replace(robot.ARN, "run-1", "run-2", 1)
	if err := w.Server.Principals.Add(next); err != nil {
		t.Fatal(err)
	}
	if got := by(next); got != role+":run-2" {
		t.Errorf("another session of the role is %s, want %s:run-2", got, role)
	}
	w.STS.AddRole(localsts.Role{ARN: "arn:aws:iam::111122223333:role/registrar"})
	assumed := must[*sts.AssumeRoleOutput](t)(w.sts().AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::111122223333:role/registrar"), RoleSessionName: aws.String("run-3")}))
	if got := *assumed.AssumedRoleUser.AssumedRoleId; got != role+":run-3" {
		t.Errorf("the assumed role is %s, want %s:run-3", got, role)
	}
	if got := by(alice); len(got) != 21 || !strings.HasPrefix(got, "AIDA") {
		t.Errorf("a user is %s", got)
	}
	if got := sender(func() { w.put(t, podEvent(`{}`)) }); got != "AIDAJXNJGGKNS7OSV23OI" {
		t.Errorf("EventBridge is %s", got)
	}
}
