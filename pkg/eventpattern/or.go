package eventpattern

import (
	"slices"
	"strings"
)

const orKey = "$or"

// A choice is which of the objects of a $or a branch takes.
type choice struct {
	before *choice // that of the $or before or around it
	path   string  // of the $or
	index  int
}

// isReservedInOr reports whether a key inside $or would be taken for an operator,
// one of today or one that the service keeps for later.
func isReservedInOr(key string) bool {
	switch key {
	case "=", "<", "<=", ">", ">=",
		"regex", "not-wildcard", "not-equals-ignore-case",
		"date-after", "date-on-or-after", "date-before", "date-on-or-before", "in-date-range",
		"ip-address-in-range", "ip-address-not-in-range":
		return true
	}
	return isOperator(key)
}

// or reads the array of $or: each of its objects continues a copy of every draft.
func (p *parser) or(drafts []draft) ([]draft, error) {
	p.operator = orKey
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	if k != kindArray {
		return nil, p.fail("%s where an array of two or more objects belongs", k)
	}
	p.i++ // the bracket
	var all []draft
	n := 0
	for ; ; n++ {
		more, err := p.element(n == 0)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		branch, err := p.orBranch(drafts, n)
		if err != nil {
			return nil, err
		}
		if len(all)+len(branch) > MaxCombinations {
			return nil, p.fail("the $or lists make more than %d combinations: split the rule, or list values of one field in its array", MaxCombinations)
		}
		all = append(all, branch...)
	}
	if n < 2 {
		return nil, p.fail("an array of %d where two or more objects belong", n)
	}
	p.operator = ""
	return all, nil
}

// orBranch reads the object of that index.
func (p *parser) orBranch(drafts []draft, index int) ([]draft, error) {
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	if k != kindObject {
		return nil, p.fail("%s where an object of fields belongs", k)
	}
	branch := make([]draft, len(drafts))
	path := strings.Join(append(slices.Clone(p.keys), orKey), ".")
	for i, d := range drafts {
		branch[i] = draft{slices.Clone(d.conditions), &choice{d.choice, path, index}}
	}
	p.operator = ""
	depth := len(p.keys)
	branch, err = p.object(branch, true)
	if err == nil || p.operator == "" && len(p.keys) == depth { // no field of the object is at fault
		p.operator = orKey
	}
	return branch, err
}
