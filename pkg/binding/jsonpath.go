package binding

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// pathStep is one step of a JSON path: a key, an index, or * for all.
type pathStep struct {
	key   string
	index int // -1 where key or all is meant
	all   bool
}

// parsePath reads the part of JSON path that input transformers have: $, dots,
// array indices and *. It reports false for anything else.
func parsePath(path string) ([]pathStep, bool) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, false
	}
	var steps []pathStep
	for rest != "" {
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			key := rest[1 : 1+end]
			if key == "" {
				return nil, false
			}
			steps = append(steps, pathStep{key: key, index: -1, all: key == "*"})
			rest = rest[1+end:]
		case '[':
			inner, after, ok := strings.Cut(rest[1:], "]")
			if !ok {
				return nil, false
			}
			step := pathStep{index: -1, all: inner == "*"}
			if !step.all {
				n, err := strconv.ParseUint(inner, 10, 31)
				if err != nil {
					return nil, false
				}
				step.index = int(n)
			}
			steps = append(steps, step)
			rest = after
		default:
			return nil, false
		}
	}
	return steps, true
}

// lookUp returns the JSON text at a path, and false where there is none. What a
// path with * finds comes as an array.
func lookUp(doc json.RawMessage, path string) (json.RawMessage, bool) {
	steps, ok := parsePath(path)
	if !ok {
		return nil, false
	}
	found := []json.RawMessage{bytes.TrimSpace(doc)}
	many := false
	for _, step := range steps {
		var next []json.RawMessage
		for _, d := range found {
			next = append(next, step.from(d)...)
		}
		found = next
		many = many || step.all
	}
	if many {
		out, err := json.Marshal(append([]json.RawMessage{}, found...))
		return out, err == nil
	}
	if len(found) == 0 {
		return nil, false
	}
	return found[0], true
}

// from returns what one step finds in a value.
func (s pathStep) from(doc json.RawMessage) []json.RawMessage {
	if len(doc) > 0 && doc[0] == '[' && (s.index >= 0 || s.all) {
		var list []json.RawMessage
		if json.Unmarshal(doc, &list) != nil {
			return nil
		}
		if s.all {
			return list
		}
		if s.index < len(list) {
			return list[s.index : s.index+1]
		}
		return nil
	}
	if len(doc) == 0 || doc[0] != '{' || s.index >= 0 {
		return nil
	}
	members, err := decodeMembers(doc)
	if err != nil {
		return nil
	}
	var out []json.RawMessage
	for _, m := range members {
		if s.all {
			out = append(out, m.value)
		} else if m.key == s.key {
			out = []json.RawMessage{m.value} // of two equal keys the last one counts
		}
	}
	return out
}

type rawMember struct {
	key   string
	value json.RawMessage
}

// decodeMembers reads an object's members in order, values as spelled.
func decodeMembers(doc []byte) ([]rawMember, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var members []rawMember
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		members = append(members, rawMember{key, v})
	}
	_, err := d.Token()
	return members, err
}
