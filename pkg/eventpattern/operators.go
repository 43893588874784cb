package eventpattern

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/internal/nearest"
)

// operators in the order in which an error lists them.
var operators = []string{
	"prefix", "suffix", "equals-ignore-case", "wildcard", "anything-but",
	"numeric", "cidr", "exists", "exactly",
}

func isOperator(name string) bool { return slices.Contains(operators, name) }

// unknown is the error for a name that is none of the known ones.
func (p *parser) unknown(what, name string, known []string) error {
	hint := ""
	if word := nearest.Word(name, known); word != "" {
		hint = fmt.Sprintf(", did you mean %s", word)
	}
	return p.fail("unknown %s %q%s: known are %s", what, clip(name), hint, strings.Join(known, ", "))
}

// expression reads an operator's object at the next byte: one key, one operand.
func (p *parser) expression(c *condition, plain *exactStrings) error {
	name, err := p.open("an operator")
	if err != nil {
		return err
	}
	if !isOperator(name) {
		return p.unknown("operator", name, operators)
	}
	p.operator = name
	if name == "exists" || name == "exactly" {
		err = p.plainOperator(name, c, plain)
	} else {
		var t test
		if t, err = p.operand(name); err == nil {
			c.tests = append(c.tests, t)
		}
	}
	if err != nil {
		return err
	}
	if err := p.close(name); err != nil {
		return err
	}
	p.operator = ""
	return nil
}

// plainOperator reads the two operators that are no test of their own.
func (p *parser) plainOperator(name string, c *condition, plain *exactStrings) error {
	if name == "exists" {
		return p.exists(c)
	}
	text, err := p.stringOperand()
	if err == nil {
		plain.values = append(plain.values, text)
	}
	return err
}

func (p *parser) operand(name string) (test, error) {
	switch name {
	case "prefix":
		return p.prefix()
	case "suffix":
		return p.suffix()
	case "equals-ignore-case":
		text, err := p.stringOperand()
		return ignoreCase{foldText(text)}, err
	case "wildcard":
		return p.wildcard()
	case "anything-but":
		return p.anythingBut()
	case "numeric":
		return p.numeric()
	default: // cidr
		return p.cidr()
	}
}

// open reads an opening brace and the one key behind it.
func (p *parser) open(what string) (string, error) {
	p.i++ // the brace
	name, more, err := p.member(true)
	if err == nil && !more {
		p.i--
		return "", p.fail("an empty object where %s belongs, as in {\"prefix\":\"a\"}", what)
	}
	return name, err
}

// close reads the closing brace after the operand.
func (p *parser) close(name string) error {
	_, more, err := p.member(false)
	if err == nil && more {
		return p.fail("a second key beside %s: one operator an object, alternatives are objects of their own", name)
	}
	return err
}

// stringOperand reads an operand that must be a string.
func (p *parser) stringOperand() (string, error) {
	k, err := p.peek()
	if err != nil {
		return "", err
	}
	if k != kindString {
		return "", p.fail("%s where a string belongs", k)
	}
	return p.text()
}

// strings reads a string or a non-empty list of strings, and hands each to add.
func (p *parser) strings(add func(string) error) error {
	k, err := p.peek()
	if err != nil {
		return err
	}
	if k == kindString {
		text, err := p.text()
		if err != nil {
			return err
		}
		return add(text)
	}
	if k != kindArray {
		return p.fail("%s where a string or a list of strings belongs", k)
	}
	p.i++ // the bracket
	for first := true; ; first = false {
		more, err := p.element(first)
		if err != nil {
			return err
		}
		if !more {
			if first {
				return p.fail("an empty list excludes nothing: give at least one string")
			}
			return nil
		}
		text, err := p.stringOperand()
		if err != nil {
			return err
		}
		if err := add(text); err != nil {
			return err
		}
	}
}
