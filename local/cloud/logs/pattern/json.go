package pattern

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// expr is a condition on a JSON document.
type expr interface{ holds(doc any) bool }

type (
	and []expr
	or  []expr
)

func (a and) holds(doc any) bool {
	return !slices.ContainsFunc(a, func(e expr) bool { return !e.holds(doc) })
}

func (o or) holds(doc any) bool {
	return slices.ContainsFunc(o, func(e expr) bool { return e.holds(doc) })
}

// comparison is a selector, an operator and a value.
type comparison struct {
	path     []any // string: property, int: element of an array
	operator string
	value    string
	number   float64
	numeric  bool // the value is a number, not in quotes
}

// holds is false where the selector finds nothing, an array or an object: the
// event's format is another one than the pattern's then.
func (c comparison) holds(doc any) bool {
	v, found := find(doc, c.path)
	switch c.operator {
	case "NOT EXISTS":
		return !found
	case "IS NULL":
		return found && v == nil
	case "IS TRUE":
		return v == true
	case "IS FALSE":
		return v == false
	}
	switch v := v.(type) {
	case json.Number:
		if c.numeric {
			n, err := v.Float64()
			return err == nil && c.ordered(n)
		}
		return c.text(v.String())
	case string:
		return c.text(v)
	}
	return false
}

func (c comparison) ordered(n float64) bool {
	switch c.operator {
	case "=":
		return n == c.number
	case "!=":
		return n != c.number
	case "<":
		return n < c.number
	case "<=":
		return n <= c.number
	case ">":
		return n > c.number
	}
	return n >= c.number
}

// text compares strings; a * at an end of the value stands for anything, one
// amid it for itself.
func (c comparison) text(s string) bool {
	core, before := strings.CutPrefix(c.value, "*")
	core, after := strings.CutSuffix(core, "*")
	equal := s == c.value
	switch {
	case before && after:
		equal = strings.Contains(s, core)
	case before:
		equal = c.value == "*" || strings.HasSuffix(s, core)
	case after:
		equal = strings.HasPrefix(s, core)
	}
	return c.operator == "=" && equal || c.operator == "!=" && !equal
}

func find(v any, path []any) (any, bool) {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			next, ok := object[step]
			if !ok {
				return nil, false
			}
			v = next
		case int:
			array, _ := v.([]any)
			if step >= len(array) {
				return nil, false
			}
			v = array[step]
		}
	}
	return v, true
}

// parser reads what is left of a pattern.
type parser struct{ rest string }

func parseJSON(text string) (expr, error) {
	p := &parser{rest: strings.TrimPrefix(text, "{")}
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if !p.take("}") || p.space() != "" {
		return nil, p.fault("the closing brace at the end")
	}
	return e, nil
}

func (p *parser) space() string {
	p.rest = strings.TrimLeft(p.rest, " \t\n")
	return p.rest
}

// take takes a token off, if it comes next.
func (p *parser) take(token string) bool {
	rest, ok := strings.CutPrefix(p.space(), token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) fault(want string) error {
	return fmt.Errorf("invalid filter pattern: want %s at %q", want, p.rest)
}

func (p *parser) or() (expr, error) {
	return p.list("||", p.and, func(all []expr) expr { return or(all) })
}
func (p *parser) and() (expr, error) {
	return p.list("&&", p.one, func(all []expr) expr { return and(all) })
}

func (p *parser) list(separator string, one func() (expr, error), join func([]expr) expr) (expr, error) {
	var all []expr
	for {
		e, err := one()
		if err != nil {
			return nil, err
		}
		if all = append(all, e); !p.take(separator) {
			return join(all), nil
		}
	}
}

func (p *parser) one() (expr, error) {
	if !p.take("(") {
		return p.comparison()
	}
	e, err := p.or()
	if err == nil && !p.take(")") {
		err = p.fault("a closing parenthesis")
	}
	return e, err
}

// operators with those first that begin like another one.
var operators = []string{"!=", "<=", ">=", "=", "<", ">", "NOT EXISTS", "IS NULL", "IS TRUE", "IS FALSE"}

func (p *parser) comparison() (expr, error) {
	c := comparison{}
	var err error
	if c.path, err = p.selector(); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(operators, p.take)
	if i < 0 {
		return nil, p.fault("one of " + strings.Join(operators, ", "))
	}
	c.operator = operators[i]
	if strings.Contains(c.operator, " ") { // it has no value
		return c, nil
	}
	if strings.HasPrefix(p.space(), `"`) {
		c.value, p.rest, err = quoted(p.rest)
	} else {
		c.value, err = p.word(func(r rune) bool { return wordRune(r) || strings.ContainsRune(".*+-", r) }, "a value, in quotes unless it is alphanumeric")
		var notNumber error
		c.number, notNumber = strconv.ParseFloat(c.value, 64)
		c.numeric = notNumber == nil
	}
	if err == nil && !c.numeric && c.operator != "=" && c.operator != "!=" {
		err = p.fault("a number after " + c.operator)
	}
	return c, err
}

// selector reads $.a.b-c[0].d.
func (p *parser) selector() ([]any, error) {
	if !p.take("$") {
		return nil, p.fault("a selector such as $.detail.id")
	}
	var path []any
	for {
		if rest, ok := strings.CutPrefix(p.rest, "."); ok {
			p.rest = rest
			name, err := p.word(func(r rune) bool { return wordRune(r) || r == '-' }, "a property's name")
			if err != nil {
				return nil, err
			}
			path = append(path, name)
			continue
		}
		index, rest, ok := strings.Cut(strings.TrimPrefix(p.rest, "["), "]")
		if !strings.HasPrefix(p.rest, "[") {
			break
		}
		n, err := strconv.Atoi(index)
		if !ok || err != nil || n < 0 {
			return nil, p.fault("the number of an element")
		}
		path, p.rest = append(path, n), rest
	}
	if len(path) == 0 {
		return nil, p.fault("a property")
	}
	return path, nil
}

func (p *parser) word(in func(rune) bool, want string) (string, error) {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !in(r) })
	if end < 0 {
		end = len(p.rest)
	}
	if end == 0 {
		return "", p.fault(want)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word, nil
}
