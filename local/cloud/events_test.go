package cloud_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/elbridge/elbridge/local/cloud/core"
)

const (
	anyPod  = `{"source":["elbridge"]}`
	busARN  = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	ruleARN = "arn:aws:events:eu-west-1:111122223333:rule/elbridge/"
)

func (w *world) bus(t *testing.T, name string) {
	t.Helper()
	must[*eventbridge.CreateEventBusOutput](t)(w.events().CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: &name}))
}

func (w *world) rule(t *testing.T, name, pattern string, targets ...types.Target) {
	t.Helper()
	must[*eventbridge.PutRuleOutput](t)(w.events().PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern, EventBusName: aws.String("elbridge")}))
	if len(targets) > 0 {
		must[*eventbridge.PutTargetsOutput](t)(w.events().PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: &name, EventBusName: aws.String("elbridge"), Targets: targets}))
	}
}

// open is a queue that every rule may send to.
func (w *world) open(t *testing.T, name string) (url, arn string) {
	t.Helper()
	url = w.queue(t, name, "Policy", `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*",
		"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:eu-west-1:111122223333:rule/*"}}}]}`)
	return url, w.attribute(t, url, "QueueArn")
}

func to(id, arn string) types.Target { return types.Target{Id: &id, Arn: &arn} }

func podEvent(detail string) types.PutEventsRequestEntry {
	return types.PutEventsRequestEntry{Source: aws.String("elbridge"), DetailType: aws.String("Pod State Change"), Detail: &detail, EventBusName: aws.String("elbridge")}
}

func (w *world) put(t *testing.T, entries ...types.PutEventsRequestEntry) *eventbridge.PutEventsOutput {
	t.Helper()
	return must[*eventbridge.PutEventsOutput](t)(w.events().PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: entries}))
}

// wait polls a queue, without a message's coming back, until n messages came.
func (w *world) wait(t *testing.T, queue string, n int) []sqstypes.Message {
	t.Helper()
	var got []sqstypes.Message
	eventually(t, fmt.Sprintf("%d messages come", n), func() bool {
		got = append(got, w.receive(t, queue)...)
		return len(got) >= n
	})
	return got
}

func TestEventReachesQueueThroughRule(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	q, arn := w.open(t, "registrar")
	target := to("tg", arn)
	target.InputTransformer = &types.InputTransformer{InputTemplate: aws.String(`{"binding":{"targetGroup":"arn:tg","port":9999},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`)}
	w.rule(t, "web", `{"source":["elbridge"],"detail":{"namespace":["web"]}}`, target)
	w.rule(t, "db", `{"source":["elbridge"],"detail":{"namespace":["db"]}}`, target)

	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := podEvent(`{"namespace":"web","note":"a<b & \"c\""}`)
	e.Time, e.Resources = &at, []string{"web/pod-1"}
	out := w.put(t, e)
	if out.FailedEntryCount != 0 || out.Entries[0].EventId == nil {
		t.Fatalf("PutEvents: %+v", out)
	}
	var got struct {
		Binding map[string]any
		Rule    string
		Event   struct {
			Version, ID, Source, Account, Time, Region string
			DetailType                                 string `json:"detail-type"`
			Resources                                  []string
			Detail                                     map[string]string
		}
	}
	message := w.wait(t, q, 1)
	if err := json.Unmarshal([]byte(*message[0].Body), &got); err != nil {
		t.Fatalf("%v in %s", err, *message[0].Body)
	}
	ev := got.Event
	if got.Rule != ruleARN+"web" || got.Binding["targetGroup"] != "arn:tg" || ev.ID != *out.Entries[0].EventId || ev.Version != "0" ||
		ev.Source != "elbridge" || ev.DetailType != "Pod State Change" || ev.Account != alice.Account || ev.Region != region ||
		ev.Time != "2026-01-02T03:04:05Z" || ev.Resources[0] != "web/pod-1" || ev.Detail["note"] != `a<b & "c"` {
		t.Errorf("message %s", *message[0].Body)
	}
	if more := w.receive(t, q); len(more) != 0 {
		t.Errorf("also delivered: %s", bodies(more))
	}
}

func TestPutEventsPartialFailure_P085(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	bad := func(change func(*types.PutEventsRequestEntry)) types.PutEventsRequestEntry {
		e := podEvent(`{}`)
		change(&e)
		return e
	}
	long := strings.Repeat("x", 129)
	tests := []struct {
		name  string
		entry types.PutEventsRequestEntry
		want  string
	}{
		{"good", podEvent(`{"a":1}`), ""},
		{"no detail-type", bad(func(e *types.PutEventsRequestEntry) { e.DetailType = nil }), "InvalidArgument"},
		{"detail is a list", bad(func(e *types.PutEventsRequestEntry) { e.Detail = aws.String(`[1]`) }), "MalformedDetail"},
		{"detail is cut", bad(func(e *types.PutEventsRequestEntry) { e.Detail = aws.String(`{"a":`) }), "MalformedDetail"},
		{"source of AWS", bad(func(e *types.PutEventsRequestEntry) { e.Source = aws.String("aws.ec2") }), "NotAuthorizedForSourceException"},
		{"long detail-type", bad(func(e *types.PutEventsRequestEntry) { e.DetailType = &long }), "InvalidArgument"},
		{"bus of another account", bad(func(e *types.PutEventsRequestEntry) {
			e.EventBusName = aws.String("arn:aws:events:eu-west-1:444455556666:event-bus/default")
		}), "AccessDeniedException"},
		{"bus by ARN", bad(func(e *types.PutEventsRequestEntry) { e.EventBusName = aws.String(busARN) }), ""},
	}
	var entries []types.PutEventsRequestEntry
	want := 0
	for _, tt := range tests {
		entries = append(entries, tt.entry)
		if tt.want != "" {
			want++
		}
	}
	out := w.put(t, entries...)
	if int(out.FailedEntryCount) != want || len(out.Entries) != len(tests) {
		t.Fatalf("FailedEntryCount %d of %d entries, want %d", out.FailedEntryCount, len(out.Entries), want)
	}
	for i, tt := range tests {
		if got := aws.ToString(out.Entries[i].ErrorCode); got != tt.want {
			t.Errorf("%s: code %q, want %q", tt.name, got, tt.want)
		}
		if (out.Entries[i].EventId != nil) != (tt.want == "") {
			t.Errorf("%s: event id %v", tt.name, out.Entries[i].EventId)
		}
	}
}

func TestPutEventsFailsAsAWhole(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	half := podEvent(`{"x":"` + strings.Repeat("x", 600<<10) + `"}`)
	incomplete := podEvent(`{}`)
	incomplete.Source = nil
	eleven := make([]types.PutEventsRequestEntry, 11)
	for i := range eleven {
		eleven[i] = podEvent(`{}`)
	}
	for name, entries := range map[string][]types.PutEventsRequestEntry{
		"eleven entries": eleven, "over a mebibyte": {half, half}, "none complete": {incomplete},
	} {
		_, err := w.events().PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: entries})
		if got := code(err); got != "ValidationException" {
			t.Errorf("%s: %q, want ValidationException", name, got)
		}
	}
}

func TestUnknownBusSwallowsEvents_P083(t *testing.T) {
	t.Parallel()
	w := start(t)
	if out := w.put(t, podEvent(`{}`)); out.FailedEntryCount != 0 || out.Entries[0].EventId == nil {
		t.Errorf("PutEvents: %+v, want success", out)
	}
	_, err := w.events().DescribeEventBus(t.Context(), &eventbridge.DescribeEventBusInput{Name: aws.String("elbridge")})
	if got := code(err); got != "ResourceNotFoundException" {
		t.Errorf("DescribeEventBus: %q, want ResourceNotFoundException", got)
	}
}

func TestScopesAreApart(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	w.rule(t, "web", anyPod)
	for name, elsewhere := range map[string]*world{"region": w.at("eu-central-1"), "account": w.by(other)} {
		elsewhere.bus(t, "elbridge")
		out := must[*eventbridge.ListRulesOutput](t)(elsewhere.events().ListRules(t.Context(), &eventbridge.ListRulesInput{EventBusName: aws.String("elbridge")}))
		if len(out.Rules) != 0 {
			t.Errorf("another %s sees %d rules", name, len(out.Rules))
		}
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	noRetry := &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(0)}
	tests := map[string]struct {
		target    string // queue name
		policy    *types.RetryPolicy
		fault     *core.Fault
		step      time.Duration
		code      string
		attempts  string
		exhausted string
	}{
		"P094 missing queue: no retries": {target: "none", code: "NO_RESOURCE", attempts: "0"},
		"P088 queue does not allow it":   {target: "closed", code: "NO_PERMISSIONS", attempts: "0"},
		"P086 no retries wanted":         {target: "open", policy: noRetry, fault: &core.Fault{Kind: core.FaultError}, code: "INTERNAL_ERROR", attempts: "0", exhausted: "MaximumRetryAttempts"},
		"two retries": {target: "open", policy: &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(2)}, fault: &core.Fault{Kind: core.FaultThrottle},
			step: time.Minute, code: "INTERNAL_ERROR", attempts: "2", exhausted: "MaximumRetryAttempts"},
		"too old": {target: "open", policy: &types.RetryPolicy{MaximumEventAgeInSeconds: aws.Int32(60)}, fault: &core.Fault{Kind: core.FaultError},
			step: 59 * time.Second, code: "INTERNAL_ERROR", attempts: "1", exhausted: "MaximumEventAgeInSeconds"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.bus(t, "elbridge")
			dead, deadARN := w.open(t, "dead")
			_, arn := w.open(t, "open")
			w.queue(t, "closed")
			target := to("t", strings.TrimSuffix(arn, "open")+tt.target)
			target.DeadLetterConfig, target.RetryPolicy = &types.DeadLetterConfig{Arn: &deadARN}, tt.policy
			w.rule(t, "web", anyPod, target)
			if tt.fault != nil {
				tt.fault.Operation = "Deliver"
				must[string](t)(w.Server.Faults.Add(*tt.fault))
			}
			w.put(t, podEvent(`{"a":1}`))
			var got []sqstypes.Message
			eventually(t, "the event is in the dead-letter queue", func() bool {
				if n, _ := w.clock.Timers(); tt.step > 0 && n > 0 {
					w.clock.Step(tt.step)
				}
				got = w.receive(t, dead)
				return len(got) > 0
			})
			attribute := func(name string) string { return aws.ToString(got[0].MessageAttributes[name].StringValue) }
			if attribute("ERROR_CODE") != tt.code || attribute("RETRY_ATTEMPTS") != tt.attempts || attribute("EXHAUSTED_RETRY_CONDITION") != tt.exhausted ||
				attribute("RULE_ARN") != ruleARN+"web" || attribute("TARGET_ARN") != *target.Arn || attribute("ERROR_MESSAGE") == "" {
				t.Errorf("attributes: %s %s retries %s %s: %s", attribute("ERROR_CODE"), attribute("RULE_ARN"), attribute("RETRY_ATTEMPTS"), attribute("EXHAUSTED_RETRY_CONDITION"), attribute("ERROR_MESSAGE"))
			}
			if !strings.Contains(*got[0].Body, `"detail":{"a":1}`) {
				t.Errorf("body %s, want the event", *got[0].Body)
			}
		})
	}
}

func TestFaultsOfDelivery(t *testing.T) {
	t.Parallel()
	deliver := func(k core.FaultKind) core.Fault {
		return core.Fault{Service: "events", Operation: "Deliver", Kind: k, Times: 1}
	}
	tests := map[string]struct {
		fault core.Fault
		want  int // messages of two events
	}{
		"none":        {core.Fault{Operation: "Nothing", Kind: core.FaultError}, 2},
		"lost":        {deliver(core.FaultLostRequest), 1},
		"doubled":     {deliver(core.FaultDuplicate), 3},
		"lost answer": {deliver(core.FaultLostAnswer), 3},
		"retried":     {deliver(core.FaultError), 2},
		"late":        {core.Fault{Operation: "Deliver", Kind: core.FaultDelay, Delay: core.Duration(5 * time.Hour), Times: 1}, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.bus(t, "elbridge")
			q, arn := w.open(t, "q")
			w.rule(t, "web", anyPod, to("t", arn))
			must[string](t)(w.Server.Faults.Add(tt.fault))
			w.put(t, podEvent(`{"n":1}`), podEvent(`{"n":2}`))
			delivered := func() int {
				n := 0
				for _, r := range w.Server.Recorder.Since(0) {
					if r.Operation == "Deliver" {
						n++
					}
				}
				return n
			}
			eventually(t, "the bus is done", func() bool {
				if w.Events.Pending() > 0 {
					w.clock.Step(time.Hour)
				}
				return w.Events.Pending() == 0 && delivered() >= 2
			})
			if got := len(w.wait(t, q, tt.want)); got != tt.want {
				t.Errorf("%d messages, want %d", got, tt.want)
			}
		})
	}
}

func TestBusDelay(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	q, arn := w.open(t, "q")
	w.rule(t, "web", anyPod, to("t", arn))
	w.Events.SetDelay(80 * time.Millisecond)
	w.put(t, podEvent(`{}`))
	w.step(t, 79*time.Millisecond)
	if got := w.receive(t, q); len(got) != 0 {
		t.Fatal("delivered before the delay was over")
	}
	w.step(t, time.Millisecond)
	w.wait(t, q, 1)
}

// functions is an Invoker that keeps what it got.
type functions struct {
	mu  sync.Mutex
	got []string
}

var errNoFunction = errors.New("no such function")

func (f *functions) InvokeAsync(_ context.Context, name string, payload []byte) (string, error) {
	if name != "resync" {
		return "", errNoFunction
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, string(payload))
	return "id", nil
}

func (f *functions) calls() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.got, "\n")
}

func TestFunctionTargetsAndSchedules(t *testing.T) {
	t.Parallel()
	w := start(t)
	fs := &functions{}
	w.Events.SetInvoker(fs, func(err error) bool { return errors.Is(err, errNoFunction) })
	dead, deadARN := w.open(t, "dead")
	ctx := t.Context()
	schedule := func(bus, name, expression string) error {
		_, err := w.events().PutRule(ctx, &eventbridge.PutRuleInput{Name: &name, ScheduleExpression: &expression, EventBusName: &bus})
		return err
	}
	w.bus(t, "elbridge")
	for expression, want := range map[string]string{
		"rate(1 minute)": "", "rate(5 minutes)": "", "cron(0/5 * * * ? *)": "",
		"rate(1 minutes)": "ValidationException", "rate(0 minutes)": "ValidationException", "rate(10 seconds)": "ValidationException", "cron(* * * * *)": "ValidationException",
	} {
		if got := code(schedule("default", "resync", expression)); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	if got := code(schedule("elbridge", "resync", "rate(1 minute)")); got != "ValidationException" {
		t.Errorf("schedule on a bus of one's own: %q, want ValidationException", got)
	}
	if err := schedule("default", "resync", "rate(1 minute)"); err != nil {
		t.Fatal(err)
	}
	missing := to("missing", "arn:aws:lambda:eu-west-1:111122223333:function:missing")
	missing.DeadLetterConfig = &types.DeadLetterConfig{Arn: &deadARN}
	constant := to("resync", "arn:aws:lambda:eu-west-1:111122223333:function:resync:live")
	constant.Input = aws.String(`{"endpoints":[]}`)
	must[*eventbridge.PutTargetsOutput](t)(w.events().PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: aws.String("resync"), Targets: []types.Target{
		constant, to("whole", "arn:aws:lambda:eu-west-1:111122223333:function:resync"), missing}}))

	const arn = "arn:aws:events:eu-west-1:111122223333:rule/resync"
	if all := w.Events.Schedules(); len(all) != 1 || all[arn] != "rate(1 minute)" {
		t.Fatalf("schedules %+v", all)
	}
	if err := w.Events.Fire(arn, w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both targets are invoked", func() bool { return strings.Count(fs.calls(), "\n") == 1 })
	if got := fs.calls(); !strings.Contains(got, `{"endpoints":[]}`) || !strings.Contains(got, `"detail-type":"Scheduled Event","source":"aws.events"`) {
		t.Errorf("invoked with %s", got)
	}
	if got := w.wait(t, dead, 1); *got[0].MessageAttributes["ERROR_CODE"].StringValue != "NO_RESOURCE" {
		t.Errorf("dead letter %+v", got)
	}
	must[*eventbridge.DisableRuleOutput](t)(w.events().DisableRule(ctx, &eventbridge.DisableRuleInput{Name: aws.String("resync")}))
	if got := w.Events.Schedules(); len(got) != 0 {
		t.Errorf("a disabled rule still has a schedule: %+v", got)
	}
}

func TestBusToBusOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w := start(t)
	ctx := t.Context()
	hub := w.by(other)
	w.bus(t, "elbridge")
	hub.bus(t, "elbridge")
	q := hub.queue(t, "q", "Policy", `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage"}]}`)
	hub.rule(t, "all", anyPod, to("q", hub.attribute(t, q, "QueueArn")))
	w.rule(t, "forward", anyPod, to("hub", "arn:aws:events:eu-west-1:444455556666:event-bus/elbridge"))

	w.put(t, podEvent(`{"n":1}`))
	eventually(t, "the delivery is refused", func() bool {
		for _, r := range w.Server.Recorder.Since(0) {
			if r.Operation == "Deliver" && r.Code == "NO_PERMISSIONS" {
				return true
			}
		}
		return false
	})
	must[*eventbridge.PutPermissionOutput](t)(hub.events().PutPermission(ctx, &eventbridge.PutPermissionInput{EventBusName: aws.String("elbridge"),
		Action: aws.String("events:PutEvents"), Principal: &alice.Account, StatementId: aws.String("spoke")}))
	w.put(t, podEvent(`{"n":2}`))
	if got := *hub.wait(t, q, 1)[0].Body; !strings.Contains(got, `"account":"111122223333"`) || !strings.Contains(got, `{"n":2}`) {
		t.Errorf("the hub got %s", got)
	}
}
