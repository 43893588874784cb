package eventpattern

// Matches reports whether the event matches.
func (p *Pattern) Matches(e *Event) bool {
	for i := range p.branches {
		if p.branches[i].matches(e, nil) {
			return true
		}
	}
	return false
}

// outcome is what a condition finds in an event when it is looked at alone.
type outcome uint8

const (
	// free: a value outside every array of objects passes, or none is there and
	// none may be. It puts no bounds on other conditions.
	free outcome = 1 << iota
	// bound: a value inside an array element passes. Other conditions under that
	// array must hold for the same element.
	bound
	// contested: the path must be absent, and has values, all in array elements:
	// it is absent where other conditions chose other elements.
	contested
)

// alone looks at one condition without the others.
func (c *condition) alone(e *Event) outcome {
	i := e.first(c.path, c.hash)
	if i == none {
		if c.absent {
			return free
		}
		return 0
	}
	var o outcome
	if c.absent {
		o = contested
	}
	for ; i != none; i = e.after(i, c.path, c.hash) {
		f := &e.fields[i]
		if f.element == none {
			o &^= contested
		}
		if !c.passes(f) {
			continue
		}
		if f.element == none {
			o |= free
			if !c.absent {
				return o // a free value is at least as good as a bound one …
			}
		} else {
			o |= bound
		}
	}
	return o
}

func (c *condition) passes(f *field) bool {
	for _, t := range c.tests {
		if t.passes(f) {
			return true
		}
	}
	return false
}

// matches decides about a branch. m remembers outcomes within a set; it may be nil.
func (b *branch) matches(e *Event, m *memo) bool {
	var buffer [16]*condition
	open := buffer[:0] // conditions whose outcome depends on others
	anyContested := false
	for k, c := range b.conditions {
		var o outcome
		if m != nil {
			o = m.alone(e, c, b.numbers[k])
		} else {
			o = c.alone(e)
		}
		switch {
		case o == 0:
			return false
		case o&contested != 0:
			anyContested = true
			open = append(open, c)
		case o&free == 0:
			open = append(open, c)
		}
	}
	if anyContested { // … but for a path that must be absent, where choosing an element can help
		return searchContested(e, b.conditions)
	}
	return len(open) < 2 || joinable(e, open)
}
