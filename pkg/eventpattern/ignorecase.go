package eventpattern

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type ignoreCase struct{ text folded }

func (t ignoreCase) passes(f *field) bool {
	return f.kind == kindString && t.text.equals(f.text)
}

// folded is a pattern's text for comparison without regard to case: for each
// character its upper and its lower form, each of which may be several
// characters. The event's text is not folded, so a sharp s in the pattern
// matches SS, and SS in the pattern does not match a sharp s.
type folded []foldedChar

type foldedChar struct{ upper, lower string }

// noForm stands for a character outside the basic plane, which never matches.
const noForm = "\xff"

func foldText(s string) folded {
	out := make(folded, 0, len(s))
	for _, r := range s {
		if r > 0xffff {
			out = append(out, foldedChar{noForm, noForm})
			continue
		}
		out = append(out, foldedChar{upperForm(r), lowerForm(r)})
	}
	return out
}

// cutPrefix returns what follows the text, if s begins with it. No upper form is
// a prefix of the lower one or the other way round, so there is nothing to try twice.
func (t folded) cutPrefix(s string) (rest string, ok bool) {
	for _, c := range t {
		switch {
		case strings.HasPrefix(s, c.lower):
			s = s[len(c.lower):]
		case strings.HasPrefix(s, c.upper):
			s = s[len(c.upper):]
		default:
			return "", false
		}
	}
	return s, true
}

func (t folded) equals(s string) bool {
	rest, ok := t.cutPrefix(s)
	return ok && rest == ""
}

func (t folded) isSuffix(s string) bool {
	for i := len(t) - 1; i >= 0; i-- {
		switch c := t[i]; {
		case strings.HasSuffix(s, c.lower):
			s = s[:len(s)-len(c.lower)]
		case strings.HasSuffix(s, c.upper):
			s = s[:len(s)-len(c.upper)]
		default:
			return false
		}
	}
	return true
}

// key is equal for all texts that the pattern's text matches, see appendFolded.
func (t folded) key() string {
	var out []byte
	for _, c := range t {
		out = appendFolded(out, c.lower)
	}
	return string(out)
}

// appendFolded appends a text in a form that does not depend on case: what it
// makes of the upper and of the lower form of a character is the same.
func appendFolded(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			for _, r := range s[i:] {
				out = appendFoldedRune(out, r)
			}
			return out
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return out
}

// appendFoldedRune goes down, up and down again, as forms have forms of their own.
func appendFoldedRune(out []byte, r rune) []byte {
	for _, l := range lowerForm(r) {
		for _, u := range upperForm(l) {
			out = append(out, lowerForm(u)...)
		}
	}
	return out
}

func lowerForm(r rune) string {
	if r == 'İ' {
		return "i\u0307"
	}
	return string(unicode.ToLower(r))
}

func upperForm(r rune) string {
	if s, ok := longUpper(r); ok {
		return s
	}
	return string(unicode.ToUpper(r))
}

// longUpper is the part of Unicode's SpecialCasing that applies in every
// language: characters whose upper form is more than one character.
func longUpper(r rune) (string, bool) {
	switch {
	case r == 'ß':
		return "SS", true
	case r < 0x149:
		return "", false
	case 0x1f80 <= r && r <= 0x1faf: // Greek with iota subscript or adscript
		base := map[rune]rune{0x1f80: 0x1f08, 0x1f90: 0x1f28, 0x1fa0: 0x1f68}[r&^0xf]
		return string([]rune{base + r&7, 0x399}), true
	}
	s, ok := longUppers[r]
	return s, ok
}

var longUppers = map[rune]string{
	0x0149: "\u02bcN", 0x01f0: "J\u030c", 0x0390: "\u0399\u0308\u0301", 0x03b0: "\u03a5\u0308\u0301",
	0x0587: "\u0535\u0552",
	0x1e96: "H\u0331", 0x1e97: "T\u0308", 0x1e98: "W\u030a", 0x1e99: "Y\u030a", 0x1e9a: "A\u02be",
	0x1f50: "\u03a5\u0313", 0x1f52: "\u03a5\u0313\u0300", 0x1f54: "\u03a5\u0313\u0301", 0x1f56: "\u03a5\u0313\u0342",
	0x1fb2: "\u1fba\u0399", 0x1fb3: "\u0391\u0399", 0x1fb4: "\u0386\u0399", 0x1fb6: "\u0391\u0342",
	0x1fb7: "\u0391\u0342\u0399", 0x1fbc: "\u0391\u0399",
	0x1fc2: "\u1fca\u0399", 0x1fc3: "\u0397\u0399", 0x1fc4: "\u0389\u0399", 0x1fc6: "\u0397\u0342",
	0x1fc7: "\u0397\u0342\u0399", 0x1fcc: "\u0397\u0399",
	0x1fd2: "\u0399\u0308\u0300", 0x1fd3: "\u0399\u0308\u0301", 0x1fd6: "\u0399\u0342", 0x1fd7: "\u0399\u0308\u0342",
	0x1fe2: "\u03a5\u0308\u0300", 0x1fe3: "\u03a5\u0308\u0301", 0x1fe4: "\u03a1\u0313", 0x1fe6: "\u03a5\u0342",
	0x1fe7: "\u03a5\u0308\u0342",
	0x1ff2: "\u1ffa\u0399", 0x1ff3: "\u03a9\u0399", 0x1ff4: "\u038f\u0399", 0x1ff6: "\u03a9\u0342",
	0x1ff7: "\u03a9\u0342\u0399", 0x1ffc: "\u03a9\u0399",
	0xfb00: "FF", 0xfb01: "FI", 0xfb02: "FL", 0xfb03: "FFI", 0xfb04: "FFL", 0xfb05: "ST", 0xfb06: "ST",
	0xfb13: "\u0544\u0546", 0xfb14: "\u0544\u0535", 0xfb15: "\u0544\u053b", 0xfb16: "\u054e\u0546", 0xfb17: "\u0544\u053d",
}
