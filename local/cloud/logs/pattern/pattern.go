// Package pattern matches log events with CloudWatch Logs' filter patterns:
// terms ("ERROR", "\"targets changed\"", "-term", "?term") and JSON selectors
// ({ $.detail.id = "10.0.0.1" && $.source != "x*" }). Space-delimited patterns
// and regular expressions are refused, as nothing here needs them.
package pattern

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MaxLength is the longest pattern, in characters (API model).
const MaxLength = 1024

// Pattern is a parsed filter pattern.
type Pattern struct {
	all, none, any []string // terms: every one, not one, one at least
	json           expr     // nil for terms
}

// Parse reads a filter pattern. An empty one matches everything.
func Parse(text string) (*Pattern, error) {
	if n := len([]rune(text)); n > MaxLength {
		return nil, fmt.Errorf("filter pattern has %d characters: want at most %d", n, MaxLength)
	}
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "{"):
		e, err := parseJSON(text)
		return &Pattern{json: e}, err
	case strings.HasPrefix(text, "[") || strings.HasPrefix(text, "%"):
		return nil, fmt.Errorf("filter pattern %q: the local cloud has terms and JSON patterns only", text)
	}
	return parseTerms(text)
}

// Match says whether a log event's message matches.
func (p *Pattern) Match(message string) bool {
	if p.json != nil {
		return matchJSON(p.json, message)
	}
	has := func(term string) bool { return strings.Contains(message, term) }
	if slices.ContainsFunc(p.none, has) {
		return false
	}
	if len(p.all)+len(p.none) > 0 { // beside other terms, those with ? count for nothing
		return !slices.ContainsFunc(p.all, func(term string) bool { return !has(term) })
	}
	return len(p.any) == 0 || slices.ContainsFunc(p.any, has)
}

func parseTerms(text string) (*Pattern, error) {
	p := &Pattern{}
	for text != "" {
		to := &p.all
		switch text[0] {
		case '-':
			to, text = &p.none, text[1:]
		case '?':
			to, text = &p.any, text[1:]
		}
		term, rest, err := term(strings.TrimLeft(text, " "))
		if err != nil {
			return nil, err
		}
		*to = append(*to, term)
		text = strings.TrimLeft(rest, " ")
	}
	return p, nil
}

// term takes the first term off a text.
func term(text string) (term, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		return quoted(text)
	}
	term, rest, _ = strings.Cut(text, " ")
	if term == "" || strings.ContainsFunc(term, func(r rune) bool { return !wordRune(r) }) {
		return "", "", fmt.Errorf("invalid character(s) in term '%s': want it in double quotes", term)
	}
	return term, rest, nil
}

// quoted takes a string in double quotes off a text; \" and \\ stand for
// themselves.
func quoted(text string) (value, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		case c == '"':
			return b.String(), text[i+1:], nil
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("filter pattern: %s has no closing quote", text)
}

func wordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

func matchJSON(e expr, message string) bool {
	d := json.NewDecoder(strings.NewReader(message))
	d.UseNumber()
	var doc any
	return d.Decode(&doc) == nil && e.holds(doc)
}
