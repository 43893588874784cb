package eventpattern

import (
	"slices"
	"sync"
)

// Set is many patterns, matched together in one pass: a condition that several
// patterns share is looked at once for an event, and patterns are tried only
// where the values that tell them apart occur. It is immutable and safe for
// concurrent use.
type Set struct {
	branches   []setBranch
	conditions int              // how many distinct ones there are
	patterns   int              // how many there are, nil ones included
	anchors    []*index         // one for each path that anchors branches, sorted by path
	byHash     map[uint64]int32 // hash of the path -> index in anchors; nil if there are few
	others     []int32          // branches without an anchor: tried for every event
	paths      pathSet          // every path that a condition names
	memos      sync.Pool
}

// A setBranch is a branch of one of the patterns.
type setBranch struct {
	branch
	pattern int32
	rarest  int32 // index of the condition that the fewest branches share
}

// NewSet compiles patterns into a set. Nil entries match nothing.
func NewSet(patterns []*Pattern) *Set {
	s := &Set{patterns: len(patterns)}
	s.addBranches(patterns)
	s.addAnchors()
	s.memos.New = func() any {
		return &memo{
			conditions: make([]remembered, s.conditions),
			branches:   make([]uint32, len(s.branches)),
			patterns:   make([]uint32, s.patterns),
			flat:       flattener{wanted: s.paths},
		}
	}
	return s
}

// addBranches gives equal conditions one number.
func (s *Set) addBranches(patterns []*Pattern) {
	numbers := map[string]int32{}
	known := map[*condition]int32{} // branches of one pattern share conditions
	var uses []int                  // how many branches have the condition of a number
	var paths []uint64
	for i, p := range patterns {
		if p == nil {
			continue
		}
		for _, b := range p.branches {
			sb := setBranch{branch: branch{conditions: b.conditions}, pattern: int32(i)}
			for _, c := range b.conditions {
				n, ok := known[c]
				if !ok {
					key := c.path + "\x00" + c.source
					if n, ok = numbers[key]; !ok {
						n = int32(len(uses))
						numbers[key] = n
						uses = append(uses, 0)
						paths = append(paths, c.hash)
					}
					known[c] = n
				}
				uses[n]++
				sb.numbers = append(sb.numbers, n)
			}
			s.branches = append(s.branches, sb)
		}
	}
	s.conditions, s.paths = len(uses), newPathSet(paths)
	for i := range s.branches {
		b := &s.branches[i]
		for k, n := range b.numbers {
			if uses[n] < uses[b.numbers[b.rarest]] {
				b.rarest = int32(k)
			}
		}
	}
}

// Match reads an event and returns the indices of the patterns that match,
// ascending. It does what ParseEvent and Matches do, and keeps nothing.
func (s *Set) Match(event []byte) ([]int, error) {
	m := s.memos.Get().(*memo)
	defer func() {
		if len(event) <= maxKeptBytes && cap(m.flat.event.fields)+cap(m.flat.event.steps)+cap(m.flat.event.elements) <= maxKept {
			s.memos.Put(m)
		}
	}()
	if err := m.flat.flatten(event); err != nil {
		return nil, err
	}
	return s.match(&m.flat.event, m, nil), nil
}

// Matches returns the indices of the patterns that match, ascending.
func (s *Set) Matches(e *Event) []int { return s.AppendMatches(nil, e) }

// AppendMatches appends the indices of the patterns that match, ascending.
func (s *Set) AppendMatches(hits []int, e *Event) []int {
	m := s.memos.Get().(*memo)
	defer s.memos.Put(m)
	return s.match(e, m, hits)
}

func (s *Set) match(e *Event, m *memo, hits []int) []int {
	m.begin()
	r := run{set: s, event: e, memo: m, hits: hits, before: len(hits)}
	if s.byHash != nil && len(s.anchors) > len(e.fields) {
		for i := range e.fields {
			if a, ok := s.byHash[e.fields[i].path]; ok { // if only the hash is equal, branches are tried in vain
				s.anchors[a].find(&e.fields[i], &r)
			}
		}
	} else {
		for _, a := range s.anchors {
			for j := e.first(a.path, a.hash); j != none; j = e.after(j, a.path, a.hash) {
				a.find(&e.fields[j], &r)
			}
		}
	}
	r.tryAll(s.others)
	slices.Sort(r.hits[r.before:])
	return r.hits
}

// A run is one event's way through a set.
type run struct {
	set    *Set
	event  *Event
	memo   *memo
	hits   []int
	before int // how many hits are of other events
}

func (r *run) tryAll(branches []int32) {
	for _, b := range branches {
		r.try(b)
	}
}

// try adds the pattern of a branch to the hits, if the branch matches and no
// other one of the pattern did before.
func (r *run) try(i int32) {
	b, m := &r.set.branches[i], r.memo
	if m.branches[i] == m.event || m.patterns[b.pattern] == m.event {
		return
	}
	m.branches[i] = m.event
	if m.alone(r.event, b.conditions[b.rarest], b.numbers[b.rarest]) == 0 || !b.matches(r.event, m) {
		return
	}
	m.patterns[b.pattern] = m.event
	r.hits = append(r.hits, int(b.pattern))
}

// memo remembers, for one event, what has been looked at. Entries of earlier
// events carry another number.
type memo struct {
	event      uint32
	conditions []remembered
	branches   []uint32 // event for which a branch was tried last
	patterns   []uint32 // event for which a pattern matched last
	flat       flattener
	folded     []byte // scratch
}

// What is kept of one event's memory for the next one, at most.
const (
	maxKept      = 1 << 14 // fields, steps and elements
	maxKeptBytes = 1 << 20 // of text
)

type remembered struct {
	event   uint32
	outcome outcome
}

func (m *memo) begin() {
	if m.event++; m.event == 0 { // after 2³² events the numbers begin again
		clear(m.conditions)
		clear(m.branches)
		clear(m.patterns)
		m.event = 1
	}
}

func (m *memo) alone(e *Event, c *condition, number int32) outcome {
	r := &m.conditions[number]
	if r.event != m.event {
		*r = remembered{m.event, c.alone(e)}
	}
	return r.outcome
}
