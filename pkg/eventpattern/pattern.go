// Package eventpattern reads and matches EventBridge event patterns: the whole
// language, as the service means it. It is pure: bytes in, a decision out.
package eventpattern

import "errors"

// SyntaxError says why a pattern was refused: where, which operator, and what
// would have been accepted.
type SyntaxError struct {
	Path     string // joined with dots, as in "detail.labels.app"; empty for the pattern itself
	Operator string // "numeric", "cidr", …; empty where no operator is involved
	Reason   string // what was found and what would be valid
	Offset   int    // byte offset in the pattern
}

func (e *SyntaxError) Error() string { return e.Reason }

// Pattern is a compiled event pattern. It is immutable and safe for concurrent use.
type Pattern struct{ text string }

// Event is an event, flattened once. It is immutable and safe for concurrent use.
type Event struct{}

var errTODO = errors.New("not written yet")

// Parse compiles a pattern. The error is a *SyntaxError.
func Parse(pattern []byte) (*Pattern, error) { return nil, errTODO }

// String is the text that Parse was given.
func (p *Pattern) String() string { return p.text }

// ParseEvent reads an event once, for any number of patterns.
func ParseEvent(event []byte) (*Event, error) { return nil, errTODO }

// Matches reports whether the event matches.
func (p *Pattern) Matches(e *Event) bool { return false }

// Match is ParseEvent and Matches in one call.
func (p *Pattern) Match(event []byte) (bool, error) {
	e, err := ParseEvent(event)
	if err != nil {
		return false, err
	}
	return p.Matches(e), nil
}
