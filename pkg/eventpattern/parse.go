package eventpattern

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parser turns a pattern's text into branches.
type parser struct {
	scanner
	keys      []string       // where in the pattern the parser is
	operator  string         // the operator it is reading, for errors
	paths     []string       // every path that has a condition, in the order of appearance
	pathIndex map[string]int // path -> index in paths
	stars     int            // * in wildcard values so far
}

// draft is a branch while it is read. Within a branch the condition that is
// written last wins.
type draft struct {
	conditions []*condition // one, or nil, for each of parser.paths
	choice     *choice
}

func (p *parser) parse() ([]branch, error) {
	p.pathIndex = map[string]int{}
	drafts, err := p.document()
	if err != nil {
		return nil, p.syntaxError(err)
	}
	return p.finish(drafts), nil
}

func (p *parser) document() ([]draft, error) {
	if n := utf16Length(p.s); n > MaxPatternLength {
		p.i = len(p.s)
		return nil, p.fail("the pattern has %d characters, %d is the most", n, MaxPatternLength)
	}
	if !utf8.ValidString(p.s) {
		p.i = len(p.s) - len(strings.TrimLeftFunc(p.s, func(r rune) bool { return r != utf8.RuneError }))
		return nil, p.fail("the pattern is not valid UTF-8")
	}
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	if k != kindObject {
		return nil, p.fail("%s where the pattern's object belongs, as in {\"source\":[\"elbridge\"]}", k)
	}
	return p.object([]draft{{}}, false)
}

// syntaxError adds to an error where in the pattern the parser was.
func (p *parser) syntaxError(err error) error {
	e := &SyntaxError{Path: strings.Join(p.keys, "."), Operator: p.operator, Reason: err.Error(), Offset: p.i}
	if j, ok := errors.AsType[*jsonError](err); ok {
		e.Reason, e.Offset = j.reason, j.offset
	}
	return e
}

// object reads the object at the next byte into every draft. insideOr forbids
// the names of operators as keys.
func (p *parser) object(drafts []draft, insideOr bool) ([]draft, error) {
	p.i++ // the brace
	for first := true; ; first = false {
		start := p.i
		key, more, err := p.member(first)
		if err != nil {
			return nil, err
		}
		if !more {
			if first {
				p.i = start
				return nil, p.fail("an empty object says nothing: give it fields, as in {\"cluster\":[\"prod\"]}, or leave it out")
			}
			return drafts, nil
		}
		switch {
		case key == orKey:
			drafts, err = p.or(drafts)
		case insideOr && isReservedInOr(key):
			p.keys = append(p.keys, key)
			return nil, p.fail("%q cannot be the name of a field inside $or", clip(key))
		default:
			drafts, err = p.field(drafts, key, insideOr)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) field(drafts []draft, key string, insideOr bool) ([]draft, error) {
	p.keys = append(p.keys, key)
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	switch k {
	case kindObject:
		drafts, err = p.object(drafts, insideOr)
	case kindArray:
		var c *condition
		if c, err = p.condition(); err == nil {
			drafts = p.set(drafts, c)
		}
	default:
		hint := "the values belong in an array, as in [\"blue\"]"
		if isOperator(key) {
			hint = fmt.Sprintf("an operator belongs in an object in an array, as in [{%q:…}]", key)
		}
		return nil, p.fail("%s where an array of values or an object of fields belongs: %s", k, hint)
	}
	if err != nil {
		return nil, err
	}
	p.keys = p.keys[:len(p.keys)-1]
	return drafts, nil
}

// set puts a condition into every draft, in the place of an earlier one for the
// same path.
func (p *parser) set(drafts []draft, c *condition) []draft {
	i, ok := p.pathIndex[c.path]
	if !ok {
		i = len(p.paths)
		p.paths = append(p.paths, c.path)
		p.pathIndex[c.path] = i
	}
	for j := range drafts {
		d := &drafts[j]
		for len(d.conditions) <= i {
			d.conditions = append(d.conditions, nil)
		}
		d.conditions[i] = c
	}
	return drafts
}

// condition reads the array of alternatives at the next byte.
func (p *parser) condition() (*condition, error) {
	start := p.i
	p.i++ // the bracket
	path := strings.Join(p.keys, ".")
	c := &condition{path: path, hash: hashPath(path), offset: start}
	var plain exactStrings
	for first := true; ; first = false {
		more, err := p.element(first)
		if err != nil {
			return nil, err
		}
		if !more {
			if first {
				p.i = start
				return nil, p.fail("an empty array matches nothing: give at least one value")
			}
			break
		}
		if err := p.alternative(c, &plain); err != nil {
			return nil, err
		}
	}
	c.source = p.s[start:p.i]
	if len(plain.values) > 0 {
		c.tests = append([]test{plain.compiled()}, c.tests...)
	}
	return c, nil
}

func (p *parser) alternative(c *condition, plain *exactStrings) error {
	k, err := p.peek()
	if err != nil {
		return err
	}
	switch k {
	case kindObject:
		return p.expression(c, plain)
	case kindString, kindNumber, kindTrue, kindFalse, kindNull:
		text, err := p.scalar(k)
		if err != nil {
			return err
		}
		addExact(c, plain, k, text)
		return nil
	}
	return p.fail("%s where a string, a number, true, false, null or an operator's object belongs", k)
}

// finish sorts the conditions of each branch by path: the order decides what
// {"exists": false} is checked against inside arrays.
func (p *parser) finish(drafts []draft) []branch {
	order := make([]int, len(p.paths))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return comparePaths(p.paths[a], p.paths[b]) })
	branches := make([]branch, len(drafts))
	for i, d := range drafts {
		branches[i].choice = d.choice
		for _, j := range order {
			if j < len(d.conditions) && d.conditions[j] != nil {
				branches[i].conditions = append(branches[i].conditions, d.conditions[j])
			}
		}
	}
	return branches
}

// comparePaths orders paths by their UTF-16 code units, as the service's matcher does.
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			if (ra > 0xffff) != (rb > 0xffff) { // a surrogate sorts before U+E000
				return slices.Compare(utf16.Encode([]rune{ra}), utf16.Encode([]rune{rb}))
			}
			return cmp.Compare(ra, rb)
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		if r > 0xffff {
			n++
		}
		n++
	}
	return n
}
