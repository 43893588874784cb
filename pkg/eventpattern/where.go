package eventpattern

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// All yields the scalars of the event in its order: where each lies, as in
// "detail.ports[1].name", and its value as JSON. Scalars in an array stand at
// the array itself, whatever their place in it.
func (e *Event) All() iter.Seq2[string, string] {
	return func(yield func(where, value string) bool) {
		for i := range e.fields {
			if !yield(e.where(int32(i)), e.valueText(int32(i), false)) {
				return
			}
		}
	}
}

// valueText is the value of a field as JSON; a long one is cut on request.
func (e *Event) valueText(i int32, cut bool) string {
	f := &e.fields[i]
	text := f.text
	if cut {
		text = clip(text)
	}
	if f.kind != kindString {
		return text
	}
	return quoted(text)
}

// where is the path of a field, with the places in arrays.
func (e *Event) where(i int32) string {
	f := &e.fields[i]
	var parts []string // from the end
	x := f.element
	for s := f.step; s != none; s = e.steps[s].parent {
		for x != none && e.elements[x].step == s {
			parts = append(parts, "["+strconv.Itoa(int(e.elements[x].index))+"]")
			x = e.elements[x].parent
		}
		parts = append(parts, e.steps[s].key)
		if e.steps[s].parent != none {
			parts = append(parts, ".")
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// hasUnder reports whether the event has scalars under a path, at longer ones.
func (e *Event) hasUnder(path string) bool {
	for i := range e.steps {
		if parent := e.steps[i].parent; parent != none && e.isPath(parent, path) {
			return true
		}
	}
	return false
}

// compact is JSON without the spaces between its tokens.
func compact(source string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(source)); err != nil {
		return source
	}
	return b.String()
}

// label is a path for a line of text.
func label(path string) string {
	path = clip(path)
	if strings.ContainsFunc(path, unicode.IsControl) {
		return quoted(path)
	}
	return path
}

// quoted is a string as JSON.
func quoted(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			b.WriteString(`\u00`)
			b.WriteByte(hex[r>>4])
			b.WriteByte(hex[r&15])
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
