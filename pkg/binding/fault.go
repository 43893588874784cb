package binding

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is one thing that is wrong with a rule or one of its targets. Errors of
// this package are faults, joined where there are several; Faults lists them.
type Fault struct {
	Rule     string // name of the rule, or its ARN; empty where only constants are read
	TargetID string // empty where the fault is the rule's
	Path     string // JSON path of what is wrong, as in "$.binding.port"
	Reason   string // what was found and what would be right
}

func (f *Fault) Error() string {
	var b strings.Builder
	if f.Rule != "" {
		fmt.Fprintf(&b, "rule %s: ", f.Rule)
	}
	if f.TargetID != "" {
		fmt.Fprintf(&b, "target %s: ", f.TargetID)
	}
	if f.Path != "" {
		fmt.Fprintf(&b, "%s: ", f.Path)
	}
	b.WriteString(f.Reason)
	return b.String()
}

// Faults lists the faults in an error of this package, in order.
func Faults(err error) []*Fault {
	switch e := err.(type) { //nolint:errorlint // walks the tree itself
	case nil:
		return nil
	case *Fault:
		return []*Fault{e}
	case interface{ Unwrap() []error }:
		var all []*Fault
		for _, inner := range e.Unwrap() {
			all = append(all, Faults(inner)...)
		}
		return all
	default:
		return Faults(errors.Unwrap(err))
	}
}

// faults gathers what is wrong with one JSON value and what lies in it.
type faults struct{ all []error }

func (f *faults) add(path, format string, args ...any) {
	f.all = append(f.all, &Fault{Path: path, Reason: fmt.Sprintf(format, args...)})
}

func (f *faults) err() error { return errors.Join(f.all...) }

// clip keeps what an error quotes short enough to read.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most/2] + "…" + s[len(s)-most/2:]
}
