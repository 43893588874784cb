package eventpattern

// numeric is a range of numbers, either end open or closed or missing.
type numeric struct {
	low, high         float64
	hasLow, hasHigh   bool
	openLow, openHigh bool
}

func (t numeric) passes(f *field) bool {
	if f.kind != kindNumber || !f.num.exact {
		return false
	}
	v := f.num.value
	if t.hasLow && (v < t.low || t.openLow && v == t.low) {
		return false
	}
	return !t.hasHigh || v < t.high || !t.openHigh && v == t.high
}

// numeric reads one comparison, or a lower bound and an upper one.
func (p *parser) numeric() (test, error) {
	k, err := p.peek()
	if err != nil {
		return nil, err
	}
	if k != kindArray {
		return nil, p.fail("%s where an array belongs, as in [\">\",0,\"<=\",5]", k)
	}
	p.i++ // the bracket
	more, err := p.element(true)
	if err != nil {
		return nil, err
	}
	if !more {
		return nil, p.fail("an empty array where a comparison belongs, as in [\">\",0,\"<=\",5]")
	}
	comparison, v, err := p.comparison()
	if err != nil {
		return nil, err
	}
	t := numeric{low: v, high: v}
	switch comparison {
	case "=":
		t.hasLow, t.hasHigh = true, true
	case "<", "<=":
		t.hasHigh, t.openHigh = true, comparison == "<"
	default:
		t.hasLow, t.openLow = true, comparison == ">"
	}
	if more, err = p.element(false); err != nil || !more {
		return t, err
	}
	if t.hasHigh {
		return nil, p.fail("a second comparison after %s: only a lower bound takes one, as in [\">\",0,\"<=\",5]", comparison)
	}
	return p.upper(t)
}

// upper reads the upper bound that follows a lower one.
func (p *parser) upper(t numeric) (test, error) {
	comparison, v, err := p.comparison()
	if err != nil {
		return nil, err
	}
	if comparison != "<" && comparison != "<=" {
		return nil, p.fail("%s after a lower bound: the second comparison is < or <=", comparison)
	}
	if v <= t.low {
		return nil, p.fail("an upper bound of %v that is not above the lower one of %v", v, t.low)
	}
	t.high, t.hasHigh, t.openHigh = v, true, comparison == "<"
	more, err := p.element(false)
	if err == nil && more {
		return nil, p.fail("more than a lower and an upper bound")
	}
	return t, err
}

func (p *parser) comparison() (string, float64, error) {
	k, err := p.peek()
	if err != nil {
		return "", 0, err
	}
	if k != kindString {
		return "", 0, p.fail("%s where a comparison belongs: one of = < <= > >=", k)
	}
	comparison, err := p.text()
	if err != nil {
		return "", 0, err
	}
	switch comparison {
	case "=", "<", "<=", ">", ">=":
	default:
		return "", 0, p.fail("%q is no comparison: use one of = < <= > >=", clip(comparison))
	}
	more, err := p.element(false)
	if err != nil {
		return "", 0, err
	}
	if !more {
		return "", 0, p.fail("no number after %s", comparison)
	}
	v, err := p.numberOperand()
	return comparison, v, err
}

func (p *parser) numberOperand() (float64, error) {
	k, err := p.peek()
	if err != nil {
		return 0, err
	}
	if k != kindNumber {
		return 0, p.fail("%s where a number belongs", k)
	}
	text, err := p.number()
	if err != nil {
		return 0, err
	}
	n := parseNumber(text)
	if !n.exact {
		return 0, p.fail(notExact, clip(text))
	}
	return n.value, nil
}
