package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// scanner walks JSON text once and copies nothing that is not asked for. An
// AdmissionReview is tens of kilobytes, mostly managedFields, of which some
// hundred bytes matter: decoding it with encoding/json takes ten times as long
// and the API server waits.
//
// What is skipped is not validated beyond strings and nesting. The first fault
// is kept and ends the walk; everything returns zero values from then on.
type scanner struct {
	text []byte
	pos  int
	err  error
}

func (s *scanner) fail(want string) {
	if s.err == nil {
		s.err = fmt.Errorf("offset %d: want %s", s.pos, want)
	}
	s.pos = len(s.text)
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// null consumes a null if there is one.
func (s *scanner) null() bool {
	if s.peek() == 'n' && bytes.HasPrefix(s.text[s.pos:], []byte("null")) {
		s.pos += len("null")
		return true
	}
	return false
}

// object calls member for each member of an object, or never for a null. The
// scanner stands at the member's value, which member has to consume; the key is
// valid during the call. If member returns false the walk ends there.
func (s *scanner) object(member func(key []byte) bool) {
	if s.null() {
		return
	}
	if s.peek() != '{' {
		s.fail("an object")
		return
	}
	s.pos++
	if s.peek() == '}' {
		s.pos++
		return
	}
	for s.err == nil {
		key := s.key()
		if s.err != nil || !member(key) || !s.next('}') {
			return
		}
	}
}

// array calls element for each element of an array, or never for a null.
// element has to consume it.
func (s *scanner) array(element func()) {
	if s.null() {
		return
	}
	if s.peek() != '[' {
		s.fail("an array")
		return
	}
	s.pos++
	if s.peek() == ']' {
		s.pos++
		return
	}
	for s.err == nil {
		element()
		if !s.next(']') {
			return
		}
	}
}

// next consumes a comma and returns true, or the closing bracket.
func (s *scanner) next(closing byte) bool {
	switch s.peek() {
	case ',':
		s.pos++
		return true
	case closing:
		s.pos++
	default:
		s.fail("a comma or " + string(closing))
	}
	return false
}

func (s *scanner) key() []byte {
	if s.peek() != '"' {
		s.fail("a member's name")
		return nil
	}
	raw, escaped := s.raw()
	if s.peek() != ':' {
		s.fail("a colon")
		return nil
	}
	s.pos++
	if escaped {
		return []byte(s.unquote(raw))
	}
	return raw[1 : len(raw)-1]
}

// raw consumes a string and returns it with its quotes. The scanner stands at
// the opening one. With escaped it takes unquote to read it.
func (s *scanner) raw() (quoted []byte, escaped bool) {
	start := s.pos
	if !s.skipString() {
		return []byte(`""`), false
	}
	quoted = s.text[start:s.pos]
	return quoted, bytes.IndexByte(quoted, '\\') >= 0 || !utf8.Valid(quoted)
}

// skipString consumes a string and reports whether it has an end.
func (s *scanner) skipString() bool {
	start := s.pos + 1
	for i := start; ; {
		n := bytes.IndexByte(s.text[i:], '"')
		if n < 0 {
			s.fail("the end of a string")
			return false
		}
		i += n + 1
		if backslashes(s.text[start:i-1])%2 == 0 {
			s.pos = i
			return true
		}
	}
}

// backslashes counts those at the end of b.
func backslashes(b []byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}

func (s *scanner) unquote(quoted []byte) string {
	var v string
	if err := json.Unmarshal(quoted, &v); err != nil {
		s.fail("a valid string")
	}
	return v
}

// str consumes a string and returns a copy; "" for a null.
func (s *scanner) str() string {
	if s.null() {
		return ""
	}
	if s.peek() != '"' {
		s.fail("a string")
		return ""
	}
	raw, escaped := s.raw()
	if escaped {
		return s.unquote(raw)
	}
	return string(raw[1 : len(raw)-1])
}

// is consumes a string and reports whether it is v, without copying it.
func (s *scanner) is(v string) bool {
	if s.peek() != '"' {
		return s.str() == v
	}
	raw, escaped := s.raw()
	if escaped {
		return s.unquote(raw) == v
	}
	return string(raw[1:len(raw)-1]) == v
}

// boolean consumes true, false or null.
func (s *scanner) boolean() bool {
	switch v := s.literal(); string(v) {
	case "true":
		return true
	case "false", "null":
	default:
		s.fail("true or false")
	}
	return false
}

// integer consumes an integer; ok is false for a null.
func (s *scanner) integer() (v int64, ok bool) {
	if s.null() {
		return 0, false
	}
	v, err := strconv.ParseInt(string(s.literal()), 10, 64)
	if err != nil {
		s.fail("an integer")
	}
	return v, err == nil
}

// literal consumes a number, true, false or null.
func (s *scanner) literal() []byte {
	s.peek()
	start := s.pos
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return s.text[start:s.pos]
		}
		s.pos++
	}
	return s.text[start:s.pos]
}

// skip consumes any value. It keeps a count instead of a stack, so no depth of
// nesting can hurt.
func (s *scanner) skip() {
	depth := 0
	for {
		switch s.peek() {
		case 0:
			s.fail("a value")
			return
		case '"':
			s.skipString()
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case ',', ':':
			if depth == 0 {
				s.fail("a value")
				return
			}
			s.pos++
		default:
			s.literal()
		}
		if depth <= 0 || s.err != nil {
			if depth < 0 {
				s.fail("a value")
			}
			return
		}
	}
}

// strings consumes an object of strings and returns those that keep lets pass.
func (s *scanner) strings(keep func(key string) bool) map[string]string {
	var m map[string]string
	s.object(func(key []byte) bool {
		k := string(key)
		if keep != nil && !keep(k) {
			s.skip()
			return true
		}
		if m == nil {
			m = make(map[string]string, 8)
		}
		m[k] = s.str()
		return true
	})
	return m
}
