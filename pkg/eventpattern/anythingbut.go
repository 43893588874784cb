package eventpattern

import "strings"

// The forms of anything-but. Each passes what its counterpart does not, values of
// other types included, but never an absent field.

type notStrings struct{ values *exactStrings }

func (t notStrings) passes(f *field) bool { return !t.values.passes(f) }

type notNumbers struct{ values []number }

func (t notNumbers) passes(f *field) bool {
	if f.kind != kindNumber || !f.num.exact {
		return true
	}
	for _, v := range t.values {
		if v.value == f.num.value {
			return false
		}
	}
	return true
}

type notAny struct{ tests []test }

func (t notAny) passes(f *field) bool {
	for _, u := range t.tests {
		if u.passes(f) {
			return false
		}
	}
	return true
}

func (p *parser) anythingBut() (test, error) {
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	switch k {
	case kindObject:
		return p.anythingButForm()
	case kindArray:
		return p.anythingButList()
	case kindString, kindNumber:
		values := notValues{}
		if err := p.excluded(&values, k); err != nil {
			return nil, err
		}
		return values.test(), nil
	}
	return nil, p.fail("%s where a string, a number, a list of one of them, or an object with one of %s belongs",
		k, strings.Join(anythingButForms, ", "))
}

// notValues gathers what a plain anything-but excludes.
type notValues struct {
	strings exactStrings
	numbers []number
}

func (v *notValues) test() test {
	if len(v.numbers) > 0 {
		return notNumbers{v.numbers}
	}
	return notStrings{v.strings.compiled()}
}

func (p *parser) excluded(v *notValues, k kind) error {
	at := p.i
	text, err := p.scalar(k)
	if err != nil {
		return err
	}
	if k == kindString {
		v.strings.values = append(v.strings.values, text)
		return nil
	}
	n := parseNumber(text)
	if !n.exact {
		p.i = at
		return p.fail(notExact, clip(text))
	}
	v.numbers = append(v.numbers, n)
	return nil
}

func (p *parser) anythingButList() (test, error) {
	p.i++ // the bracket
	var values notValues
	for first := true; ; first = false {
		more, err := p.element(first)
		if err != nil {
			return nil, err
		}
		if !more {
			if first {
				return nil, p.fail("an empty list excludes nothing: give strings or numbers")
			}
			return values.test(), nil
		}
		k, err := p.peek()
		if err != nil {
			return nil, err
		}
		if k != kindString && k != kindNumber {
			return nil, p.fail("%s in the list, which takes strings or numbers", k)
		}
		if err := p.excluded(&values, k); err != nil {
			return nil, err
		}
		if len(values.numbers) > 0 && len(values.strings.values) > 0 {
			return nil, p.fail("strings and numbers in one list: use one kind, or two objects")
		}
	}
}

var anythingButForms = []string{"prefix", "suffix", "equals-ignore-case", "wildcard"}

func (p *parser) anythingButForm() (test, error) {
	form, err := p.open("one of " + strings.Join(anythingButForms, ", "))
	if err != nil {
		return nil, err
	}
	var not notAny
	add := func(text string) error {
		t, err := p.excludedForm(form, text)
		not.tests = append(not.tests, t)
		return err
	}
	switch form {
	case "prefix", "suffix", "equals-ignore-case", "wildcard":
	default:
		return nil, p.unknown("form", form, anythingButForms)
	}
	if err := p.strings(add); err != nil {
		return nil, err
	}
	return not, p.close(form)
}

func (p *parser) excludedForm(form, text string) (test, error) {
	if text == "" && (form == "prefix" || form == "suffix") {
		return nil, p.fail("an empty %s would exclude every string: give at least one character", form)
	}
	switch form {
	case "prefix":
		return prefix{text}, nil
	case "suffix":
		return suffix{text}, nil
	case "equals-ignore-case":
		return ignoreCase{foldText(text)}, nil
	default:
		return p.compileWildcard(text)
	}
}
