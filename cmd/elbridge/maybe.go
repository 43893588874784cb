package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/preview"
)

// maybe says of living groups, by ARN, which rules that cover nothing may mean
// them: faulty ones whose targets speak of the group, however wrongly they are
// written, and those whose tags several groups carry. Resync removes nothing there.
func maybe(rules []lint.Rule, bs []binding.Binding, faults []*binding.Fault, groups *surveyed) map[string][]string {
	out := map[string][]string{}
	add := func(arn, doubt string) {
		if arn != "" && !slices.Contains(out[arn], doubt) {
			out[arn] = append(out[arn], doubt)
		}
	}
	arns := groups.arns()
	for i := range rules {
		j := slices.IndexFunc(faults, func(f *binding.Fault) bool { return f.Rule == cmp.Or(rules[i].Name, rules[i].ARN) })
		if j < 0 {
			continue
		}
		words := wordsOf(rules[i].Targets)
		for _, arn := range arns {
			if words[groupName(arn)] {
				add(arn, fmt.Sprintf("a faulty rule may mean it: %v", faults[j]))
			}
		}
	}
	for i := range bs {
		b := &bs[i]
		g := groups.byRef[lint.Ref(b.Group)]
		if g.Problem != lint.Ambiguous {
			continue
		}
		doubt := fmt.Sprintf("rule %s may mean it: %s", preview.RuleName(b.Rule), problemText(g.Group))
		for _, arn := range arns {
			if groups.mayBe(arn, b.Group) {
				add(arn, doubt)
			}
		}
	}
	return out
}

// arns are those of all groups that are known.
func (s *surveyed) arns() []string {
	var out []string
	for _, g := range s.all {
		out = append(out, g.ARN)
	}
	for _, g := range s.byRef {
		if g.ARN != "" {
			out = append(out, g.ARN)
		}
	}
	return unique(out)
}

// mayBe reports whether a reference that is ambiguous may mean a group. Of groups
// elsewhere it is not known which ones carry the tags.
func (s *surveyed) mayBe(arn string, ref binding.GroupRef) bool {
	i := slices.IndexFunc(s.all, func(g lint.Group) bool { return g.ARN == arn })
	return i < 0 || carries(s.all[i].Tags, ref.Tags)
}

// word is what may be the name of a group: an ARN that is cut off still has it.
var word = regexp.MustCompile(`[A-Za-z0-9-]+`)

// wordsOf are the words of what targets say.
func wordsOf(targets []binding.Target) map[string]bool {
	out := map[string]bool{}
	for _, t := range targets {
		texts := []string{t.Input, t.InputPath}
		if t.Transformer != nil {
			texts = append(texts, t.Transformer.Template)
			for _, path := range t.Transformer.PathsMap {
				texts = append(texts, path)
			}
		}
		for _, text := range texts {
			for _, w := range word.FindAllString(text, -1) {
				out[w] = true
			}
		}
	}
	return out
}
