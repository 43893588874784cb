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
	full := crowds{indexes: indexes{}, places: map[*condition]*anchorage{}}
	for i := range s.branches {
		for _, c := range s.branches[i].conditions {
			full.add(c, int32(i))
		}
	}
	full.indexes.close()
	anchors := indexes{}
	for i := range s.branches {
		best := full.mostTelling(s.branches[i].conditions)
		if best == nil {
			s.others = append(s.others, int32(i))
			continue
		}
		x := anchors.at(best)
		for _, k := range full.places[best].keys {
			x.add(k, int32(i))
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

// crowds are indexes of all conditions, to choose from.
type crowds struct {
	indexes indexes
	places  map[*condition]*anchorage
}

// An anchorage is how a condition can be indexed.
type anchorage struct {
	needs [][]key
	keys  []key // once chosen: of each of the needs one
	crowd int   // once chosen: branches that are expected under the keys
}

func (n crowds) add(c *condition, branch int32) {
	a, ok := n.places[c]
	if !ok {
		a = &anchorage{needs: c.needs()}
		n.places[c] = a
	}
	for _, options := range a.needs {
		for _, k := range options {
			n.indexes.at(c).add(k, branch)
		}
	}
}

// mostTelling returns the condition under whose keys the fewest branches are
// expected, or nil where none has keys.
func (n crowds) mostTelling(conditions []*condition) (best *condition) {
	for _, c := range conditions {
		a := n.places[c]
		if len(a.needs) == 0 {
			continue
		}
		if a.keys == nil {
			a.choose(n.indexes[c.path])
		}
		if best == nil || a.crowd < n.places[best].crowd {
			best = c
		}
	}
	return best
}

// choose takes of each list of keys the one that the fewest branches share.
func (a *anchorage) choose(x *index) {
	for _, options := range a.needs {
		var best key
		least := 0
		for i, k := range options {
			crowd := x.crowd(k)
			if k.class.isWide() {
				crowd *= 2 // a plain value that is not there spares even the looking
			}
			if i == 0 || crowd < least {
				best, least = k, crowd
			}
		}
		a.keys, a.crowd = append(a.keys, best), a.crowd+least
	}
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
