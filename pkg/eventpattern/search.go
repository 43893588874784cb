package eventpattern

// maxSearchSteps bounds the search below. An event built to exceed it does not match.
const maxSearchSteps = 1 << 20

// searchContested decides the cases in which a path must be absent relative to
// the array elements that other conditions chose. It tries the conditions in the
// order of their paths, as the service's matcher does: so a path that must be
// absent is checked against the elements chosen by paths that sort before it.
func searchContested(e *Event, conditions []*condition) bool {
	s := searcher{event: e, conditions: conditions, chosen: map[int32]int32{}, steps: maxSearchSteps}
	return s.from(0)
}

type searcher struct {
	event      *Event
	conditions []*condition
	chosen     map[int32]int32 // array -> element
	steps      int             // left
}

func (s *searcher) from(k int) bool {
	if k == len(s.conditions) {
		return true
	}
	c := s.conditions[k]
	if c.absent && s.isAbsent(c) && s.from(k+1) {
		return true
	}
	e := s.event
	last, tried := none, false // element of the value tried last: its neighbours lead to the same
	for i := e.first(c.path, c.hash); i != none && s.steps > 0; i = e.after(i, c.path, c.hash) {
		s.steps--
		f := &e.fields[i]
		if tried && f.element == last || !c.passes(f) {
			continue
		}
		last, tried = f.element, true
		added, ok := s.choose(f.element)
		if ok && s.from(k+1) {
			return true
		}
		for _, a := range added {
			delete(s.chosen, a)
		}
	}
	return false
}

// isAbsent reports whether no value at the path lies in the elements chosen so far.
func (s *searcher) isAbsent(c *condition) bool {
	e := s.event
	for i := e.first(c.path, c.hash); i != none; i = e.after(i, c.path, c.hash) {
		if s.steps--; s.steps <= 0 || s.consistent(e.fields[i].element) {
			return false
		}
	}
	return true
}

func (s *searcher) consistent(x int32) bool {
	for ; x != none; x = s.event.elements[x].parent {
		s.steps--
		if y, ok := s.chosen[s.event.elements[x].array]; ok && y != x {
			return false
		}
	}
	return true
}

// choose takes an element and those around it, if none of their arrays has
// another one chosen. It returns the arrays it decided.
func (s *searcher) choose(x int32) (added []int32, ok bool) {
	if !s.consistent(x) {
		return nil, false
	}
	for ; x != none; x = s.event.elements[x].parent {
		a := s.event.elements[x].array
		if _, ok := s.chosen[a]; !ok {
			s.chosen[a] = x
			added = append(added, a)
		}
	}
	return added, true
}
