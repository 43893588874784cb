package eventpattern

import "strings"

// wildcard is a text in which * stands for any run of characters, none included.
// parts are the literal texts between the stars: one part means no star.
type wildcard struct{ parts []string }

func (t wildcard) passes(f *field) bool { return f.kind == kindString && t.matches(f.text) }

// matches takes each part at its first place: a later one would leave less for
// the rest, so the time is bounded by stars times length.
func (t wildcard) matches(s string) bool {
	first, last := t.parts[0], t.parts[len(t.parts)-1]
	if len(t.parts) == 1 {
		return s == first
	}
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range t.parts[1 : len(t.parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

func (p *parser) wildcard() (test, error) {
	text, err := p.stringOperand()
	if err != nil {
		return nil, err
	}
	return p.compileWildcard(text)
}

// compileWildcard splits a text at its stars. A backslash takes the meaning from
// the star or backslash behind it.
func (p *parser) compileWildcard(text string) (wildcard, error) {
	var t wildcard
	var part strings.Builder
	star := false // the character before was a star
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			if star {
				return t, p.fail("** in %q: one * is any run of characters already", clip(text))
			}
			if p.stars++; p.stars > MaxWildcards {
				return t, p.fail("more than %d * in the pattern: it would cost too much to match, use fewer", MaxWildcards)
			}
			t.parts = append(t.parts, part.String())
			part.Reset()
			star = true
			continue
		case '\\':
			if i++; i == len(text) || text[i] != '*' && text[i] != '\\' {
				return t, p.fail(`a backslash in %q that no * or \ follows: write \\ for the backslash itself`, clip(text))
			}
		}
		part.WriteByte(text[i])
		star = false
	}
	t.parts = append(t.parts, part.String())
	return t, nil
}
