package rulefile

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/lint"
)

// terraform reads rules and targets of a file in Terraform's JSON syntax.
func terraform(name string, top map[string]any) (*File, error) {
	t := &terraformFile{resources: first(top["resource"])}
	if t.resources == nil {
		return nil, fmt.Errorf("resource: want an object")
	}
	f := &File{Kind: Terraform, Groups: t.groups()}
	rules := first(t.resources["aws_cloudwatch_event_rule"])
	for _, id := range sorted(rules) {
		f.Rules = append(f.Rules, t.rule(name, id, first(rules[id])))
	}
	return f, nil
}

type terraformFile struct{ resources map[string]any }

// first is a block: an object, or a list of one.
func first(v any) map[string]any {
	if list := items(v); len(list) > 0 {
		v = list[0]
	}
	o, _ := v.(map[string]any)
	return o
}

func (t *terraformFile) rule(name, id string, o map[string]any) lint.Rule {
	get := func(key string) string { return unmarked(t.text(o[key]), "unresolved") }
	r := lint.Rule{Place: name + ": aws_cloudwatch_event_rule." + id, Rule: binding.Rule{
		Name: cmp.Or(get("name"), id), Bus: get("event_bus_name"), State: get("state"), Pattern: get("event_pattern"), ScheduleExpression: get("schedule_expression"),
	}}
	if get("is_enabled") == "false" {
		r.State = "DISABLED"
	}
	targets := first(t.resources["aws_cloudwatch_event_target"])
	for _, key := range sorted(targets) {
		target := first(targets[key])
		of := t.text(target["rule"])
		if of == mark("aws_cloudwatch_event_rule."+id+".name") || of == r.Name {
			r.Targets = append(r.Targets, t.target(key, target))
		}
	}
	r.ARN = ruleARN(r)
	return r
}

func (t *terraformFile) target(key string, o map[string]any) binding.Target {
	arn := t.text(o["arn"])
	if plain := unmarked(arn, ""); plain == "" && arn != "" {
		arn = madeUp("sqs", short(arn))
	}
	out := binding.Target{ID: cmp.Or(unmarked(t.text(o["target_id"]), ""), key), ARN: arn, Input: t.text(o["input"]), InputPath: t.text(o["input_path"])}
	it := first(o["input_transformer"])
	if it == nil {
		return out
	}
	template := unmarked(groupMarks.ReplaceAllStringFunc(t.text(it["input_template"]), markedGroup), "unresolved")
	out.Transformer = &binding.Transformer{Template: template}
	if paths, ok := it["input_paths"].(map[string]any); ok {
		out.Transformer.PathsMap = map[string]string{}
		for k, p := range paths {
			out.Transformer.PathsMap[k] = t.text(p)
		}
	}
	return out
}

var (
	interpolation = regexp.MustCompile(`\$?\$\{[^}]*\}|%%\{`)
	groupAddress  = regexp.MustCompile(`^(?:aws_lb_target_group|aws_alb_target_group)\.([A-Za-z0-9_-]+)\.(?:arn|id)$`)
)

// text is a string with Terraform's own templates resolved as far as the file
// alone can, else marked.
func (t *terraformFile) text(v any) string {
	return interpolation.ReplaceAllStringFunc(text(v), func(s string) string {
		switch {
		case strings.HasPrefix(s, "$${"), s == "%%{":
			return s[1:]
		}
		address := strings.TrimSpace(s[2 : len(s)-1])
		if m := groupAddress.FindStringSubmatch(address); m != nil && t.group(m[1]) != nil {
			return groupARN(m[1])
		}
		return mark(address)
	})
}

func (t *terraformFile) group(id string) map[string]any {
	for _, kind := range []string{"aws_lb_target_group", "aws_alb_target_group"} {
		if o := first(first(t.resources[kind])[id]); o != nil {
			return o
		}
	}
	return nil
}

// groups are what the file says of its target groups.
func (t *terraformFile) groups() map[string]lint.Group {
	out := map[string]lint.Group{}
	for _, kind := range []string{"aws_lb_target_group", "aws_alb_target_group"} {
		for id, v := range first(t.resources[kind]) {
			o := first(v)
			get := func(key string) string { return unmarked(t.text(o[key]), "") }
			g := lint.Group{
				Group: claim.Group{ARN: groupARN(id), Type: claim.TargetType(cmp.Or(get("target_type"), "instance")), Family: claim.Family(cmp.Or(get("ip_address_type"), "ipv4"))},
				Name:  get("name"), Protocol: get("protocol"), DeregistrationDelay: defaultDelay,
			}
			if n, err := strconv.ParseInt(get("port"), 10, 32); err == nil {
				g.Port = int32(n)
			}
			if n, err := strconv.Atoi(get("deregistration_delay")); err == nil {
				g.DeregistrationDelay = time.Duration(n) * time.Second
			}
			g.Tags = t.tags(o["tags"])
			out[g.ARN] = g
			if g.Name != "" {
				out["name:"+g.Name] = g
			}
		}
	}
	return out
}

// tags are nil where only the deployment knows the owner.
func (t *terraformFile) tags(v any) map[string]string {
	tags, ok := v.(map[string]any)
	if v != nil && !ok {
		return nil
	}
	out := map[string]string{}
	for k, raw := range tags {
		value := t.text(raw)
		if k == binding.OwnerTag && value != unmarked(value, "") {
			return nil
		}
		out[k] = value
	}
	return out
}
