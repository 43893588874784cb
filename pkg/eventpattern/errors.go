package eventpattern

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError says why a pattern was refused: where, which operator, and what
// would have been accepted.
type SyntaxError struct {
	Path     string // keys joined with dots, as in "detail.labels.app"; empty for the pattern as a whole
	Operator string // "numeric", "cidr", "$or", …; empty where no operator is involved
	Reason   string // what was found and what would be valid
	Offset   int    // byte offset in the pattern
}

func (e *SyntaxError) Error() string {
	var b strings.Builder
	b.WriteString("event pattern")
	if e.Path != "" {
		fmt.Fprintf(&b, ": %s", clip(e.Path))
	}
	if e.Operator != "" {
		fmt.Fprintf(&b, ": %s", clip(e.Operator))
	}
	fmt.Fprintf(&b, ": %s (at byte %d)", e.Reason, e.Offset)
	return b.String()
}

// clip keeps what an error quotes short enough to read.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	head, tail := most/2, len(s)-most/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "…" + s[tail:]
}
