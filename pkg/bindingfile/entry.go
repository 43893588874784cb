package bindingfile

import (
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/internal/nearest"
)

// entryKeys are the keys of a binding beside its constants.
var entryKeys = []string{"name", "description", "enabled", "pods", "pattern"}

func (p *parser) entry(n *yaml.Node, path string) Entry {
	e := Entry{Enabled: true, Line: n.Line, Description: comment(n)}
	members, ok := p.members(n, path, "a binding: a mapping with name, pods and targetGroup")
	if !ok {
		return e
	}
	var constants []member
	found := map[string]bool{}
	for _, m := range members {
		found[m.key] = true
		switch m.key {
		case "name":
			e.Name = p.matching(m, awsName, "1 to 64 letters, digits, . - or _")
		case "description":
			if e.Description = p.text(m); len([]rune(e.Description)) > maxDescription {
				p.fail(m.value, m.path, "%d characters: want at most %d", len([]rune(e.Description)), maxDescription)
			}
		case "enabled":
			if err := m.value.Decode(&e.Enabled); err != nil || m.value.ShortTag() != "!!bool" {
				p.fail(m.value, m.path, "%s: want true or false", show(m.value))
			}
		case "pods":
			e.Pattern = p.pods(m)
		case "pattern":
			e.Pattern = p.pattern(m)
		default:
			constants = append(constants, m)
		}
	}
	if !found["name"] {
		p.fail(n, path+".name", "missing: it is the rule's name")
	}
	if found["pods"] == found["pattern"] {
		p.fail(n, path, "want exactly one of pods and pattern")
	}
	e.Constants = p.constants(n, path, constants)
	p.check(n, path, e)
	return e
}

// check holds a pattern against the language, where the file itself can't.
func (p *parser) check(n *yaml.Node, path string, e Entry) {
	if e.Pattern == "" {
		return
	}
	if _, err := eventpattern.Parse([]byte(e.Pattern)); err != nil {
		where := n
		if syntax, ok := errors.AsType[*eventpattern.SyntaxError](err); ok {
			where = find(n, append([]string{"pods"}, strings.Split(strings.TrimPrefix(syntax.Path, "detail."), ".")...))
			if where == n {
				where = find(n, []string{"pattern"})
			}
		}
		p.fail(where, path, "%s", err)
	}
}

// constants reads what is left of a binding as its constants.
func (p *parser) constants(n *yaml.Node, path string, members []member) string {
	out := object{}
	for _, m := range members {
		if raw, ok := p.json(m.value, m.path); ok {
			out = append(out, field{m.key, raw})
		}
	}
	text := out.String()
	_, err := binding.ParseConstants([]byte(text))
	for _, f := range binding.Faults(err) {
		keys := strings.TrimPrefix(strings.TrimPrefix(f.Path, "$.binding"), ".")
		where, reason := find(n, strings.FieldsFunc(keys, func(r rune) bool { return r == '.' || r == '[' || r == ']' })), f.Reason
		if strings.HasPrefix(reason, "unknown constant") {
			if w := nearest.Word(keys, entryKeys); w != "" && !strings.Contains(reason, "did you mean") {
				reason = "unknown key, did you mean " + w
			}
			reason = strings.Replace(reason, "unknown constant", "unknown key", 1)
		}
		p.fail(where, strings.TrimSuffix(path+"."+keys, "."), "%s", reason)
	}
	return text
}

// find goes down from a node by keys and indices, as far as they lead.
func find(n *yaml.Node, keys []string) *yaml.Node {
	for _, key := range keys {
		next := n
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					next = n.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
				next = n.Content[i]
			}
		}
		if next == n {
			return n
		}
		n = next
	}
	return n
}
