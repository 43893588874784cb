package cloud_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
)

func TestRuleReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	_, arn := w.open(t, "q")
	ctx, bus, name := t.Context(), aws.String("elbridge"), aws.String("web")
	must[*eventbridge.PutRuleOutput](t)(w.events().PutRule(ctx, &eventbridge.PutRuleInput{Name: name, EventBusName: bus, EventPattern: aws.String(anyPod), Description: aws.String("first"),
		Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}))
	must[*eventbridge.PutTargetsOutput](t)(w.events().PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: name, EventBusName: bus, Targets: []types.Target{to("t", arn)}}))
	must[*eventbridge.PutRuleOutput](t)(w.events().PutRule(ctx, &eventbridge.PutRuleInput{Name: name, EventBusName: bus, EventPattern: aws.String(`{"source":["x"]}`), State: "DISABLED"}))

	r := must[*eventbridge.DescribeRuleOutput](t)(w.events().DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: name, EventBusName: bus}))
	if r.Description != nil || *r.EventPattern != `{"source":["x"]}` || r.State != "DISABLED" || *r.Arn != ruleARN+"web" || *r.EventBusName != "elbridge" {
		t.Errorf("rule %+v: want the description gone, another pattern, DISABLED", r)
	}
	targets := must[*eventbridge.ListTargetsByRuleOutput](t)(w.events().ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: name, EventBusName: bus}))
	if len(targets.Targets) != 1 || *targets.Targets[0].Arn != arn {
		t.Errorf("targets %+v: want them kept", targets.Targets)
	}
	tags := must[*eventbridge.ListTagsForResourceOutput](t)(w.events().ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: r.Arn}))
	if len(tags.Tags) != 1 {
		t.Errorf("tags %+v: want them kept", tags.Tags)
	}
	must[*eventbridge.EnableRuleOutput](t)(w.events().EnableRule(ctx, &eventbridge.EnableRuleInput{Name: name, EventBusName: bus}))
	if r := must[*eventbridge.DescribeRuleOutput](t)(w.events().DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: name, EventBusName: bus})); r.State != "ENABLED" {
		t.Errorf("state %s after EnableRule", r.State)
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	_, arn := w.open(t, "q")
	bus := aws.String("elbridge")
	for i := range 25 {
		w.rule(t, fmt.Sprintf("r%02d", i), anyPod, to("t", arn))
	}
	w.rule(t, "other", anyPod)
	var byPrefix, byTarget []string
	in := &eventbridge.ListRulesInput{EventBusName: bus, NamePrefix: aws.String("r"), Limit: aws.Int32(10)}
	names := &eventbridge.ListRuleNamesByTargetInput{EventBusName: bus, TargetArn: &arn, Limit: aws.Int32(7)}
	for {
		out := must[*eventbridge.ListRulesOutput](t)(w.events().ListRules(t.Context(), in))
		for _, r := range out.Rules {
			byPrefix = append(byPrefix, *r.Name)
		}
		if in.NextToken = out.NextToken; out.NextToken == nil {
			break
		}
	}
	for {
		out := must[*eventbridge.ListRuleNamesByTargetOutput](t)(w.events().ListRuleNamesByTarget(t.Context(), names))
		byTarget = append(byTarget, out.RuleNames...)
		if names.NextToken = out.NextToken; out.NextToken == nil {
			break
		}
	}
	if len(byPrefix) != 25 || strings.Join(byPrefix, " ") != strings.Join(byTarget, " ") {
		t.Errorf("by prefix %v\nby target %v\nwant both to be r00 to r24", byPrefix, byTarget)
	}
}

func TestRuleErrors(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	_, arn := w.open(t, "q")
	w.rule(t, "web", anyPod, to("t", arn))
	ctx, bus, c := t.Context(), aws.String("elbridge"), w.events()
	rule := func(name, pattern string) error {
		_, err := c.PutRule(ctx, &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern, EventBusName: bus})
		return err
	}
	targets := func(rule string, all ...types.Target) error {
		out, err := c.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &rule, EventBusName: bus, Targets: all})
		if err == nil && out.FailedEntryCount > 0 {
			return errors.New("FailedEntryCount")
		}
		return err
	}
	with := func(change func(*types.Target)) types.Target {
		target := to("u", arn)
		change(&target)
		return target
	}
	var six []types.Target
	for i := range 6 {
		six = append(six, to(fmt.Sprint(i), arn))
	}
	tests := map[string]struct {
		do   func() error
		want string
	}{
		"bad pattern":            {func() error { return rule("x", `{"source":"elbridge"}`) }, "InvalidEventPatternException"},
		"unknown operator":       {func() error { return rule("x", `{"source":[{"sounds-like":"x"}]}`) }, "InvalidEventPatternException"},
		"pattern over the quota": {func() error { return rule("x", `{"source":["`+strings.Repeat("x", 2040)+`"]}`) }, "LimitExceededException"},
		"pattern over the model": {func() error { return rule("x", `{"source":["`+strings.Repeat("x", 4090)+`"]}`) }, "ValidationException"},
		"bad rule name":          {func() error { return rule("a b", anyPod) }, "ValidationException"},
		"long rule name":         {func() error { return rule(strings.Repeat("x", 65), anyPod) }, "ValidationException"},
		"neither pattern nor schedule": {func() error {
			_, err := c.PutRule(ctx, &eventbridge.PutRuleInput{Name: aws.String("x"), EventBusName: bus})
			return err
		}, "ValidationException"},
		"no such bus": {func() error {
			_, err := c.PutRule(ctx, &eventbridge.PutRuleInput{Name: aws.String("x"), EventPattern: aws.String(anyPod), EventBusName: aws.String("none")})
			return err
		}, "ResourceNotFoundException"},
		"bus left out: looks at default": {func() error {
			_, err := c.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: aws.String("web")})
			return err
		}, "ResourceNotFoundException"},
		"deleted with targets": {func() error {
			_, err := c.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: aws.String("web"), EventBusName: bus})
			return err
		}, "ValidationException"},
		"deleted without being there": {func() error {
			_, err := c.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: aws.String("none"), EventBusName: bus})
			return err
		}, ""},
		"targets of no rule": {func() error { return targets("none", to("t", arn)) }, "ResourceNotFoundException"},
		"six targets":        {func() error { return targets("web", six...) }, "LimitExceededException"},
		"target id twice":    {func() error { return targets("web", to("a", arn), to("a", arn)) }, "ValidationException"},
		"not an ARN":         {func() error { return targets("web", to("a", "queue")) }, "ValidationException"},
		"two inputs": {func() error {
			return targets("web", with(func(t *types.Target) { t.Input, t.InputPath = aws.String("{}"), aws.String("$") }))
		}, "ValidationException"},
		"input is no JSON": {func() error { return targets("web", with(func(t *types.Target) { t.Input = aws.String("{") })) }, "ValidationException"},
		"186 retries": {func() error {
			return targets("web", with(func(t *types.Target) { t.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(186)} }))
		}, "ValidationException"},
		"age of a minute less a second": {func() error {
			return targets("web", with(func(t *types.Target) { t.RetryPolicy = &types.RetryPolicy{MaximumEventAgeInSeconds: aws.Int32(59)} }))
		}, "ValidationException"},
		"page of 101": {func() error {
			_, err := c.ListRules(ctx, &eventbridge.ListRulesInput{EventBusName: bus, Limit: aws.Int32(101)})
			return err
		}, "ValidationException"},
		"bus is there": {func() error {
			_, err := c.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: bus})
			return err
		}, "ResourceAlreadyExistsException"},
		"default bus deleted": {func() error {
			_, err := c.DeleteEventBus(ctx, &eventbridge.DeleteEventBusInput{Name: aws.String("default")})
			return err
		}, "ValidationException"},
		"bus with rules deleted": {func() error {
			_, err := c.DeleteEventBus(ctx, &eventbridge.DeleteEventBusInput{Name: bus})
			return err
		}, "ValidationException"},
		"tags of nothing": {func() error {
			_, err := c.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: aws.String(ruleARN + "none")})
			return err
		}, "ResourceNotFoundException"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := code(tt.do()); got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTagsOfBus(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	ctx, c := t.Context(), w.events()
	must[*eventbridge.TagResourceOutput](t)(c.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: aws.String(busARN), Tags: []types.Tag{
		{Key: aws.String("elbridge:freeze"), Value: aws.String("true")}, {Key: aws.String("a"), Value: aws.String("b")}}}))
	must[*eventbridge.UntagResourceOutput](t)(c.UntagResource(ctx, &eventbridge.UntagResourceInput{ResourceARN: aws.String(busARN), TagKeys: []string{"a"}}))
	out := must[*eventbridge.ListTagsForResourceOutput](t)(c.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: aws.String(busARN)}))
	if len(out.Tags) != 1 || *out.Tags[0].Key != "elbridge:freeze" {
		t.Errorf("tags %+v", out.Tags)
	}
}

func TestTestEventPattern(t *testing.T) {
	t.Parallel()
	w := start(t)
	const event = `{"id":"1","account":"1","source":"elbridge","time":"2026-01-01T00:00:00Z","region":"r","resources":[],"detail-type":"x","detail":{"labels":{"app":"web"}}}`
	tests := map[string]struct{ pattern, event, want string }{
		"matches":       {`{"detail":{"labels":{"app":["web"]}}}`, event, "true"},
		"does not":      {`{"detail":{"labels":{"app":["db"]}}}`, event, "false"},
		"bad pattern":   {`{"detail":1}`, event, "InvalidEventPatternException"},
		"field missing": {anyPod, `{"source":"elbridge"}`, "ValidationException"},
	}
	for name, tt := range tests {
		out, err := w.events().TestEventPattern(t.Context(), &eventbridge.TestEventPatternInput{EventPattern: &tt.pattern, Event: &tt.event})
		got := code(err)
		if err == nil {
			got = fmt.Sprint(out.Result)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
