package eventpattern

import (
	"cmp"
	"slices"
)

// manyAnchors is the number of paths from which a set is looked up by the event's
// fields, if these are fewer.
const manyAnchors = 16

// addAnchors anchors each branch at one of its conditions, the one that seems to
// set it apart best: it is tried for the events that have a value there which may
// pass. {"exists": false} among the alternatives rules a condition out, as it
// holds without a value.
func (s *Set) addAnchors() {
	full := indexes{} // of all conditions, to choose from
	for i := range s.branches {
		for _, c := range s.branches[i].conditions {
			for _, options := range c.needs() {
				for _, k := range options {
					full.at(c).add(k, int32(i))
				}
			}
		}
	}
	full.close()
	anchors := indexes{}
	for i := range s.branches {
		best := full.mostTelling(s.branches[i].conditions)
		if best == nil {
			s.others = append(s.others, int32(i))
			continue
		}
		for _, options := range best.needs() {
			k, _ := full[best.path].leastCrowded(options)
			anchors.at(best).add(k, int32(i))
		}
	}
	anchors.close()
	for _, x := range anchors {
		x.trim()
		s.anchors = append(s.anchors, x)
	}
	slices.SortFunc(s.anchors, func(a, b *index) int { return cmp.Compare(a.path, b.path) })
	if len(s.anchors) < manyAnchors {
		return
	}
	s.byHash = make(map[uint64]int32, len(s.anchors))
	for i, x := range s.anchors {
		if _, taken := s.byHash[x.hash]; taken { // two paths of one hash
			s.byHash = nil
			return
		}
		s.byHash[x.hash] = int32(i)
	}
}

// indexes are indexes by path.
type indexes map[string]*index

func (n indexes) at(c *condition) *index {
	x, ok := n[c.path]
	if !ok {
		x = &index{path: c.path, hash: c.hash}
		n[c.path] = x
	}
	return x
}

func (n indexes) close() {
	for _, x := range n {
		x.close()
	}
}

// mostTelling returns the condition under whose keys the fewest branches are
// expected, or nil where none has keys.
func (n indexes) mostTelling(conditions []*condition) (best *condition) {
	least := 0
	for _, c := range conditions {
		needs := c.needs()
		if len(needs) == 0 {
			continue
		}
		sum := 0
		for _, options := range needs {
			_, crowd := n[c.path].leastCrowded(options)
			sum += crowd
		}
		if best == nil || sum < least {
			best, least = c, sum
		}
	}
	return best
}

func (x *index) leastCrowded(options []key) (best key, crowd int) {
	for i, k := range options {
		n := x.crowd(k)
		if k.class.isWide() {
			n *= 2 // a plain value that is not there spares even the looking
		}
		if i == 0 || n < crowd {
			best, crowd = k, n
		}
	}
	return best, crowd
}

// needs returns what an index needs to find the condition: of each list one key.
// It is empty where no index can.
func (c *condition) needs() [][]key {
	if c.absent {
		return nil
	}
	var needs [][]key
	exclusions := 0
	for _, t := range c.tests {
		if list, ok := t.(*exactStrings); ok {
			for _, v := range list.values {
				needs = append(needs, []key{{class: byText, text: v}})
			}
			continue
		}
		options := keys(t)
		switch options[0].class {
		case byExclusion, byNumberExclusion:
			exclusions++
		}
		needs = append(needs, options)
	}
	if exclusions > 1 { // what one excludes another may let in
		return [][]key{{{class: byValue}}}
	}
	return needs
}

// trim drops what only estimates need.
func (x *index) trim() {
	if x.numbers != nil {
		x.numbers.lows, x.numbers.highs = nil, nil
	}
	if x.except != nil {
		x.except.strings.by, x.except.numbers.by = nil, nil
	}
}
