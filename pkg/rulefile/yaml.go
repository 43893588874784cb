package rulefile

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of what a YAML file may unfold to: aliases can repeat a part.
const (
	maxNodes = 1 << 18
	maxDepth = 200
)

// decodeYAML reads YAML into the values that JSON has. CloudFormation's short
// tags, as in !Ref Bus, become what they stand for.
func decodeYAML(data []byte) (any, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("neither JSON nor YAML: %w", err)
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("empty")
	}
	c := converter{left: maxNodes}
	return c.value(doc.Content[0], 0)
}

type converter struct{ left int }

func (c *converter) value(n *yaml.Node, depth int) (any, error) {
	if c.left--; c.left < 0 || depth > maxDepth {
		return nil, fmt.Errorf("line %d: more than %d values, or nested more than %d deep", n.Line, maxNodes, maxDepth)
	}
	if n.Kind == yaml.AliasNode {
		return c.value(n.Alias, depth+1)
	}
	if name, ok := function(n.Tag); ok {
		plain := *n
		plain.Tag = ""
		v, err := c.value(&plain, depth+1)
		if s, isText := v.(string); isText && name == "Fn::GetAtt" {
			resource, attribute, _ := strings.Cut(s, ".")
			v = []any{resource, attribute}
		}
		return map[string]any{name: v}, err
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			v, err := c.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	default:
		return scalar(n)
	}
}

func (c *converter) mapping(n *yaml.Node, depth int) (any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v, err := c.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		out[n.Content[i].Value] = v
	}
	return out, nil
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		err := n.Decode(&b)
		return b, err
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
	}
	return n.Value, nil
}

// function is the long name of a short tag of CloudFormation.
func function(tag string) (string, bool) {
	name, ok := strings.CutPrefix(tag, "!")
	if !ok || strings.HasPrefix(name, "!") || name == "" {
		return "", false
	}
	if name == "Ref" || name == "Condition" {
		return name, true
	}
	return "Fn::" + name, true
}
