// Package eventpattern reads and matches EventBridge event patterns: the whole
// language, as the service means it. resync decides with it which pods a target
// group should hold, so a pattern it cannot read is an error and never a silent
// non-match.
//
// It is pure: bytes in, a decision out. Patterns, events and sets are immutable
// and safe for concurrent use, and nothing an input says makes it panic, loop or
// allocate without bound.
package eventpattern

// Limits of a pattern.
const (
	// MaxPatternLength is the longest pattern, in characters (UTF-16 code units):
	// the EventPattern member of the EventBridge API has this maximum.
	MaxPatternLength = 4096
	// MaxCombinations bounds the product of the $or lists: a pattern is one
	// conjunction for each combination of their branches.
	MaxCombinations = 1000
	// MaxWildcards bounds the * in the wildcard values of a pattern, each value
	// counted once for every time it is written.
	MaxWildcards = 128
)

// Pattern is a compiled event pattern.
type Pattern struct {
	text     string
	branches []branch
}

// A branch is one conjunction: the event matches the pattern if it matches any
// branch. Without $or there is one.
type branch struct {
	conditions []*condition // ordered by path, see comparePaths
	choice     *choice      // the last $or on the way to it
	numbers    []int32      // in a set: the number of each condition
}

// A condition is what a pattern says about one path: the event's value must pass
// one of the tests, or the path must be absent.
type condition struct {
	path   string // keys joined with dots
	source string // the array as the pattern spells it
	offset int    // where in the pattern it stands
	hash   uint64 // hashPath(path)
	tests  []test
	absent bool // {"exists": false} is among the alternatives
}

// A test is one operator with its operand.
type test interface {
	passes(f *field) bool
}

// Parse compiles a pattern. The error is a *SyntaxError.
//
// Text after the closing brace is ignored, as the service's matcher does.
func Parse(pattern []byte) (*Pattern, error) {
	p := parser{scanner: scanner{s: string(pattern)}}
	branches, err := p.parse()
	if err != nil {
		return nil, err
	}
	return &Pattern{text: p.s, branches: branches}, nil
}

// String is the text that Parse was given.
func (p *Pattern) String() string { return p.text }

// Match is ParseEvent and Matches in one call.
func (p *Pattern) Match(event []byte) (bool, error) {
	e, err := ParseEvent(event)
	if err != nil {
		return false, err
	}
	return p.Matches(e), nil
}
