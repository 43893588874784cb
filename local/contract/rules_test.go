package contract_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/pkg/bus"
)

func TestRules(t *testing.T) {
	w := start(t, elb.Config{})
	api := eventbridge.NewFromConfig(w.config(registrar))
	ctx, name := t.Context(), aws.String("elbridge")
	out, err := api.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: name, Tags: []types.Tag{{Key: aws.String("elbridge:freeze"), Value: aws.String("yes")}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 130 { // more than a page
		in := &eventbridge.PutRuleInput{Name: aws.String(fmt.Sprintf("r%03d", i)), EventBusName: name, EventPattern: aws.String(`{"source":["elbridge"]}`)}
		if i == 7 {
			in.State = types.RuleStateDisabled
		}
		if _, err := api.PutRule(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	template := `{"binding":{"targetGroup":{"name":"web"}},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`
	if _, err := api.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: aws.String("r007"), EventBusName: name, Targets: []types.Target{{
		Id: aws.String("registrar"), Arn: aws.String("arn:aws:sqs:eu-west-1:111122223333:bindings"), InputTransformer: &types.InputTransformer{InputTemplate: &template}}}}); err != nil {
		t.Fatal(err)
	}
	r := bus.NewRules(api, *out.EventBusArn)

	rules, err := r.List(ctx)
	if err != nil || len(rules) != 130 || rules[7].State != "DISABLED" || rules[8].State != "ENABLED" || rules[129].Pattern != `{"source":["elbridge"]}` {
		t.Errorf("%d rules, error %v", len(rules), err)
	}
	targets, err := r.Targets(ctx, "r007")
	if err != nil || len(targets) != 1 || targets[0].ID != "registrar" || targets[0].Transformer == nil || targets[0].Transformer.Template != template {
		t.Errorf("targets %+v, error %v", targets, err)
	}
	one, err := r.Rule(ctx, "r007")
	if err != nil || one != rules[7] {
		t.Errorf("rule %+v, error %v; want as in the list", one, err)
	}
	if tags, err := r.Tags(ctx, *out.EventBusArn); err != nil || tags["elbridge:freeze"] != "yes" {
		t.Errorf("tags %v, error %v", tags, err)
	}

	if _, err := r.Rule(ctx, "nobody"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a rule that isn't there: %v", err)
	}
	if _, err := r.Targets(ctx, "nobody"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("targets of a rule that isn't there: %v", err)
	}
	if _, err := bus.NewRules(api, "nowhere").Rule(ctx, "r007"); !errors.Is(err, bus.ErrNoBus) || errors.Is(err, bus.ErrNotFound) {
		t.Errorf("on a bus that isn't there: %v", err)
	}
	w.fail(t, core.Fault{Operation: "ListRules", Contains: "NextToken", Kind: core.FaultThrottle}) // the second page
	if rules, err := r.List(ctx); err == nil || rules != nil {
		t.Errorf("I8: %d rules of a list that was not read whole, error %v", len(rules), err)
	}
}
