package reconcile

import (
	"regexp"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
)

// RuleFault is what is wrong with a rule: it, or some target of it, covers nothing.
type RuleFault struct {
	Rule binding.Rule
	Err  error

	words map[string]bool // of what its targets say
}

// Mentions reports whether the rule's targets speak of a group, by its ARN or its
// name, however wrongly they are written: the rule may mean it, so nothing is
// removed from it (I8).
func (f RuleFault) Mentions(group string) bool { return f.words[GroupName(group)] }

// ByTags reports whether the rule's targets speak of tags, by which they may name any
// group.
func (f RuleFault) ByTags() bool { return f.words["tags"] }

// Faulty returns the first faulty rule that mentions a group.
func (s Snapshot) Faulty(group string) (RuleFault, bool) {
	for _, f := range s.Faults {
		if f.Mentions(group) {
			return f, true
		}
	}
	return RuleFault{}, false
}

// GroupName is the name in a group's ARN, or what was given if it is none.
func GroupName(arn string) string {
	if parts := strings.Split(arn, "/"); len(parts) > 1 {
		return parts[1]
	}
	return arn
}

// word is what may be the name of a group: an ARN that is cut off, or written with
// the wrong marks, still has it.
var word = regexp.MustCompile(`[A-Za-z0-9-]+`)

// wordsOf returns the words of what the targets at the queue say.
func wordsOf(targets []binding.Target, queueARN string) map[string]bool {
	out := map[string]bool{}
	add := func(text string) {
		for _, w := range word.FindAllString(text, -1) {
			out[w] = true
		}
	}
	for _, t := range targets {
		if t.ARN != queueARN {
			continue
		}
		add(t.Input)
		add(t.InputPath)
		if t.Transformer != nil {
			add(t.Transformer.Template)
			for _, path := range t.Transformer.PathsMap {
				add(path)
			}
		}
	}
	return out
}
