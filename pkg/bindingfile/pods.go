package bindingfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// podKeys are the keys of a selector: what a pod is, not what it is doing.
var podKeys = []string{"cluster", "namespace", "name", "serviceAccount", "labels", "annotations", "owner", "hostNetwork", "ports", "anyOf"}

// insideKeys are the keys of those that hold others; nil lets any stand.
var insideKeys = map[string][]string{
	"labels": nil, "annotations": nil,
	"owner": {"kind", "name"},
	"ports": {"name", "containerPort", "hostPort", "protocol"},
}

// stateKeys are what a pattern must not select on, with what to write instead.
var stateKeys = map[string]string{
	"ready": "registerWhen: Ready", "containersReady": "registerWhen: ContainersReady", "podIP": "podCIDRs", "podIPs": "podCIDRs",
	"phase": "", "terminating": "", "reason": "", "nodeName": "",
}

// pods makes the pattern of a selector; "" if something is wrong with it.
func (p *parser) pods(m member) string {
	before := len(p.errs)
	detail := p.selector(m.value, m.path)
	if len(p.errs) > before {
		return ""
	}
	return object{
		{"source", array([]string{quote(podevent.Source)})},
		{"detail-type", array([]string{quote(podevent.DetailTypePodStateChange)})},
		{"detail", detail.String()},
	}.String()
}

func (p *parser) selector(n *yaml.Node, path string) object {
	members, ok := p.members(n, path, "a mapping, as in {namespace: web, labels: {app: web}}")
	if ok && len(members) == 0 {
		p.fail(n, path, "it selects every pod: name at least a namespace")
	}
	var out object
	for _, m := range members {
		inside, nested := insideKeys[m.key]
		switch {
		case m.key == "anyOf":
			out = append(out, field{"$or", p.anyOf(m)})
		case nested:
			out = append(out, field{m.key, p.inside(m, inside)})
		case !slices.Contains(podKeys, m.key):
			p.unknownPod(m)
		default:
			out = append(out, field{m.key, p.alternatives(m)})
		}
	}
	return out
}

func (p *parser) unknownPod(m member) {
	instead, isState := stateKeys[m.key]
	switch {
	case isState && instead != "":
		p.fail(m.at, m.path, "it is what a pod is doing, and the rule would not see it leave that state: use %s", instead)
	case isState:
		p.fail(m.at, m.path, "it is not what a pod is: leave it out; to match it all the same, write the whole pattern under pattern")
	default:
		p.unknown(m, podKeys)
	}
}

func (p *parser) inside(m member, known []string) string {
	members, _ := p.members(m.value, m.path, "a mapping")
	var out object
	for _, in := range members {
		if known != nil && !slices.Contains(known, in.key) {
			p.unknown(in, known)
			continue
		}
		out = append(out, field{in.key, p.alternatives(in)})
	}
	return out.String()
}

// anyOf is EventBridge's $or.
func (p *parser) anyOf(m member) string {
	if m.value.Kind != yaml.SequenceNode || len(m.value.Content) < 2 {
		p.fail(m.value, m.path, "want a list of two or more selectors")
		return "[]"
	}
	var out []string
	for _, n := range m.value.Content {
		out = append(out, p.selector(n, m.path).String())
	}
	return array(out)
}

// alternatives are the values of a field: one or a list, each a plain value or
// an operator of the pattern language, as in {prefix: team-}.
func (p *parser) alternatives(m member) string {
	if m.value.Kind != yaml.SequenceNode {
		return array([]string{p.alternative(m.value, m)})
	}
	if len(m.value.Content) == 0 {
		p.fail(m.value, m.path, "an empty list matches nothing")
	}
	var out []string
	for _, n := range m.value.Content {
		out = append(out, p.alternative(n, m))
	}
	return array(out)
}

func (p *parser) alternative(n *yaml.Node, m member) string {
	raw, ok := p.json(n, m.path)
	isLabel := strings.Contains(m.path, ".labels.") || strings.Contains(m.path, ".annotations.")
	if ok && n.Kind == yaml.ScalarNode && isLabel && !strings.HasPrefix(raw, `"`) {
		p.fail(n, m.path, "%s: labels and annotations are strings: write %q in quotes", n.Value, n.Value)
	}
	return raw
}

// pattern takes a whole event pattern, as a mapping or as JSON text.
func (p *parser) pattern(m member) string {
	if m.value.Kind == yaml.ScalarNode {
		return p.text(m)
	}
	raw, _ := p.json(m.value, m.path)
	return raw
}
