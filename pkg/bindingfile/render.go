package bindingfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Format is a way to write rules.
type Format string

// The formats.
const (
	CloudFormation Format = "cloudformation"
	TerraformJSON  Format = "terraform-json"
	AWSCLI         Format = "aws-cli"
)

// Formats are all of them.
var Formats = []Format{CloudFormation, TerraformJSON, AWSCLI}

// Delivery of the rendered targets: a hint older than a quarter of an hour is of
// no use, resync has long repaired what it would have said.
const (
	maxEventAge = 900 // seconds
	maxRetries  = 185 // EventBridge's own maximum
)

// Render writes the rules of a file. Equal files give equal output.
func Render(f *File, format Format) ([]byte, error) {
	switch format {
	case CloudFormation:
		return cloudFormation(f)
	case TerraformJSON:
		return terraform(f)
	case AWSCLI:
		return awsCLI(f)
	default:
		return nil, fmt.Errorf("format %q: want one of %v", format, Formats)
	}
}

// indented writes a value as JSON, with < and > as they are.
func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// ordered is a JSON object whose members keep their order.
type ordered []orderedMember

type orderedMember struct {
	key   string
	value any
}

// MarshalJSON writes the members in order.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(m.key) + ":")
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// target is a rule's target as PutTargets and CloudFormation spell it.
func (f *File) target(e Entry) ordered {
	t := ordered{
		{"Id", TargetID},
		{"Arn", f.Queue},
		{"InputTransformer", ordered{{"InputTemplate", e.template()}}},
		{"RetryPolicy", ordered{{"MaximumEventAgeInSeconds", maxEventAge}, {"MaximumRetryAttempts", maxRetries}}},
	}
	if f.DeadLetters != "" {
		t = append(t, orderedMember{"DeadLetterConfig", ordered{{"Arn", f.DeadLetters}}})
	}
	return t
}

func (e *Entry) state() string {
	if e.Enabled {
		return "ENABLED"
	}
	return "DISABLED"
}

func cloudFormation(f *File) ([]byte, error) {
	ids := newNames(logicalID)
	var resources ordered
	for _, e := range f.Bindings {
		p := ordered{{"Name", e.Name}, {"EventBusName", f.Bus}}
		if e.Description != "" {
			p = append(p, orderedMember{"Description", e.Description})
		}
		p = append(p, ordered{{"State", e.state()}, {"EventPattern", json.RawMessage(e.Pattern)}, {"Targets", []any{f.target(e)}}}...)
		resources = append(resources, orderedMember{ids.of(e.Name), ordered{{"Type", "AWS::Events::Rule"}, {"Properties", p}}})
	}
	return indented(ordered{
		{"AWSTemplateFormatVersion", "2010-09-09"},
		{"Description", "Bindings of elbridge: which pods belong into which target group"},
		{"Resources", resources},
	})
}

// logicalID is letters and digits alone.
func logicalID(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return "Binding" + b.String()
}

// terraformName is letters, digits, _ and -, and begins with a letter or _.
func terraformName(name string) string {
	name = strings.ReplaceAll(name, ".", "_")
	if name == "" || !unicode.IsLetter(rune(name[0])) && name[0] != '_' {
		name = "_" + name
	}
	return name
}

// names gives each rule a name of another kind, and no two the same.
type names struct {
	change func(string) string
	taken  map[string]bool
}

func newNames(change func(string) string) *names { return &names{change, map[string]bool{}} }

func (n *names) of(name string) string {
	base := n.change(name)
	out := base
	for i := 2; n.taken[out]; i++ {
		out = fmt.Sprintf("%s%d", base, i)
	}
	n.taken[out] = true
	return out
}

func terraform(f *File) ([]byte, error) {
	ids := newNames(terraformName)
	var rules, targets ordered
	for _, e := range f.Bindings {
		id := ids.of(e.Name)
		r := ordered{{"name", literal(e.Name)}, {"event_bus_name", literal(f.Bus)}}
		if e.Description != "" {
			r = append(r, orderedMember{"description", literal(e.Description)})
		}
		rules = append(rules, orderedMember{id, append(r, ordered{{"state", e.state()}, {"event_pattern", literal(e.Pattern)}}...)})
		t := ordered{
			{"rule", "${aws_cloudwatch_event_rule." + id + ".name}"},
			{"event_bus_name", literal(f.Bus)},
			{"target_id", TargetID},
			{"arn", literal(f.Queue)},
			{"input_transformer", []any{ordered{{"input_template", literal(e.template())}}}},
			{"retry_policy", []any{ordered{{"maximum_event_age_in_seconds", maxEventAge}, {"maximum_retry_attempts", maxRetries}}}},
		}
		if f.DeadLetters != "" {
			t = append(t, orderedMember{"dead_letter_config", []any{ordered{{"arn", literal(f.DeadLetters)}}}})
		}
		targets = append(targets, orderedMember{id, t})
	}
	return indented(ordered{{"resource", ordered{{"aws_cloudwatch_event_rule", rules}, {"aws_cloudwatch_event_target", targets}}}})
}

// literal keeps Terraform from reading its own templates in a string.
func literal(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s)
}

func awsCLI(f *File) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("#!/bin/sh\n# Bindings of elbridge, written by `elbridge render -o aws-cli`. It can be run again.\nset -eu\n")
	for _, e := range f.Bindings {
		rule := ordered{{"Name", e.Name}, {"EventBusName", f.Bus}}
		if e.Description != "" {
			rule = append(rule, orderedMember{"Description", e.Description})
		}
		rule = append(rule, ordered{{"State", e.state()}, {"EventPattern", e.Pattern}}...)
		targets := ordered{{"Rule", e.Name}, {"EventBusName", f.Bus}, {"Targets", []any{f.target(e)}}}
		for _, call := range []struct {
			name, check string
			input       ordered
		}{{"put-rule", "", rule}, {"put-targets", " --query FailedEntryCount --output text | grep -qx 0", targets}} {
			text, err := indented(call.input)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "\naws events %s --cli-input-json %s%s\n", call.name, shell(strings.TrimSuffix(string(text), "\n")), call.check)
		}
	}
	return b.Bytes(), nil
}

// shell is one word of a POSIX shell.
func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
