package events

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/pkg/binding"
)

// target is a target of a rule, in the words of the API.
type target struct {
	Id               string
	Arn              string
	RoleArn          string            `json:",omitempty"`
	Input            string            `json:",omitempty"`
	InputPath        string            `json:",omitempty"`
	InputTransformer *transformer      `json:",omitempty"`
	SqsParameters    json.RawMessage   `json:",omitempty"`
	DeadLetterConfig *deadLetterConfig `json:",omitempty"`
	RetryPolicy      *retryPolicy      `json:",omitempty"`
}

type transformer struct {
	InputPathsMap map[string]string `json:",omitempty"`
	InputTemplate string
}

type retryPolicy struct {
	MaximumRetryAttempts     *int `json:",omitempty"`
	MaximumEventAgeInSeconds *int `json:",omitempty"`
}

func (t target) binding() binding.Target {
	out := binding.Target{ID: t.Id, ARN: t.Arn, Input: t.Input, InputPath: t.InputPath}
	if t.InputTransformer != nil {
		out.Transformer = &binding.Transformer{PathsMap: t.InputTransformer.InputPathsMap, Template: t.InputTransformer.InputTemplate}
	}
	return out
}

var (
	targetARNForm = regexp.MustCompile(`^arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:(\d{12})?:.+$`)
	mapKeyForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

func (t target) check() error {
	if err := constraint("targets.id", t.Id, ruleForm, `[\.\-_A-Za-z0-9]+`, 64); err != nil {
		return err
	}
	inputs := 0
	for _, given := range []bool{t.Input != "", t.InputPath != "", t.InputTransformer != nil} {
		if given {
			inputs++
		}
	}
	switch {
	case !targetARNForm.MatchString(t.Arn):
		return invalid("Parameter %s is not valid. Reason: Provided Arn is not in correct format.", t.Arn)
	case inputs > 1:
		return invalid("Only one of Input, InputPath, or InputTransformer must be provided for target %s.", t.Id)
	case len(t.Input) > 8192 || len(t.InputPath) > 256:
		return invalid("Input for target %s is longer than 8192, or its InputPath than 256, characters.", t.Id)
	case t.Input != "" && !json.Valid([]byte(t.Input)):
		return invalid("JSON syntax error in Input for target %s.", t.Id)
	case t.DeadLetterConfig != nil && t.DeadLetterConfig.Arn != "" && !strings.HasPrefix(t.DeadLetterConfig.Arn, "arn:aws:sqs:"):
		return invalid("Parameter DeadLetterConfig for target %s is not valid. Reason: The ARN of an SQS queue is expected.", t.Id)
	}
	if err := t.InputTransformer.check(t.Id); err != nil {
		return err
	}
	if err := t.checkLogInput(); err != nil {
		return err
	}
	return t.RetryPolicy.check()
}

func (t *transformer) check(id string) error {
	if t == nil {
		return nil
	}
	if n := len(t.InputTemplate); n < 1 || n > 8192 {
		return violation("targets.inputTransformer.inputTemplate", t.InputTemplate, "Member must have length between 1 and 8192")
	}
	if len(t.InputPathsMap) > 100 {
		return violation("targets.inputTransformer.inputPathsMap", "", "Member must have length less than or equal to 100")
	}
	for key, path := range t.InputPathsMap {
		if !mapKeyForm.MatchString(key) || strings.HasPrefix(key, "AWS") || len(path) > 256 {
			return invalid("Invalid InputPathsMap for target %s : key %s or its path %s.", id, key, path)
		}
	}
	return nil
}

func (r *retryPolicy) check() error {
	if r == nil {
		return nil
	}
	if n := r.MaximumRetryAttempts; n != nil && (*n < 0 || *n > 185) {
		return invalid("MaximumRetryAttempts %d is not within 0 and 185.", *n)
	}
	if n := r.MaximumEventAgeInSeconds; n != nil && (*n < 60 || *n > 86400) {
		return invalid("MaximumEventAgeInSeconds %d is not within 60 and 86400.", *n)
	}
	return nil
}

type targetsRequest struct {
	busName
	Rule    string
	Targets []target
	Ids     []string
}

type failedTarget struct{ TargetId, ErrorCode, ErrorMessage string }

type targetsAnswer struct {
	FailedEntryCount int
	FailedEntries    []failedTarget
}

func (a *targetsAnswer) fail(id string, e *core.Error) {
	a.FailedEntryCount++
	a.FailedEntries = append(a.FailedEntries, failedTarget{id, e.Code, e.Message})
}

// withTargets calls do with a copy of the rule that a request names; what do
// leaves is kept.
func (s *Service) withTargets(call *core.Call, do func(*rule, targetsRequest) (any, error)) (any, error) {
	return onBus(s, call, func(b *bus, in targetsRequest) (any, error) {
		old := b.rules[in.Rule]
		if old == nil {
			return nil, noRule(in.Rule, b)
		}
		r := *old
		r.targets = slices.Clone(old.targets)
		out, err := do(&r, in)
		if err == nil {
			b.set(&r)
		}
		return out, err
	})
}

func (s *Service) putTargets(call *core.Call) (any, error) {
	return s.withTargets(call, func(r *rule, in targetsRequest) (any, error) {
		if n := len(in.Targets); n < 1 || n > 100 {
			return nil, violation("targets", "", "Member must have length between 1 and 100")
		}
		ids := map[string]bool{}
		for _, t := range in.Targets {
			if err := t.check(); err != nil {
				return nil, err
			}
			if ids[t.Id] {
				return nil, invalid("Duplicate target id %s in the request.", t.Id)
			}
			ids[t.Id] = true
		}
		out := &targetsAnswer{FailedEntries: []failedTarget{}}
		for i, t := range in.Targets {
			if f := call.FailEntry(i); f != nil {
				out.fail(t.Id, f)
				continue
			}
			r.put(t)
		}
		if len(r.targets) > s.limits.TargetsPerRule {
			return nil, limitExceeded()
		}
		return out, nil
	})
}

func (r *rule) put(t target) {
	at, found := slices.BinarySearchFunc(r.targets, t.Id, func(o target, id string) int { return strings.Compare(o.Id, id) })
	if found {
		r.targets[at] = t
	} else {
		r.targets = slices.Insert(r.targets, at, t)
	}
}

func (s *Service) removeTargets(call *core.Call) (any, error) {
	return s.withTargets(call, func(r *rule, in targetsRequest) (any, error) {
		if n := len(in.Ids); n < 1 || n > 100 {
			return nil, violation("ids", "", "Member must have length between 1 and 100")
		}
		out := &targetsAnswer{FailedEntries: []failedTarget{}}
		for i, id := range in.Ids {
			if f := call.FailEntry(i); f != nil {
				out.fail(id, f)
				continue
			}
			r.targets = slices.DeleteFunc(r.targets, func(t target) bool { return t.Id == id })
		}
		return out, nil
	})
}

func (s *Service) listTargets(call *core.Call) (any, error) {
	return onBus(s, call, func(b *bus, in listRequest) (any, error) {
		r := b.rules[in.Rule]
		if r == nil {
			return nil, noRule(in.Rule, b)
		}
		byID := map[string]target{}
		var ids []string
		for _, t := range r.targets {
			byID[t.Id], ids = t, append(ids, t.Id)
		}
		page, next, err := paged(ids, in.Limit, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := struct {
			Targets   []target
			NextToken string `json:",omitempty"`
		}{[]target{}, next}
		for _, id := range page {
			out.Targets = append(out.Targets, byID[id])
		}
		return out, nil
	})
}
