package eventpattern

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is the type of a JSON token or value.
type kind uint8

const (
	kindEnd kind = iota // end of the text
	kindNull
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindObject // an opening brace
	kindArray  // an opening bracket
	kindClose  // a closing brace or bracket
)

// String names a kind as an error would.
func (k kind) String() string {
	return [...]string{"the end of the text", "null", "false", "true", "a number", "a string",
		"an object", "an array", "a closing bracket"}[k]
}

// scanner reads JSON by RFC 8259 from a text that is known to be valid UTF-8,
// and keeps the spelling of numbers. It is strict: what it does not know is an error.
type scanner struct {
	s string
	i int // the next byte
}

// jsonError is text that is not JSON.
type jsonError struct {
	offset int
	reason string
}

func (e *jsonError) Error() string { return fmt.Sprintf("%s (at byte %d)", e.reason, e.offset) }

func (s *scanner) fail(format string, args ...any) error {
	return &jsonError{offset: s.i, reason: fmt.Sprintf(format, args...)}
}

// found names what stands at the next byte.
func (s *scanner) found() string {
	if s.i >= len(s.s) {
		return "the end of the text"
	}
	r, _ := utf8.DecodeRuneInString(s.s[s.i:])
	return fmt.Sprintf("%q", r)
}

func (s *scanner) space() {
	for s.i < len(s.s) && s.s[s.i] <= ' ' {
		switch s.s[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek returns the kind of what comes next, without reading it.
func (s *scanner) peek() (kind, error) {
	s.space()
	if s.i >= len(s.s) {
		return kindEnd, nil
	}
	switch c := s.s[s.i]; {
	case c == '"':
		return kindString, nil
	case c == '{':
		return kindObject, nil
	case c == '[':
		return kindArray, nil
	case c == '}' || c == ']':
		return kindClose, nil
	case c == '-' || '0' <= c && c <= '9':
		return kindNumber, nil
	case c == 't':
		return kindTrue, nil
	case c == 'f':
		return kindFalse, nil
	case c == 'n':
		return kindNull, nil
	}
	return kindEnd, s.fail("%s begins no JSON value", s.found())
}

// scalar reads a value of a kind that peek returned. The text of a string is
// without quotes and escapes, that of the others as spelled.
func (s *scanner) scalar(k kind) (string, error) {
	switch k {
	case kindString:
		return s.text()
	case kindNumber:
		return s.number()
	case kindTrue:
		return s.literal("true")
	case kindFalse:
		return s.literal("false")
	case kindNull:
		return s.literal("null")
	}
	return "", s.fail("%s where a value belongs", k)
}

func (s *scanner) literal(word string) (string, error) {
	if !strings.HasPrefix(s.s[s.i:], word) {
		return "", s.fail("%s begins no JSON value", s.found())
	}
	s.i += len(word)
	return word, nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.s) && '0' <= s.s[s.i] && s.s[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) at(c byte) bool { return s.i < len(s.s) && s.s[s.i] == c }

func (s *scanner) number() (string, error) {
	from := s.i
	if s.at('-') {
		s.i++
	}
	switch {
	case s.at('0'):
		s.i++
		if s.i < len(s.s) && '0' <= s.s[s.i] && s.s[s.i] <= '9' {
			return "", s.fail("a number must not begin with 0 followed by a digit")
		}
	case !s.digits():
		return "", s.fail("%s where a digit belongs", s.found())
	}
	if s.at('.') {
		s.i++
		if !s.digits() {
			return "", s.fail("%s where a digit belongs, after the decimal point", s.found())
		}
	}
	if s.at('e') || s.at('E') {
		s.i++
		if s.at('+') || s.at('-') {
			s.i++
		}
		if !s.digits() {
			return "", s.fail("%s where a digit belongs, in the exponent", s.found())
		}
	}
	return s.s[from:s.i], nil
}

// ends are the bytes that end a string, or the part of it that stands as it is.
var ends = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// text reads a string. Without escapes the result shares the text's memory.
func (s *scanner) text() (string, error) {
	t, from := s.s, s.i+1 // behind the opening quote
	for i := from; i < len(t); i++ {
		if !ends[t[i]] {
			continue
		}
		s.i = i
		if t[i] == '"' {
			s.i++
			return t[from:i], nil
		}
		return s.escaped(from)
	}
	s.i = len(t)
	return "", s.fail("the string has no closing quote")
}

// escaped reads the rest of a string from its first backslash or control character on.
func (s *scanner) escaped(from int) (string, error) {
	out := []byte(s.s[from:s.i])
	for s.i < len(s.s) {
		switch c := s.s[s.i]; {
		case c == '"':
			s.i++
			return string(out), nil
		case c < 0x20:
			return "", s.fail("control character %#02x in a string: write it as \\u%04x", c, c)
		case c == '\\':
			var err error
			if out, err = s.escape(out); err != nil {
				return "", err
			}
		default:
			out = append(out, c)
			s.i++
		}
	}
	return "", s.fail("the string has no closing quote")
}

func (s *scanner) escape(out []byte) ([]byte, error) {
	s.i++ // the backslash
	if s.i >= len(s.s) {
		return nil, s.fail("the string has no closing quote")
	}
	c := s.s[s.i]
	if c == 'u' {
		r, err := s.codeUnits()
		return utf8.AppendRune(out, r), err
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return nil, s.fail(`\%c is no JSON escape: use \" \\ \/ \b \f \n \r \t or \u and four hex digits`, c)
	}
	s.i++
	return append(out, "\"\\/\b\f\n\r\t"[i]), nil
}

// codeUnits reads \uXXXX, and the second half where it is a surrogate. Half a
// pair becomes U+FFFD.
func (s *scanner) codeUnits() (rune, error) {
	first, err := s.hex4()
	if err != nil || !utf16.IsSurrogate(first) {
		return first, err
	}
	if !strings.HasPrefix(s.s[s.i:], `\u`) {
		return utf8.RuneError, nil
	}
	back := s.i
	s.i++
	second, err := s.hex4()
	if err != nil {
		return 0, err
	}
	r := utf16.DecodeRune(first, second)
	if r == utf8.RuneError {
		s.i = back // the second one stands for itself
	}
	return r, nil
}

func (s *scanner) hex4() (rune, error) {
	s.i++ // the u
	if s.i+4 > len(s.s) {
		s.i = len(s.s)
		return 0, s.fail(`\u needs four hex digits`)
	}
	var r rune
	for range 4 {
		digit := strings.IndexByte("0123456789abcdef", s.s[s.i]|0x20)
		if digit < 0 || s.s[s.i] < '0' {
			return 0, s.fail(`%s in \u, which needs four hex digits`, s.found())
		}
		r = r<<4 | rune(digit)
		s.i++
	}
	return r, nil
}

// member steps to the next member of an object, or over its closing brace.
// first is true right after the opening one.
func (s *scanner) member(first bool) (key string, more bool, err error) {
	s.space()
	if s.at('}') && first {
		s.i++
		return "", false, nil
	}
	if !first {
		switch {
		case s.at('}'):
			s.i++
			return "", false, nil
		case s.at(','):
			s.i++
			s.space()
		default:
			return "", false, s.fail("%s where a comma or a closing brace belongs", s.found())
		}
	}
	if !s.at('"') {
		return "", false, s.fail("%s where a key in double quotes belongs", s.found())
	}
	if key, err = s.text(); err != nil {
		return "", false, err
	}
	s.space()
	if !s.at(':') {
		return "", false, s.fail("%s where a colon belongs", s.found())
	}
	s.i++
	return key, true, nil
}

// element steps to the next element of an array, or over its closing bracket.
func (s *scanner) element(first bool) (more bool, err error) {
	s.space()
	switch {
	case s.at(']'):
		s.i++
		return false, nil
	case first:
		return true, nil
	case s.at(','):
		s.i++
		s.space()
		if s.at(']') {
			return false, s.fail("a value belongs after the comma")
		}
		return true, nil
	}
	return false, s.fail("%s where a comma or a closing bracket belongs", s.found())
}
