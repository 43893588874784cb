package eventpattern

import "slices"

// exactStrings is the list of plain strings of a condition: equal, byte for byte.
type exactStrings struct {
	values []string
	index  map[string]struct{} // for long lists
}

// manyStrings is the length from which a list is looked up in a map.
const manyStrings = 8

func (t *exactStrings) compiled() *exactStrings {
	slices.Sort(t.values)
	t.values = slices.Compact(t.values)
	if len(t.values) >= manyStrings {
		t.index = make(map[string]struct{}, len(t.values))
		for _, v := range t.values {
			t.index[v] = struct{}{}
		}
	}
	return t
}

func (t *exactStrings) passes(f *field) bool {
	if f.kind != kindString {
		return false
	}
	if t.index != nil {
		_, ok := t.index[f.text]
		return ok
	}
	return slices.Contains(t.values, f.text)
}

// exactLiteral is true, false or null.
type exactLiteral struct{ kind kind }

func (t exactLiteral) passes(f *field) bool { return f.kind == t.kind }

// exactNumber is a plain number: equal by value where it is the short decimal
// form of a double, else only in the same spelling.
type exactNumber struct {
	text string
	num  number
}

func (t exactNumber) passes(f *field) bool {
	if f.kind != kindNumber {
		return false
	}
	return t.num.exact && f.num.exact && t.num.value == f.num.value || t.text == f.text
}

// addExact adds a plain value to a condition.
func addExact(c *condition, plain *exactStrings, k kind, text string) {
	switch k {
	case kindString:
		if a, ok := parseAddress(text); ok {
			c.tests = append(c.tests, exactAddress{a})
			return
		}
		plain.values = append(plain.values, text)
	case kindNumber:
		c.tests = append(c.tests, exactNumber{text: text, num: parseNumber(text)})
	default:
		c.tests = append(c.tests, exactLiteral{k})
	}
}
