// Package rulefile reads rules of an elbridge bus from what a repository or a
// build holds: rules as the AWS CLI shows them, CloudFormation templates (CDK's
// among them), Terraform's JSON, and bindings.yaml. What a template says of its
// target groups comes along. The package is pure.
package rulefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/bindingfile"
	"github.com/elbridge/elbridge/pkg/lint"
)

// Kind is what a file is.
type Kind string

// The kinds.
const (
	Rules          Kind = "rules"
	CloudFormation Kind = "CloudFormation template"
	Terraform      Kind = "Terraform JSON"
	Bindings       Kind = "bindings.yaml"
)

// MaxBytes bounds a file: CloudFormation's own limit is 1 MB.
const MaxBytes = 16 << 20

// Region of ARNs that are made up: a template does not know where it is deployed.
const madeUpRegion = "eu-west-1"

// File is what was read.
type File struct {
	Kind   Kind
	Rules  []lint.Rule
	Groups map[string]lint.Group // what the file says of target groups, by lint.Ref
}

// Parse reads a file. name is for what errors and places say; the kind is told
// by the content. Rules that stand in the file and can't be read are an error;
// what is wrong with a rule itself is lint's to say.
func Parse(name string, data []byte) (*File, error) {
	f, err := parse(name, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func parse(name string, data []byte) (*File, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(data), MaxBytes)
	}
	top, err := decode(data)
	if err != nil {
		return nil, err
	}
	if list, ok := top.([]any); ok {
		top = map[string]any{"Rules": list}
	}
	object, ok := top.(map[string]any)
	if !ok {
		return nil, errUnknown()
	}
	switch {
	case has(object, "Resources"):
		return cloudFormation(name, object)
	case has(object, "resource"):
		return terraform(name, object)
	case has(object, "Rules"), has(object, "rules"):
		return rules(name, object)
	case has(object, "bindings"):
		return bindings(name, data)
	default:
		return nil, errUnknown()
	}
}

func has(o map[string]any, key string) bool { _, ok := o[key]; return ok }

func errUnknown() error {
	return fmt.Errorf(`neither rules ({"Rules":[…]}), nor a CloudFormation template ("Resources"), nor Terraform JSON ("resource"), nor bindings.yaml ("bindings")`)
}

// decode reads JSON or, where it is none, YAML.
func decode(data []byte) (any, error) {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 {
		return nil, fmt.Errorf("empty")
	}
	if trimmed[0] != '{' && trimmed[0] != '[' {
		return decodeYAML(data)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("line %d: not valid JSON: %w", lineOf(data, dec.InputOffset()), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("line %d: text after the JSON value", lineOf(data, dec.InputOffset()))
	}
	return v, nil
}

func lineOf(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
}

// bindings reads bindings.yaml.
func bindings(name string, data []byte) (*File, error) {
	b, err := bindingfile.Parse(data)
	if err != nil {
		return nil, err
	}
	f := &File{Kind: Bindings}
	for _, r := range b.Rules() {
		f.Rules = append(f.Rules, lint.Rule{Rule: r.Rule, Targets: r.Targets, Place: fmt.Sprintf("%s:%d", name, r.Line)})
	}
	return f, nil
}

// text is a value as a string; objects and lists are their JSON.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	default:
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if enc.Encode(v) != nil {
			return ""
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
}

// sorted returns the keys of an object in order.
func sorted(o map[string]any) []string {
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// at goes down by keys; nil where there is nothing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[k]
	}
	return v
}

func items(v any) []any {
	list, _ := v.([]any)
	return list
}
