// Package bindingfile reads bindings.yaml, a convenient way to write the rules of
// an elbridge bus, and renders the rules. It is no second configuration: what
// elbridge obeys are the rules alone. Errors tell the line. The package is pure.
package bindingfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
)

// Version is the one version of the format.
const Version = 1

// TargetID is the id of the target of each rendered rule.
const TargetID = "registrar"

// File is what a bindings.yaml says.
type File struct {
	Bus         string // name of the bus
	Queue       string // ARN of the registrar's queue
	DeadLetters string // ARN of the queue for what can't be delivered; may be empty
	Bindings    []Entry
}

// Entry is one binding of the file.
type Entry struct {
	Name        string // of the rule
	Description string // of the rule: the file's own words, else the comment above the entry
	Enabled     bool
	Pattern     string // the rule's event pattern
	Constants   string // the binding object, JSON, in the order of the file
	Line        int
}

// Error is one thing that is wrong with a file.
type Error struct {
	Line, Column int    // from 1; 0 where there is none
	Path         string // as in "bindings[0].port"
	Reason       string // what was found and what would be right
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: ", e.Path)
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Errors lists what is wrong, in the order of the lines.
func Errors(err error) []*Error {
	var all []*Error
	var walk func(error)
	walk = func(err error) {
		var one *Error
		switch joined, ok := err.(interface{ Unwrap() []error }); { // walks the tree itself
		case ok:
			for _, inner := range joined.Unwrap() {
				walk(inner)
			}
		case errors.As(err, &one):
			all = append(all, one)
		}
	}
	walk(err)
	slices.SortStableFunc(all, func(a, b *Error) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return all
}

// Rule is a rule of the file with its target, and the line of its binding.
type Rule struct {
	binding.Rule
	Description string
	Targets     []binding.Target
	Line        int
}

// Rules are the rules as EventBridge will show them.
func (f *File) Rules() []Rule {
	out := make([]Rule, 0, len(f.Bindings))
	for _, e := range f.Bindings {
		state := "ENABLED"
		if !e.Enabled {
			state = "DISABLED"
		}
		out = append(out, Rule{
			Rule:        binding.Rule{ARN: f.ruleARN(e.Name), Name: e.Name, Bus: f.Bus, State: state, Pattern: e.Pattern},
			Description: e.Description, Line: e.Line,
			Targets: []binding.Target{{ID: TargetID, ARN: f.Queue, Transformer: &binding.Transformer{Template: e.template()}}},
		})
	}
	return out
}

func (e *Entry) template() string {
	return `{"binding":` + e.Constants + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`
}

// ruleARN puts the rule where the queue is: a queue is a target of rules of its
// own region.
func (f *File) ruleARN(name string) string {
	parts := strings.Split(f.Queue, ":") // checked: arn:partition:sqs:region:account:name
	return fmt.Sprintf("arn:%s:events:%s:%s:rule/%s/%s", parts[1], parts[3], parts[4], f.Bus, name)
}
