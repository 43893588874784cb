package binding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// FromRule reads the bindings of a rule: one for each target that is queueARN.
// The error joins a *Fault for everything that is wrong, and good targets are
// still returned beside it.
//
//   - A target elsewhere, and so a rule without targets at the queue, is not ours:
//     no binding, no error.
//   - A disabled rule's bindings have Enabled false: they hold what they had.
//   - A scheduled rule selects no pods: with a target at the queue it is a fault.
//     A rule with a schedule and a pattern is read by its pattern.
//   - A faulty pattern or target covers nothing.
//
// The template is read by rendering it as EventBridge would and decoding the
// result, so order of keys, spaces and the names of variables do not matter.
func FromRule(rule Rule, targets []Target, queueARN string) ([]Binding, error) {
	var ours []Target
	for _, t := range targets {
		if t.ARN == queueARN {
			ours = append(ours, t)
		}
	}
	if len(ours) == 0 {
		return nil, nil
	}
	pattern, err := rule.pattern()
	if err != nil {
		return nil, err
	}
	var bindings []Binding
	var errs []error
	for _, t := range ours {
		b, err := fromTarget(rule, t)
		if err != nil {
			errs = append(errs, located(err, rule, t)...)
			continue
		}
		b.Rule, b.TargetID, b.Pattern, b.Enabled = rule.ARN, t.ID, pattern, rule.Enabled()
		bindings = append(bindings, b)
	}
	return bindings, errors.Join(errs...)
}

func (r Rule) pattern() (*eventpattern.Pattern, error) {
	if r.Pattern == "" {
		reason := "the rule has no event pattern: want one that selects pods"
		if r.ScheduleExpression != "" {
			reason = fmt.Sprintf("a rule with only a schedule (%s) selects no pods: want an event pattern", clip(r.ScheduleExpression))
		}
		return nil, &Fault{Rule: r.label(), Path: "EventPattern", Reason: reason}
	}
	p, err := eventpattern.Parse([]byte(r.Pattern))
	if err != nil {
		return nil, &Fault{Rule: r.label(), Path: "EventPattern", Reason: err.Error()}
	}
	return p, nil
}

func (r Rule) label() string {
	if r.Name != "" {
		return r.Name
	}
	return r.ARN
}

// located names rule and target in every fault of an error.
func located(err error, rule Rule, t Target) []error {
	all := Faults(err)
	if len(all) == 0 {
		all = []*Fault{{Reason: err.Error()}}
	}
	var out []error
	for _, f := range all {
		g := *f
		g.Rule, g.TargetID = rule.label(), t.ID
		out = append(out, &g)
	}
	return out
}

func fromTarget(rule Rule, t Target) (Binding, error) {
	if err := t.hasTransformer(); err != nil {
		return Binding{}, err
	}
	first, err := renderSample(rule, t, samples[0])
	if err != nil {
		return Binding{}, err
	}
	second, err := renderSample(rule, t, samples[1])
	if err != nil {
		return Binding{}, err
	}
	if !bytes.Equal(first, second) {
		return Binding{}, &Fault{Path: "$.binding", Reason: "it depends on the event: a binding holds constants only, no placeholders"}
	}
	return ParseConstants(first)
}

func (t Target) hasTransformer() error {
	const want = `want an input transformer with the template {"binding":{…},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`
	switch {
	case t.Input != "":
		return &Fault{Path: "Input", Reason: "a static input carries no event: " + want}
	case t.InputPath != "":
		return &Fault{Path: "InputPath", Reason: "a part of the event carries no constants: " + want}
	case t.Transformer == nil:
		return &Fault{Path: "InputTransformer", Reason: "missing, so the message would carry no constants: " + want}
	case strings.Contains(strings.ToLower(t.Transformer.Template), `\u003c`):
		return &Fault{Path: "InputTemplate", Reason: `it has \u003c where < belongs: EventBridge replaces only <…>, so the tool that wrote the template must not escape it`}
	}
	return nil
}

// sample is a pod event whose text breaks a message if it is not put in as JSON,
// and the moment it came.
type sample struct {
	event json.RawMessage
	at    time.Time
}

// samples differ in all that a constant could be taken from.
var samples = [2]sample{
	{json.RawMessage(`{"version":"0","id":"11111111-1111-4111-8111-111111111111","detail-type":"Pod State Change",` +
		`"source":"elbridge","account":"111111111111","time":"2020-01-01T00:00:00Z","region":"aa-first-1",` +
		`"resources":["pod/1"],"detail":{"cluster":"one","namespace":"one","name":"one","podIP":"10.0.0.1",` +
		`"labels":{"quote":"\"}{,\\\"one"}}}`), time.Unix(1, 0)},
	{json.RawMessage(`{"version":"0","id":"22222222-2222-4222-8222-222222222222","detail-type":"Pod State Change",` +
		`"source":"elbridge","account":"222222222222","time":"2021-02-02T02:02:02Z","region":"bb-second-2",` +
		`"resources":["pod/2"],"detail":{"cluster":"two","namespace":"two","name":"two","podIP":"10.0.0.2",` +
		`"labels":{"quote":"\"}{,\\\"two"}}}`), time.Unix(2, 0)},
}

// renderSample renders the template with a sample, checks rule and event in the
// result, and returns the binding in it.
func renderSample(rule Rule, t Target, s sample) (json.RawMessage, error) {
	out, err := Render(rule, t, s.event, s.at)
	if err != nil {
		return nil, &Fault{Path: "InputTransformer", Reason: err.Error()}
	}
	if !json.Valid(out) {
		return nil, &Fault{Path: "InputTemplate", Reason: "what EventBridge would send is not JSON: check commas and braces, " +
			"and that no quotes stand around <aws.events.event.json>"}
	}
	b, err := parseBody(out)
	if err != nil {
		return nil, err
	}
	var f faults
	if b.rule != rule.ARN {
		f.add("$.rule", "it is %q, the rule's ARN is %s: want <aws.events.rule-arn>", clip(b.rule), rule.ARN)
	}
	if !sameJSON(b.event, s.event) {
		f.add("$.event", "it is not the whole event: want <aws.events.event.json>, without quotes around it")
	}
	return b.binding, f.err()
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
