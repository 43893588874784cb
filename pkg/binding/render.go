package binding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The variables that an input template has without an entry in the paths map.
const (
	varRuleARN       = "aws.events.rule-arn"
	varRuleName      = "aws.events.rule-name"
	varIngestionTime = "aws.events.event.ingestion-time"
	varEvent         = "aws.events.event"      // without its detail
	varEventJSON     = "aws.events.event.json" // whole
)

// Limits of a target's input, as the EventBridge API has them.
const (
	maxInput    = 8192 // characters of Input and of InputTemplate
	maxPath     = 256
	maxPaths    = 100
	maxVariable = 256
)

var (
	placeholder  = regexp.MustCompile(`<([A-Za-z0-9_.-]+)>`)
	variableName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// CheckInput says what EventBridge would refuse about a target's input when the
// target is put.
func (t Target) CheckInput() error {
	given := 0
	for _, is := range []bool{t.Input != "", t.InputPath != "", t.Transformer != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		return fmt.Errorf("target %s: only one of Input, InputPath and InputTransformer may be given", t.ID)
	}
	var errs []error
	if len(t.Input) > maxInput {
		errs = append(errs, fmt.Errorf("target %s: Input has more than %d characters", t.ID, maxInput))
	}
	if t.Input != "" && !json.Valid([]byte(t.Input)) {
		errs = append(errs, fmt.Errorf("target %s: Input is not valid JSON", t.ID))
	}
	if len(t.InputPath) > maxPath {
		errs = append(errs, fmt.Errorf("target %s: InputPath has more than %d characters", t.ID, maxPath))
	}
	if t.Transformer != nil {
		errs = append(errs, t.Transformer.check(t.ID)...)
	}
	return errors.Join(errs...)
}

func (t *Transformer) check(id string) (errs []error) {
	if t.Template == "" || len([]rune(t.Template)) > maxInput {
		errs = append(errs, fmt.Errorf("target %s: InputTemplate has 1 to %d characters, not %d", id, maxInput, len([]rune(t.Template))))
	}
	if len(t.PathsMap) > maxPaths {
		errs = append(errs, fmt.Errorf("target %s: InputPathsMap has %d entries, %d is the most", id, len(t.PathsMap), maxPaths))
	}
	for name, path := range t.PathsMap {
		if !variableName.MatchString(name) || len(name) > maxVariable || strings.HasPrefix(name, "AWS") {
			errs = append(errs, fmt.Errorf("target %s: InputPathsMap: %q is no name of a variable: letters, digits, _ and -, not beginning with AWS", id, clip(name)))
		}
		if path == "" || len(path) > maxPath {
			errs = append(errs, fmt.Errorf("target %s: InputPathsMap: the path of %q has 1 to %d characters", id, clip(name), maxPath))
		}
	}
	for _, m := range placeholder.FindAllStringSubmatch(t.Template, -1) {
		if _, ok := t.PathsMap[m[1]]; !ok && !isReserved(m[1]) {
			errs = append(errs, fmt.Errorf("target %s: InputTemplate contains invalid placeholder %s: it is neither in InputPathsMap nor one of the aws.events variables", id, clip(m[1])))
		}
	}
	return errs
}

func isReserved(name string) bool {
	switch name {
	case varRuleARN, varRuleName, varIngestionTime, varEvent, varEventJSON:
		return true
	}
	return false
}

// Render returns exactly what EventBridge would deliver to the target for this
// event: the whole event, the part that InputPath names (null where there is
// none), the static Input, or the filled-in template.
//
// In a template a placeholder outside of quotes becomes the JSON value, and an
// empty string where its path finds nothing. Within quotes strings are put in as
// they are, without escaping, objects and arrays without their quotes, and
// nothing where the path finds nothing. So the result need not be JSON.
func Render(rule Rule, t Target, event []byte, ingestion time.Time) ([]byte, error) {
	if err := t.CheckInput(); err != nil {
		return nil, err
	}
	if !json.Valid(event) {
		return nil, errors.New("the event is not valid JSON")
	}
	switch {
	case t.Input != "":
		return []byte(t.Input), nil
	case t.InputPath != "":
		if found, ok := lookUp(event, t.InputPath); ok {
			return found, nil
		}
		return []byte("null"), nil
	case t.Transformer != nil:
		return t.Transformer.fill(variables(rule, t.Transformer.PathsMap, event, ingestion)), nil
	}
	return event, nil
}

// variables returns the JSON value of each variable. One whose path finds
// nothing has none.
func variables(rule Rule, paths map[string]string, event []byte, ingestion time.Time) map[string]json.RawMessage {
	vars := map[string]json.RawMessage{
		varRuleARN:       quoted(rule.ARN),
		varRuleName:      quoted(rule.Name),
		varIngestionTime: quoted(ingestion.UTC().Format(time.RFC3339)),
		varEvent:         withoutDetail(event),
		varEventJSON:     bytes.TrimSpace(event),
	}
	for name, path := range paths {
		if v, ok := lookUp(event, path); ok {
			vars[name] = v
		}
	}
	return vars
}

// withoutDetail is the event as <aws.events.event> has it: other order, the
// detail-type under another name, no detail.
func withoutDetail(event json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	for _, k := range [][2]string{
		{"id", "id"}, {"account", "account"}, {"detailType", "detail-type"}, {"time", "time"},
		{"source", "source"}, {"region", "region"}, {"resources", "resources"}, {"version", "version"},
	} {
		v, ok := lookUp(event, "$."+k[1])
		if !ok {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, quoted(k[0])...)
		b = append(b, ':')
		b = append(b, v...)
	}
	return append(b, '}')
}

// fill puts the variables into the template.
func (t *Transformer) fill(vars map[string]json.RawMessage) []byte {
	var out []byte
	inString, from := false, 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(t.Template, -1) {
		literal := t.Template[from:m[0]]
		inString = endsInString(literal, inString)
		out = append(out, literal...)
		v := vars[t.Template[m[2]:m[3]]]
		if inString {
			out = append(out, spliced(v)...)
		} else {
			out = append(out, standing(v)...)
		}
		from = m[1]
	}
	return append(out, t.Template[from:]...)
}

// endsInString reports whether a text that begins within quotes, or not, ends
// within them.
func endsInString(text string, inString bool) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			inString = !inString
		case text[i] == '\\' && inString:
			i++
		}
	}
	return inString
}

// standing is a variable's value outside of quotes.
func standing(v json.RawMessage) []byte {
	if v == nil {
		return []byte(`""`)
	}
	return v
}

// spliced is a variable's value within quotes.
func spliced(v json.RawMessage) []byte {
	var s string
	if len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &s) == nil {
		return []byte(s)
	}
	return bytes.ReplaceAll(v, []byte(`"`), nil)
}

// quoted is a string as JSON, with < and > as they are.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return json.RawMessage(`""`) // no string fails to encode
	}
	return bytes.TrimSpace(b.Bytes())
}
