package eventpattern

// Set is many patterns, matched together. It is immutable and safe for
// concurrent use.
type Set struct{ patterns []*Pattern }

// NewSet compiles patterns into a set. The slice is copied; nil entries never match.
func NewSet(patterns []*Pattern) *Set {
	return &Set{patterns: append([]*Pattern(nil), patterns...)}
}

// Matches returns the indices of the patterns that match, ascending.
func (s *Set) Matches(e *Event) []int {
	var out []int
	for i, p := range s.patterns {
		if p != nil && p.Matches(e) {
			out = append(out, i)
		}
	}
	return out
}
