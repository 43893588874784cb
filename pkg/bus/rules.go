package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/elbridge/elbridge/pkg/binding"
)

const (
	// rulesPageSize is the API's own maximum.
	rulesPageSize = 100
	// maxRulePages bounds a paged read; 300 rules a bus is the default quota,
	// so this is far past what an account may have.
	maxRulePages = 100
)

// ErrNotFound is returned for a rule that does not exist (any more). A bus that
// does not exist is ErrNoBus.
var ErrNotFound = errors.New("rule not found")

// RulesAPI is what of the SDK's client reads rules.
type RulesAPI interface {
	ListRules(context.Context, *eventbridge.ListRulesInput, ...func(*eventbridge.Options)) (*eventbridge.ListRulesOutput, error)
	ListTargetsByRule(context.Context, *eventbridge.ListTargetsByRuleInput, ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error)
	DescribeRule(context.Context, *eventbridge.DescribeRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error)
	ListTagsForResource(context.Context, *eventbridge.ListTagsForResourceInput, ...func(*eventbridge.Options)) (*eventbridge.ListTagsForResourceOutput, error)
}

// Rules reads the rules of one bus. A read that fails on any page fails whole:
// rules that were not read must not look like rules that do not exist (I8).
type Rules struct {
	api RulesAPI
	bus string
}

// NewRules returns a reader of the bus, by name or ARN.
func NewRules(api RulesAPI, bus string) *Rules { return &Rules{api: api, bus: bus} }

// List returns all rules of the bus with pattern and state, without targets.
func (r *Rules) List(ctx context.Context) ([]binding.Rule, error) {
	var rules []binding.Rule
	in := &eventbridge.ListRulesInput{EventBusName: &r.bus, Limit: new(int32(rulesPageSize))}
	for range maxRulePages {
		out, err := r.api.ListRules(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing the rules of bus %s: %w", r.bus, notFound(err))
		}
		for _, rule := range out.Rules {
			rules = append(rules, binding.Rule{ARN: deref(rule.Arn), Name: deref(rule.Name), Bus: deref(rule.EventBusName),
				State: string(rule.State), Pattern: deref(rule.EventPattern), ScheduleExpression: deref(rule.ScheduleExpression)})
		}
		if deref(out.NextToken) == "" {
			return rules, nil
		}
		in.NextToken = out.NextToken
	}
	return nil, fmt.Errorf("listing the rules of bus %s: more than %d pages", r.bus, maxRulePages)
}

// Rule returns one rule by name, without its targets.
func (r *Rules) Rule(ctx context.Context, name string) (binding.Rule, error) {
	out, err := r.api.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &name, EventBusName: &r.bus})
	if err != nil {
		return binding.Rule{}, fmt.Errorf("reading rule %s of bus %s: %w", name, r.bus, notFound(err))
	}
	return binding.Rule{ARN: deref(out.Arn), Name: deref(out.Name), Bus: deref(out.EventBusName),
		State: string(out.State), Pattern: deref(out.EventPattern), ScheduleExpression: deref(out.ScheduleExpression)}, nil
}

// Targets returns the targets of a rule.
func (r *Rules) Targets(ctx context.Context, name string) ([]binding.Target, error) {
	var targets []binding.Target
	in := &eventbridge.ListTargetsByRuleInput{Rule: &name, EventBusName: &r.bus, Limit: new(int32(rulesPageSize))}
	for range maxRulePages {
		out, err := r.api.ListTargetsByRule(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing the targets of rule %s: %w", name, notFound(err))
		}
		for _, t := range out.Targets {
			targets = append(targets, target(t))
		}
		if deref(out.NextToken) == "" {
			return targets, nil
		}
		in.NextToken = out.NextToken
	}
	return nil, fmt.Errorf("listing the targets of rule %s: more than %d pages", name, maxRulePages)
}

// Tags returns the tags of the bus, given its ARN.
func (r *Rules) Tags(ctx context.Context, arn string) (map[string]string, error) {
	out, err := r.api.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &arn})
	if err != nil {
		return nil, fmt.Errorf("reading the tags of %s: %w", arn, err)
	}
	tags := make(map[string]string, len(out.Tags))
	for _, t := range out.Tags {
		tags[deref(t.Key)] = deref(t.Value)
	}
	return tags, nil
}

// notFound adds ErrNotFound, or ErrNoBus, to the SDK's own error of that meaning.
func notFound(err error) error {
	gone, ok := errors.AsType[*types.ResourceNotFoundException](err)
	switch {
	case !ok:
		return err
	case busIsGone(gone):
		return fmt.Errorf("%w: %w", ErrNoBus, err)
	default:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
}

// busIsGone tells "Event bus B does not exist." from "Rule R does not exist on
// EventBus B.": the code is one. A bus that isn't there is a fault of the
// settings, and must not pass for rules that were deleted.
func busIsGone(err *types.ResourceNotFoundException) bool {
	return strings.HasPrefix(err.ErrorMessage(), "Event bus ")
}

func target(t types.Target) binding.Target {
	out := binding.Target{ID: deref(t.Id), ARN: deref(t.Arn), Input: deref(t.Input), InputPath: deref(t.InputPath)}
	if it := t.InputTransformer; it != nil {
		out.Transformer = &binding.Transformer{PathsMap: it.InputPathsMap, Template: deref(it.InputTemplate)}
	}
	return out
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
