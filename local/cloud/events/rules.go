package events

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// States of a rule.
const (
	stateEnabled  = "ENABLED"
	stateDisabled = "DISABLED"
	stateTrail    = "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"
)

// rule is immutable but for its tags, which the bus's lock protects: a change
// makes another one.
type rule struct {
	binding.Rule
	description string
	roleARN     string
	pattern     *eventpattern.Pattern // nil: scheduled only
	targets     []target              // in order of their ids
	tags        map[string]string
}

func (r *rule) enabled() bool { return r.State != stateDisabled }

func (id busID) ruleARN(name string) string {
	if id.name == defaultBus {
		return id.ARN("events", "rule/"+name)
	}
	return id.ARN("events", "rule/"+id.name+"/"+name)
}

var (
	ruleForm = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,64}$`)
	rateForm = regexp.MustCompile(`^rate\((1 (minute|hour|day)|([2-9]|[1-9]\d+) (minutes|hours|days))\)$`)
	cronForm = regexp.MustCompile(`^cron\(\S+ \S+ \S+ \S+ \S+ \S+\)$`)
)

const maxPattern = 4096 // characters, by the model; the quota is lower

// ruleRequest is any request that names a rule.
type ruleRequest struct {
	busName
	Name, EventPattern, ScheduleExpression string
	State, Description, RoleArn            string
	Tags                                   []tag
}

func (in ruleRequest) check(limits Limits, bus string) (*eventpattern.Pattern, error) {
	if err := constraint("name", in.Name, ruleForm, `[\.\-_A-Za-z0-9]+`, 64); err != nil {
		return nil, err
	}
	switch {
	case in.EventPattern == "" && in.ScheduleExpression == "":
		return nil, invalid("Parameter(s) EventPattern or ScheduleExpression must be specified.")
	case len(in.Description) > 512:
		return nil, violation("description", in.Description, "Member must have length less than or equal to 512")
	case len(in.EventPattern) > maxPattern:
		return nil, violation("eventPattern", in.EventPattern, "Member must have length less than or equal to 4096")
	case len([]rune(in.EventPattern)) > limits.Pattern:
		return nil, limitExceeded()
	case in.State != "" && in.State != stateEnabled && in.State != stateDisabled && in.State != stateTrail:
		return nil, violation("state", in.State, "Member must satisfy enum value set: [ENABLED, DISABLED, ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS]")
	case in.ScheduleExpression != "" && bus != defaultBus:
		return nil, invalid("ScheduleExpression is supported only on the default event bus.")
	case in.ScheduleExpression != "" && !rateForm.MatchString(in.ScheduleExpression) && !cronForm.MatchString(in.ScheduleExpression):
		return nil, invalid("Parameter ScheduleExpression is not valid.")
	case in.EventPattern == "":
		return nil, nil
	}
	return parsePattern(in.EventPattern)
}

func parsePattern(text string) (*eventpattern.Pattern, error) {
	p, err := eventpattern.Parse([]byte(text))
	if err != nil {
		return nil, core.Errorf("InvalidEventPatternException", "Event pattern is not valid. Reason: %v", err)
	}
	return p, nil
}

type ruleARNAnswer struct{ RuleArn string }

func (s *Service) putRule(call *core.Call) (any, error) {
	return onBus(s, call, func(b *bus, in ruleRequest) (any, error) {
		pattern, err := in.check(s.limits, b.id.name)
		if err != nil {
			return nil, err
		}
		if in.State == "" {
			in.State = stateEnabled
		}
		r := &rule{description: in.Description, roleARN: in.RoleArn, pattern: pattern, tags: map[string]string{},
			Rule: binding.Rule{ARN: b.id.ruleARN(in.Name), Name: in.Name, Bus: b.id.name, State: in.State, Pattern: in.EventPattern, ScheduleExpression: in.ScheduleExpression}}
		if old := b.rules[in.Name]; old != nil {
			r.targets, r.tags = old.targets, old.tags
		} else if len(b.rules) >= s.limits.RulesPerBus {
			return nil, limitExceeded()
		} else {
			addTags(r.tags, in.Tags)
		}
		b.set(r)
		return ruleARNAnswer{r.ARN}, nil
	})
}

func (b *bus) set(r *rule) {
	b.rules[r.Name] = r
	b.compiled = nil
}

type ruleAnswer struct {
	Name, Arn, EventBusName, State                         string
	EventPattern, ScheduleExpression, Description, RoleArn string `json:",omitempty"`
	CreatedBy                                              string `json:",omitempty"`
}

func (r *rule) show() ruleAnswer {
	return ruleAnswer{Name: r.Name, Arn: r.ARN, EventBusName: r.Bus, State: r.State, EventPattern: r.Pattern,
		ScheduleExpression: r.ScheduleExpression, Description: r.description, RoleArn: r.roleARN}
}

// withRule calls do with the rule that a request names, which may be nil.
func (s *Service) withRule(call *core.Call, do func(*bus, *rule, ruleRequest) (any, error)) (any, error) {
	return onBus(s, call, func(b *bus, in ruleRequest) (any, error) { return do(b, b.rules[in.Name], in) })
}

func noRule(name string, b *bus) *core.Error {
	return notFound("Rule %s does not exist on EventBus %s.", name, b.id.name)
}

func (s *Service) describeRule(call *core.Call) (any, error) {
	return s.withRule(call, func(b *bus, r *rule, in ruleRequest) (any, error) {
		if r == nil {
			return nil, noRule(in.Name, b)
		}
		out := r.show()
		out.CreatedBy = b.id.Account
		return out, nil
	})
}

func (s *Service) deleteRule(call *core.Call) (any, error) {
	return s.withRule(call, func(b *bus, r *rule, in ruleRequest) (any, error) {
		if r != nil && len(r.targets) > 0 {
			return nil, invalid("Rule can't be deleted since it has targets.")
		}
		delete(b.rules, in.Name)
		b.compiled = nil
		return nil, nil
	})
}

func (s *Service) enableRule(call *core.Call) (any, error)  { return s.switchRule(call, stateEnabled) }
func (s *Service) disableRule(call *core.Call) (any, error) { return s.switchRule(call, stateDisabled) }

func (s *Service) switchRule(call *core.Call, state string) (any, error) {
	return s.withRule(call, func(b *bus, r *rule, in ruleRequest) (any, error) {
		if r == nil {
			return nil, noRule(in.Name, b)
		}
		changed := *r
		changed.State = state
		b.set(&changed)
		return nil, nil
	})
}

// listRequest is a request for a page of rules or targets.
type listRequest struct {
	busName
	NamePrefix, TargetArn, Rule, NextToken string
	Limit                                  json.Number
}

func (s *Service) listRules(call *core.Call) (any, error) {
	return onBus(s, call, func(b *bus, in listRequest) (any, error) {
		var names []string
		for name := range maps.Keys(b.rules) {
			if strings.HasPrefix(name, in.NamePrefix) {
				names = append(names, name)
			}
		}
		page, next, err := paged(names, in.Limit, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := struct {
			Rules     []ruleAnswer
			NextToken string `json:",omitempty"`
		}{[]ruleAnswer{}, next}
		for _, name := range page {
			out.Rules = append(out.Rules, b.rules[name].show())
		}
		return out, nil
	})
}

func (s *Service) listRuleNames(call *core.Call) (any, error) {
	var in listRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if in.TargetArn == "" {
		return nil, violation("targetArn", "", "Member must have length greater than or equal to 1")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(call, in.EventBusName)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, r := range b.rules {
		for _, t := range r.targets {
			if t.Arn == in.TargetArn {
				names = append(names, name)
				break
			}
		}
	}
	page, next, err := paged(names, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	return struct {
		RuleNames []string
		NextToken string `json:",omitempty"`
	}{append([]string{}, page...), next}, nil
}

// mandatory are the fields that an event for TestEventPattern has to have.
var mandatory = []string{"id", "account", "source", "time", "region", "resources", "detail-type"}

func (s *Service) testPattern(call *core.Call) (any, error) {
	var in struct{ EventPattern, Event string }
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if len(in.EventPattern) > maxPattern {
		return nil, violation("eventPattern", in.EventPattern, "Member must have length less than or equal to 4096")
	}
	p, err := parsePattern(in.EventPattern)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(in.Event), &fields); err != nil {
		return nil, invalid("Parameter Event is not valid. Reason: %v.", err)
	}
	for _, name := range mandatory {
		if _, ok := fields[name]; !ok {
			return nil, invalid("Parameter Event is not valid. Reason: the field %s is mandatory.", name)
		}
	}
	ok, err := p.Match([]byte(in.Event))
	if err != nil {
		return nil, invalid("Parameter Event is not valid. Reason: %v.", err)
	}
	return struct{ Result bool }{ok}, nil
}
