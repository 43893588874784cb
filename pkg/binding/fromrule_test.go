package binding_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
)

// constants is a binding object with a good group and more members.
func constants(more string) string { return `{"targetGroup":"` + group + `"` + more + `}` }

func TestFromRule_Templates(t *testing.T) {
	const rest = `"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`
	tests := map[string]struct {
		target binding.Target
		want   string // as show writes it
	}{
		"as documented": {target(template), "arn port=9999"},
		"other order, spaces": {target(" {\n \"event\" : <aws.events.event.json> ,\n \"rule\":  <aws.events.rule-arn>, \"binding\":\t" +
			constants(`, "minTargets" : 3`) + " }\n"), "arn min=3"},
		"by CDK: a variable for the whole event": {target(`{"binding":`+constants("")+`,"rule":<aws.events.rule-arn>,"event":<f1>}`, "f1=$"), "arn"},
		"rule in quotes":                         {target(`{"binding":` + constants("") + `,"rule":"<aws.events.rule-arn>","event":<aws.events.event.json>}`), "arn"},
		"rule spelled out":                       {target(`{"binding":` + constants("") + `,"rule":"` + ruleARN + `","event":<aws.events.event.json>}`), "arn"},
		"variables that nothing uses":            {target(`{"binding":`+constants("")+","+rest, "x=$.detail.name"), "arn"},
		"the rule's name in a constant":          {target(`{"binding":{"targetGroup":{"tags":{"elbridge-rule":<aws.events.rule-name>}}},` + rest), "tag:elbridge-rule=web"},
		"escapes that need none":                 {target(`{"binding":{"targetGroup":{"name":"we\u0062"}},` + rest), "name:web"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bs, err := binding.FromRule(web, []binding.Target{tt.target}, queue)
			if err != nil {
				t.Fatal(err)
			}
			if len(bs) != 1 {
				t.Fatalf("%d bindings, want 1", len(bs))
			}
			b := bs[0]
			if got := show(b); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if b.Rule != ruleARN || b.TargetID != "registrar" || b.Pattern.String() != pattern || !b.Enabled {
				t.Errorf("binding %+v does not say whence it comes", b)
			}
		})
	}
}

func TestFromRule_Faults(t *testing.T) {
	const rest = `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`
	body := `{"binding":` + constants("")
	tests := map[string]struct {
		target binding.Target
		want   string // part of the one fault
	}{
		"static input":            {binding.Target{Input: `{"binding":{}}`}, "Input: a static input carries no event"},
		"input path":              {binding.Target{InputPath: "$.detail"}, "InputPath: a part of the event"},
		"whole event":             {binding.Target{}, "InputTransformer: missing"},
		"unknown placeholder":     {target(body + `,"rule":<aws.events.rule-arn>,"event":<event>}`), "invalid placeholder event"},
		"event in quotes":         {target(body + `,"rule":<aws.events.rule-arn>,"event":"<aws.events.event.json>"}`), "no quotes stand around <aws.events.event.json>"},
		"escaped by a tool":       {target(body + `,"rule":"\u003caws.events.rule-arn\u003e","event":"\u003caws.events.event.json\u003e"}`), `it has \u003c where < belongs`},
		"rule missing":            {target(body + `,"event":<aws.events.event.json>}`), "$.rule: missing"},
		"event missing":           {target(body + `,"rule":<aws.events.rule-arn>}`), "$.event: missing"},
		"binding missing":         {target(`{"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`), "$.binding: missing"},
		"event without detail":    {target(body + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event>}`), "$.event: it is not the whole event"},
		"detail only":             {target(body+`,"rule":<aws.events.rule-arn>,"event":<d>}`, "d=$.detail"), "$.event: it is not the whole event"},
		"a path that is none":     {target(body+`,"rule":<aws.events.rule-arn>,"event":<d>}`, "d=$.nothing"), `$.event: "" is no event`},
		"another rule's ARN":      {target(body + `,"rule":"` + ruleARN + `2","event":<aws.events.event.json>}`), "$.rule: it is"},
		"rule's name":             {target(body + `,"rule":<aws.events.rule-name>,"event":<aws.events.event.json>}`), "$.rule: \"web\" is no ARN of a rule"},
		"not JSON":                {target(body + `"rule":<aws.events.rule-arn>}`), "not JSON"},
		"a string":                {target(`"<aws.events.rule-arn>"`), "$: "},
		"key misspelled":          {target(`{"bindings":{}` + strings.Replace(rest, ",", `,"binding":`+constants("")+",", 1)), "$.bindings: unknown key, did you mean binding"},
		"constant from the event": {target(`{"binding":{"targetGroup":{"name":<n>}}`+rest, "n=$.detail.name"), "$.binding: it depends on the event"},
		"constant from the time":  {target(`{"binding":{"targetGroup":{"tags":{"t":<aws.events.event.ingestion-time>}}}` + rest), "$.binding: it depends on the event"},
		"a constant":              {target(`{"binding":` + constants(`,"port":0`) + rest), "$.binding.port: 0"},
		"input and template":      {binding.Target{Input: "{}", Transformer: &binding.Transformer{Template: template}}, "Input: a static input"},
		"paths too many": {target(template, func() (paths []string) {
			for i := range 101 {
				paths = append(paths, strings.Repeat("x", i+1)+"=$")
			}
			return paths
		}()...), "InputPathsMap has 101 entries"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.target.ID, tt.target.ARN = "bad", queue
			bs, err := binding.FromRule(web, []binding.Target{target(template), tt.target}, queue)
			if len(bs) != 1 || bs[0].TargetID != "registrar" {
				t.Errorf("bindings %v, want that of the good target", bs)
			}
			checkFaults(t, err, []string{tt.want})
			if err != nil && !strings.HasPrefix(err.Error(), "rule web: target bad: ") {
				t.Errorf("fault %q does not name rule and target", err)
			}
		})
	}
}

func TestFromRule_States(t *testing.T) {
	elsewhere := target(template)
	elsewhere.ARN = "arn:aws:sqs:eu-west-1:111122223333:other"
	broken := elsewhere
	broken.Input = "{}"
	schedule := binding.Rule{ARN: ruleARN, Name: "web", State: "ENABLED", ScheduleExpression: "rate(1 minute)"}
	both := web
	both.ScheduleExpression = "rate(1 minute)"
	disabled := web
	disabled.State = "DISABLED"
	tests := map[string]struct {
		rule    binding.Rule
		targets []binding.Target
		want    string // "enabled", "disabled" for each binding
		fault   string
	}{
		"enabled":                          {rule: web, targets: []binding.Target{target(template)}, want: "enabled"},
		"disabled holds what it had":       {rule: disabled, targets: []binding.Target{target(template)}, want: "disabled"},
		"no targets":                       {rule: web},
		"target elsewhere":                 {rule: web, targets: []binding.Target{elsewhere, broken}},
		"one here, one elsewhere":          {rule: web, targets: []binding.Target{elsewhere, target(template)}, want: "enabled"},
		"two here":                         {rule: web, targets: []binding.Target{target(template), target(template)}, want: "enabled enabled"},
		"schedule, no target here":         {rule: schedule, targets: []binding.Target{elsewhere}},
		"schedule, target here":            {rule: schedule, targets: []binding.Target{target(template)}, fault: "rule web: EventPattern: a rule with only a schedule (rate(1 minute)) selects no pods"},
		"schedule and pattern":             {rule: both, targets: []binding.Target{target(template)}, want: "enabled"},
		"neither":                          {rule: binding.Rule{ARN: ruleARN}, targets: []binding.Target{target(template)}, fault: "the rule has no event pattern"},
		"bad pattern":                      {rule: binding.Rule{ARN: ruleARN, Name: "web", Pattern: `{"source":"x"}`}, targets: []binding.Target{target(template)}, fault: "rule web: EventPattern: event pattern: source: a string where an array"},
		"bad pattern, nothing of it ours":  {rule: binding.Rule{Pattern: `{`}, targets: []binding.Target{elsewhere}},
		"state that CloudTrail rules have": {rule: binding.Rule{ARN: ruleARN, Pattern: pattern, State: "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"}, targets: []binding.Target{target(template)}, want: "enabled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bs, err := binding.FromRule(tt.rule, tt.targets, queue)
			var got []string
			for _, b := range bs {
				got = append(got, map[bool]string{true: "enabled", false: "disabled"}[b.Enabled])
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("bindings: %s, want %s", s, tt.want)
			}
			var want []string
			if tt.fault != "" {
				want = []string{tt.fault}
			}
			checkFaults(t, err, want)
		})
	}
}

func TestFaults(t *testing.T) {
	if got := binding.Faults(errors.New("other")); got != nil {
		t.Errorf("Faults of another error: %v", got)
	}
	f := &binding.Fault{Rule: "web", TargetID: "t", Path: "$.x", Reason: "why"}
	if got := binding.Faults(errors.Join(f, errors.Join(f, f))); len(got) != 3 {
		t.Errorf("%d faults of three joined", len(got))
	}
	if f.Error() != "rule web: target t: $.x: why" {
		t.Errorf("fault reads %q", f)
	}
}
