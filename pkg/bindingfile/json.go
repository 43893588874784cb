package bindingfile

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is a member of a JSON object whose order is kept.
type field struct{ key, raw string }

// object is a JSON object in the order it was written.
type object []field

func (o object) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(f.key) + ":" + f.raw)
	}
	b.WriteByte('}')
	return b.String()
}

func array(items []string) string { return "[" + strings.Join(items, ",") + "]" }

// quote is a JSON string; < and > stand in it as they are, since EventBridge
// wants them so.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can be encoded, into memory
	return strings.TrimSuffix(b.String(), "\n")
}

// json writes a YAML value as JSON.
func (p *parser) json(n *yaml.Node, path string) (string, bool) {
	switch n.Kind {
	case yaml.MappingNode:
		members, ok := p.members(n, path, "a mapping")
		out := object{}
		for _, m := range members {
			raw, good := p.json(m.value, m.path)
			out, ok = append(out, field{m.key, raw}), ok && good
		}
		return out.String(), ok
	case yaml.SequenceNode:
		items, ok := []string{}, true
		for _, c := range n.Content {
			raw, good := p.json(c, path)
			items, ok = append(items, raw), ok && good
		}
		return array(items), ok
	default:
		return p.scalar(n, path)
	}
}

func (p *parser) scalar(n *yaml.Node, path string) (string, bool) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date is written as it stands
		return quote(n.Value), true
	case "!!null":
		return "null", true
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return map[bool]string{true: "true", false: "false"}[b], true
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) { // 0x10 and 1_000 are YAML's alone
			return n.Value, true
		}
	}
	p.fail(n, path, "%s: want a string, a decimal number, true or false", show(n))
	return "null", false
}
