package rulefile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/lint"
)

// rules reads {"Rules":[…]} as `aws events list-rules` writes it, each rule with
// the "Targets" of `aws events list-targets-by-rule` added.
func rules(name string, top map[string]any) (*File, error) {
	f := &File{Kind: Rules}
	list := items(top["Rules"])
	if list == nil {
		list = items(top["rules"])
	}
	for i, v := range list {
		o, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("Rules[%d]: want an object", i) //nolint:staticcheck // begins with the key
		}
		f.Rules = append(f.Rules, rule(o, func(v any) string { return text(v) }, fmt.Sprintf("%s: Rules[%d]", name, i)))
	}
	return f, nil
}

// rule reads a rule in EventBridge's spelling; resolve makes a value of the file
// a string.
func rule(o map[string]any, resolve func(any) string, place string) lint.Rule {
	r := lint.Rule{Place: place, Rule: binding.Rule{
		ARN: resolve(o["Arn"]), Name: resolve(o["Name"]), Bus: resolve(o["EventBusName"]), State: resolve(o["State"]),
		Pattern: resolve(o["EventPattern"]), ScheduleExpression: resolve(o["ScheduleExpression"]),
	}}
	for _, v := range items(o["Targets"]) {
		r.Targets = append(r.Targets, target(v, resolve))
	}
	if r.Bus != "" && strings.Contains(r.Bus, ":event-bus/") {
		_, r.Bus, _ = strings.Cut(r.Bus, ":event-bus/")
	}
	if r.ARN == "" {
		r.ARN = ruleARN(r)
	}
	return r
}

func target(v any, resolve func(any) string) binding.Target {
	t := binding.Target{ID: resolve(at(v, "Id")), ARN: resolve(at(v, "Arn")), Input: resolve(at(v, "Input")), InputPath: resolve(at(v, "InputPath"))}
	it, ok := at(v, "InputTransformer").(map[string]any)
	if !ok {
		return t
	}
	t.Transformer = &binding.Transformer{Template: resolve(it["InputTemplate"])}
	if paths, ok := it["InputPathsMap"].(map[string]any); ok {
		t.Transformer.PathsMap = map[string]string{}
		for k, p := range paths {
			t.Transformer.PathsMap[k] = resolve(p)
		}
	}
	return t
}

// ruleARN makes an ARN for a rule whose own the file does not know: in the
// account and region of its queue.
func ruleARN(r lint.Rule) string {
	region, account := madeUpRegion, lint.MadeUpAccount
	for _, t := range r.Targets {
		if p := strings.Split(t.ARN, ":"); len(p) == 6 && p[2] == "sqs" {
			region, account = cmp.Or(p[3], region), cmp.Or(p[4], account)
			break
		}
	}
	return fmt.Sprintf("arn:aws:events:%s:%s:rule/%s/%s", region, account, cmp.Or(r.Bus, "default"), cmp.Or(r.Name, "rule"))
}
