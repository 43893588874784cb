package bindingfile

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/internal/nearest"
)

// Bounds of a file: far more than the 300 rules that a bus has by default.
const (
	maxBytes       = 4 << 20
	maxDepth       = 64
	maxNodes       = 1 << 18
	maxDescription = 512 // EventBridge's
)

var (
	queueARN = regexp.MustCompile(`^arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}(\.fifo)?$`)
	awsName  = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,64}$`)
	busName  = regexp.MustCompile(`^[/.\-_A-Za-z0-9]{1,256}$`)
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
)

// Parse reads a file. The error joins an *Error for everything that is wrong.
func Parse(data []byte) (*File, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	p := &parser{}
	f := p.file(root)
	if len(p.errs) == 0 {
		p.readBack(f)
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// readBack holds the rules of the file against what the registrar will read in
// them, as where a tag looks like a placeholder of EventBridge.
func (p *parser) readBack(f *File) {
	for i, r := range f.Rules() {
		_, err := binding.FromRule(r.Rule, r.Targets, f.Queue)
		for _, fault := range binding.Faults(err) {
			p.errs = append(p.errs, &Error{Line: r.Line, Path: fmt.Sprintf("bindings[%d]", i), Reason: fault.Reason})
		}
	}
}

// document is the one mapping that the file consists of.
func document(data []byte) (*yaml.Node, error) {
	if len(data) > maxBytes {
		return nil, &Error{Reason: fmt.Sprintf("%d bytes: want at most %d", len(data), maxBytes)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		e := &Error{Reason: "not valid YAML: " + yamlLine.ReplaceAllString(err.Error(), "")}
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			e.Line, _ = strconv.Atoi(m[1]) // "" is no line
		}
		return nil, e
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, &Error{Line: 1, Reason: "want a mapping with version, queue and bindings"}
	}
	if err := bounded(doc.Content[0]); err != nil {
		return nil, err
	}
	return doc.Content[0], nil
}

// bounded refuses what would make a reader work without end: aliases can repeat
// a part many times over, and the format has no need of them.
func bounded(root *yaml.Node) error {
	nodes := 0
	var walk func(n *yaml.Node, depth int) error
	walk = func(n *yaml.Node, depth int) error {
		nodes++
		switch {
		case n.Kind == yaml.AliasNode, n.Anchor != "":
			return at(n, "", "anchors and aliases are not read: write it out")
		case depth > maxDepth:
			return at(n, "", "nested more than %d levels deep", maxDepth)
		case nodes > maxNodes:
			return at(n, "", "more than %d values", maxNodes)
		}
		for _, c := range n.Content {
			if err := walk(c, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, 0)
}

func at(n *yaml.Node, path, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Path: path, Reason: fmt.Sprintf(format, args...)}
}

// parser gathers what is wrong.
type parser struct{ errs []error }

func (p *parser) fail(n *yaml.Node, path, format string, args ...any) {
	p.errs = append(p.errs, at(n, path, format, args...))
}

// member is a key of a mapping and its value.
type member struct {
	key   string
	at    *yaml.Node // the key
	value *yaml.Node
	path  string
}

// members reads a mapping in order; keys given twice are faults.
func (p *parser) members(n *yaml.Node, path, want string) ([]member, bool) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, path, "%s: want %s", show(n), want)
		return nil, false
	}
	var out []member
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			p.fail(k, path, "a key must be a word")
			continue
		}
		m := member{key: k.Value, at: k, value: n.Content[i+1], path: strings.TrimPrefix(path+"."+k.Value, ".")}
		if seen[k.Value] {
			p.fail(k, m.path, "given twice: keep one")
			continue
		}
		seen[k.Value] = true
		out = append(out, m)
	}
	return out, true
}

func (p *parser) unknown(m member, known []string) {
	hint := ""
	if w := nearest.Word(m.key, known); w != "" {
		hint = ", did you mean " + w
	}
	p.fail(m.at, m.path, "unknown key%s (known are %s)", hint, strings.Join(known, ", "))
}

// text reads a string.
func (p *parser) text(m member) string {
	if m.value.Kind != yaml.ScalarNode || m.value.ShortTag() != "!!str" {
		p.fail(m.value, m.path, "%s: want a string", show(m.value))
		return ""
	}
	return m.value.Value
}

func (p *parser) matching(m member, re *regexp.Regexp, want string) string {
	s := p.text(m)
	if s != "" && !re.MatchString(s) {
		p.fail(m.value, m.path, "%q: want %s", s, want)
	}
	return s
}

var fileKeys = []string{"version", "bus", "queue", "deadLetters", "bindings"}

func (p *parser) file(root *yaml.Node) *File {
	f := &File{Bus: "elbridge"}
	members, _ := p.members(root, "", "a mapping")
	found := map[string]bool{}
	for _, m := range members {
		found[m.key] = true
		switch m.key {
		case "version":
			if m.value.Value != strconv.Itoa(Version) {
				p.fail(m.value, m.path, "%s: want %d", show(m.value), Version)
			}
		case "bus":
			f.Bus = p.matching(m, busName, "the name of the bus")
		case "queue":
			f.Queue = p.matching(m, queueARN, "the ARN of the registrar's queue, arn:aws:sqs:REGION:ACCOUNT:NAME")
		case "deadLetters":
			f.DeadLetters = p.matching(m, queueARN, "the ARN of a queue, arn:aws:sqs:REGION:ACCOUNT:NAME")
		case "bindings":
			f.Bindings = p.entries(m)
		default:
			p.unknown(m, fileKeys)
		}
	}
	for _, key := range []string{"version", "queue", "bindings"} {
		if !found[key] {
			p.fail(root, key, "missing")
		}
	}
	return f
}

func (p *parser) entries(m member) []Entry {
	if m.value.Kind != yaml.SequenceNode {
		p.fail(m.value, m.path, "%s: want a list of bindings", show(m.value))
		return nil
	}
	var out []Entry
	lines := map[string]int{}
	for i, n := range m.value.Content {
		e := p.entry(n, fmt.Sprintf("bindings[%d]", i))
		if before, twice := lines[e.Name]; twice && e.Name != "" {
			p.fail(n, fmt.Sprintf("bindings[%d].name", i), "%s is the name of the binding at line %d too", e.Name, before)
		}
		lines[e.Name] = n.Line
		out = append(out, e)
	}
	return out
}

// comment is the text above a binding, without its marks, on one line.
func comment(n *yaml.Node) string {
	text := n.HeadComment
	if text == "" && len(n.Content) > 0 {
		text = n.Content[0].HeadComment
	}
	var words []string
	for _, line := range strings.Split(text, "\n") {
		words = append(words, strings.Fields(strings.TrimLeft(strings.TrimSpace(line), "#"))...)
	}
	out := []rune(strings.Join(words, " "))
	if len(out) > maxDescription {
		out = append(out[:maxDescription-1], '…')
	}
	return string(out)
}

// show is a value as an error quotes it.
func show(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if r := []rune(n.Value); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	if n.Value == "" {
		return "nothing"
	}
	return n.Value
}
