package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// leaf is what a pattern says about one path: the alternatives of its array.
type leaf struct {
	path   string // keys joined with dots
	values []json.RawMessage
}

// branch is one conjunction of a pattern; without $or there is one.
type branch []leaf

// branches returns what a pattern says. It has been parsed by pkg/eventpattern,
// which bounds its length and the number of its combinations.
func branches(pattern string) []branch {
	var top json.RawMessage
	if json.NewDecoder(strings.NewReader(pattern)).Decode(&top) != nil { // what follows the brace is ignored
		return nil
	}
	return walk([]branch{nil}, "", top)
}

// walk continues every draft by the fields of an object.
func walk(drafts []branch, prefix string, object json.RawMessage) []branch {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return drafts
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		raw := fields[key]
		var alternatives []json.RawMessage
		isList := json.Unmarshal(raw, &alternatives) == nil
		switch {
		case key == "$or" && isList:
			var all []branch
			for _, alternative := range alternatives {
				all = append(all, walk(cloned(drafts), prefix, alternative)...)
			}
			drafts = all
		case isList:
			for i := range drafts {
				drafts[i] = append(drafts[i], leaf{prefix + key, alternatives})
			}
		default:
			drafts = walk(drafts, prefix+key+".", raw)
		}
	}
	return drafts
}

func cloned(drafts []branch) []branch {
	out := make([]branch, len(drafts))
	for i, d := range drafts {
		out[i] = slices.Clone(d)
	}
	return out
}

// at returns what the branch says about a path; several leaves where $or adds one.
func (b branch) at(path string) []leaf {
	var out []leaf
	for _, l := range b {
		if l.path == path {
			out = append(out, l)
		}
	}
	return out
}

// exact returns the plain strings that the branch wants at a path; nil if it
// wants anything else, or nothing.
func (b branch) exact(path string) []string {
	at := b.at(path)
	if len(at) == 0 {
		return nil
	}
	var out []string
	for _, raw := range at[0].values {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// pins reports whether the branch bounds a path: every alternative names the
// value, or a part of it.
func (b branch) pins(path string) bool {
	return slices.ContainsFunc(b.at(path), func(l leaf) bool {
		return !slices.ContainsFunc(l.values, func(raw json.RawMessage) bool { return !positive(raw) })
	})
}

// positive reports whether an alternative names what it wants, rather than what
// it does not want or that something is there.
func positive(raw json.RawMessage) bool {
	var operators map[string]json.RawMessage
	if json.Unmarshal(raw, &operators) != nil || operators == nil {
		return string(raw) != "null"
	}
	for name, operand := range operators {
		var text string
		_ = json.Unmarshal(operand, &text) // an operand that is no string has no star
		switch name {
		case "anything-but", "exists":
			return false
		case "prefix", "suffix":
			return string(operand) != `""`
		case "wildcard":
			return strings.Trim(text, "*") != ""
		}
	}
	return true
}

// everyBranch reports whether all branches of the pattern pin one of the paths.
func (b *bound) everyBranch(paths ...string) bool {
	for _, br := range b.branches {
		if !slices.ContainsFunc(paths, br.pins) {
			return false
		}
	}
	return true
}

// paths returns every path that the pattern names, sorted.
func (b *bound) paths() []string {
	var out []string
	for _, br := range b.branches {
		for _, l := range br {
			out = append(out, l.path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// kind says what a field of a pod event is to a rule.
type kind int

const (
	unknown  kind = iota
	identity      // what a pod is: for patterns
	fixed         // said once in a pod's life, as where it runs
	state         // what a pod is doing: not for patterns
)

// fields of the whole event. A name that ends in ".*" stands for one key below it.
var fields = map[string]kind{
	"version": fixed, "source": identity, "detail-type": identity, "account": identity, "region": identity, "resources": identity,
	"id": state, "time": state,

	"detail.cluster": identity, "detail.namespace": identity, "detail.name": identity, "detail.serviceAccount": identity,
	"detail.labels.*": identity, "detail.annotations.*": identity, "detail.owner.kind": identity, "detail.owner.name": identity,
	"detail.hostNetwork": identity, "detail.ports.name": identity, "detail.ports.containerPort": identity,
	"detail.ports.hostPort": identity, "detail.ports.protocol": identity,

	"detail.schema": fixed, "detail.uid": fixed, "detail.nodeName": fixed, "detail.hostIP": fixed,

	"detail.resourceVersion": state, "detail.podIP": state, "detail.podIPs": state, "detail.phase": state, "detail.ready": state,
	"detail.containersReady": state, "detail.terminating": state, "detail.deletionGracePeriodSeconds": state,
	"detail.reason": state, "detail.observedAt": state, "detail.webhook.version": state, "detail.webhook.instance": state,
	"detail.previous.podIP": state, "detail.previous.podIPs": state, "detail.previous.labels.*": state, "detail.previous.terminating": state,
	"detail.cut.annotations": state, "detail.cut.ports": state, "detail.cut.labels": state,
}

// kindOf looks a path up. Keys of labels and annotations may hold dots.
func kindOf(path string) kind {
	if k, ok := fields[path]; ok {
		return k
	}
	for _, parent := range []string{"detail.labels.", "detail.annotations.", "detail.previous.labels."} {
		if rest, ok := strings.CutPrefix(path, parent); ok && rest != "" {
			return fields[parent+"*"]
		}
	}
	return unknown
}

// fieldNames are the names that a pattern may have meant.
func fieldNames() []string {
	var out []string
	for name := range fields {
		out = append(out, strings.TrimSuffix(name, ".*"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
