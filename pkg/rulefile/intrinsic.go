package rulefile

import (
	"regexp"
	"strings"

	"github.com/elbridge/elbridge/pkg/lint"
)

// Bounds of the work on one template: functions nest, may name themselves, and
// repeat what they name.
const (
	maxResolved = 1 << 18 // values
	maxNested   = 200     // functions within functions
	maxText     = 1 << 20 // bytes of one text
)

// template resolves CloudFormation's functions as far as a template alone can.
type template struct {
	resources  map[string]any
	parameters any
	left       int
	depth      int
}

// text is a value as a string: functions give what they would, or a mark.
func (t *template) text(v any) string { return bounded(text(t.resolve(v))) }

// resolve replaces functions within a value.
func (t *template) resolve(v any) any {
	t.depth++
	defer func() { t.depth-- }()
	if t.left--; t.left < 0 || t.depth > maxNested {
		return mark("too-large")
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				if name == "Ref" || strings.HasPrefix(name, "Fn::") {
					return t.call(name, argument)
				}
			}
		}
		out := map[string]any{}
		for k, inner := range v {
			out[k] = t.resolve(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = t.resolve(inner)
		}
		return out
	default:
		return v
	}
}

func (t *template) call(name string, argument any) any {
	args := items(argument)
	switch {
	case name == "Ref":
		return t.ref(text(argument))
	case name == "Fn::GetAtt" && len(args) == 2:
		return t.attribute(text(args[0]), text(args[1]))
	case name == "Fn::GetAtt":
		resource, attribute, _ := strings.Cut(text(argument), ".")
		return t.attribute(resource, attribute)
	case name == "Fn::Join" && len(args) == 2:
		var parts []string
		for _, a := range items(t.resolve(args[1])) {
			parts = append(parts, text(a))
		}
		return bounded(strings.Join(parts, text(args[0])))
	case name == "Fn::Sub":
		return t.sub(argument)
	case name == "Fn::If" && len(args) == 3:
		return t.resolve(args[1])
	case name == "Fn::ToJsonString":
		return text(t.resolve(argument))
	default:
		return mark(strings.TrimPrefix(name, "Fn::") + "-" + text(argument))
	}
}

var pseudo = map[string]string{
	"AWS::Region": madeUpRegion, "AWS::AccountId": lint.MadeUpAccount, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com", "AWS::StackName": "stack",
}

func (t *template) ref(name string) any {
	if v, ok := pseudo[name]; ok {
		return v
	}
	switch text(at(t.resources[name], "Type")) {
	case groupType:
		return groupARN(name)
	case busType:
		return t.busName(name)
	case "":
	default:
		return mark(name)
	}
	parameter := at(t.parameters, name)
	if v, ok := at(parameter, "Default").(string); ok && !strings.HasPrefix(text(at(parameter, "Type")), "AWS::SSM::") {
		return v
	}
	return mark(name)
}

func (t *template) busName(id string) string {
	name := t.text(at(t.resources[id], "Properties", "Name"))
	if name == "" || name != unmarked(name, "") {
		return id
	}
	return name
}

func (t *template) attribute(resource, attribute string) any {
	kind := text(at(t.resources[resource], "Type"))
	switch {
	case kind == queueType && attribute == "Arn":
		if name := t.text(at(t.resources[resource], "Properties", "QueueName")); name != "" && name == unmarked(name, "") {
			return madeUp("sqs", name)
		}
		return madeUp("sqs", resource)
	case kind == groupType && attribute == "TargetGroupArn":
		return groupARN(resource)
	case kind == busType && attribute == "Arn":
		return madeUp("events", "event-bus/"+t.busName(resource))
	case kind == busType && attribute == "Name":
		return t.busName(resource)
	default:
		return mark(resource + "-" + attribute)
	}
}

var subVariable = regexp.MustCompile(`\$\{[^}]*\}`)

func (t *template) sub(argument any) any {
	var own map[string]any
	if args := items(argument); len(args) == 2 {
		argument = args[0]
		own, _ = args[1].(map[string]any)
	}
	size := 0
	return bounded(subVariable.ReplaceAllStringFunc(text(argument), func(s string) string {
		out := t.variable(own, s)
		if size += len(out); size > maxText {
			return ""
		}
		return out
	}))
}

// bounded keeps a text from growing by repetition.
func bounded(s string) string {
	if len(s) > maxText {
		return mark("too-large")
	}
	return s
}

// variable is what ${…} stands for in Fn::Sub.
func (t *template) variable(own map[string]any, s string) string {
	name := strings.TrimSpace(s[2 : len(s)-1])
	if literal, ok := strings.CutPrefix(name, "!"); ok {
		return "${" + literal + "}"
	}
	if v, ok := own[name]; ok {
		return t.text(v)
	}
	if resource, attribute, ok := strings.Cut(name, "."); ok {
		return text(t.attribute(resource, attribute))
	}
	return text(t.ref(name))
}
