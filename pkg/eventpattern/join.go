package eventpattern

import (
	"maps"
	"slices"
)

// Array consistency: every condition chooses a value that passes, and all values
// that lie under one array must lie in the same element of it.

// maxAlternatives bounds the incomparable partial choices that are kept for one
// array element. Events whose paths each belong to one array, as those of pods
// do, have one at most. An event built to exceed the bound does not match.
const maxAlternatives = 256

// joinable reports whether values can be chosen for all conditions, each of which
// has some, all in array elements.
func joinable(e *Event, conditions []*condition) bool {
	if len(conditions) > 64 {
		return searchContested(e, conditions)
	}
	j := joiner{event: e, satisfied: map[int32]uint64{}, needed: map[int32]uint64{}}
	for bit, c := range conditions {
		j.add(c, uint64(1)<<bit)
	}
	return j.solve(^uint64(0) >> (64 - len(conditions)))
}

// joiner works through the array elements from the innermost out. A set of
// conditions is a mask with a bit for each.
type joiner struct {
	event     *Event
	satisfied map[int32]uint64 // element -> conditions with a passing value right in it
	needed    map[int32]uint64 // array -> conditions that have passing values under it only
}

func (j *joiner) add(c *condition, bit uint64) {
	e := j.event
	home := none // an element of the innermost array that all passing values lie in …
	first := true
	for i := e.first(c.path, c.hash); i != none; i = e.after(i, c.path, c.hash) {
		f := &e.fields[i]
		if !c.passes(f) {
			continue
		}
		for x := f.element; x != none; x = e.elements[x].parent {
			if _, ok := j.satisfied[x]; ok {
				break // and so are those around it
			}
			j.satisfied[x] = 0
		}
		j.satisfied[f.element] |= bit
		if first {
			home, first = f.element, false
		} else {
			home = e.common(home, f.element)
		}
	}
	for ; home != none; home = e.elements[home].parent { // … and of those around it
		j.needed[e.elements[home].array] |= bit
	}
}

// common returns an element of the innermost array that holds both, or none.
func (e *Event) common(x, y int32) int32 {
	for x != none && y != none {
		a, b := &e.elements[x], &e.elements[y]
		if a.array == b.array {
			return x
		}
		if a.depth >= b.depth {
			x = a.parent
		}
		if b.depth >= a.depth {
			y = b.parent
		}
	}
	return none
}

func (j *joiner) solve(all uint64) bool {
	e := j.event
	order := slices.Sorted(maps.Keys(j.satisfied))
	slices.Reverse(order)           // an element's number is above its parent's
	choices := map[int32][]uint64{} // array -> what choosing one of its elements can satisfy
	arraysIn := map[int32][]int32{} // element, or none -> arrays right in it
	for _, x := range order {
		masks, ok := j.product(j.satisfied[x], arraysIn[x], choices)
		if !ok {
			return false
		}
		el := e.elements[x]
		if _, seen := choices[el.array]; !seen {
			choices[el.array] = nil
			arraysIn[el.parent] = append(arraysIn[el.parent], el.array)
		}
		for _, m := range masks {
			if need := j.needed[el.array]; m&need != need {
				continue
			}
			choices[el.array] = keepMaximal(choices[el.array], m)
		}
	}
	masks, ok := j.product(0, arraysIn[none], choices)
	return ok && slices.Contains(masks, all)
}

// product combines one choice of each array with what is satisfied anyway.
func (j *joiner) product(own uint64, arrays []int32, choices map[int32][]uint64) ([]uint64, bool) {
	masks := []uint64{own}
	for _, a := range arrays {
		if len(choices[a]) == 0 {
			continue // no element helps: choose none
		}
		var next []uint64
		for _, m := range masks {
			for _, c := range choices[a] {
				next = keepMaximal(next, m|c)
			}
		}
		if len(next) > maxAlternatives {
			return nil, false
		}
		masks = next
	}
	return masks, true
}

// keepMaximal adds a mask to a list in which none is part of another.
func keepMaximal(list []uint64, m uint64) []uint64 {
	for _, l := range list {
		if l&m == m {
			return list
		}
	}
	if len(list) > maxAlternatives {
		return list // given up already: product reports it
	}
	list = slices.DeleteFunc(list, func(l uint64) bool { return l&m == l })
	return append(list, m)
}
