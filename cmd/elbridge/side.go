package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/preview"
)

// side is one set of rules, read from a file or a bus.
type side struct {
	name     string
	rules    []lint.Rule
	bindings []binding.Binding
	faults   []*binding.Fault
	groups   map[string]lint.Group // what a file says of its groups
	// unknown are bindings, by index, whose group only the deployment knows.
	unknown map[int]bool
}

// side reads a file, or as bus or bus:NAME the rules of a bus.
func (o *planOptions) side(ctx context.Context, stdin io.Reader, name string) (*side, error) {
	s := &side{name: name, unknown: map[int]bool{}}
	var rules []lint.Rule
	busName, isBus := strings.CutPrefix(name, "bus:")
	if name == "bus" {
		busName, isBus = o.shared.bus, true
	}
	if isBus {
		o.shared.bus = busName // whose groups are, is judged by it
		from, err := o.rulesOf(ctx, busName)
		if err != nil {
			return nil, err
		}
		if rules, err = readRules(ctx, from); err != nil {
			return nil, err
		}
	} else {
		var err error
		if rules, s.groups, err = readFile(name, stdin); err != nil {
			return nil, err
		}
	}
	s.rules = rules
	s.bindings, s.faults = bindingsOf(rules, o.queue)
	return s, nil
}

// meant finds the living groups that templates mean, and says what it took for
// granted: by what the operator says, by the group's name in the template, else
// by the rule of the same name on the other side. A group that none of these
// tells stays unknown.
func meant(before, after *side, same map[string]string) (notes []string) {
	sides := [2]*side{before, after}
	for _, s := range sides {
		for i := range s.bindings {
			b := &s.bindings[i]
			if !lint.MadeUp(b.Group.ARN) {
				continue
			}
			if arn := same[lint.GroupName(b.Group)]; arn != "" {
				b.Group = binding.GroupRef{ARN: arn}
			} else if g := s.groups[b.Group.ARN]; g.Name != "" {
				b.Group = binding.GroupRef{Name: g.Name}
			}
		}
	}
	for i, s := range sides {
		for j := range s.bindings {
			b := &s.bindings[j]
			if !lint.MadeUp(b.Group.ARN) {
				continue
			}
			other := sides[1-i].of(b)
			if other == nil || lint.MadeUp(other.Group.ARN) {
				s.unknown[j] = true
				continue
			}
			notes = append(notes, fmt.Sprintf("group %s of %s is taken to be %s, which rule %s names in %s",
				lint.GroupName(b.Group), s.name, lint.GroupName(other.Group), preview.RuleName(b.Rule), sides[1-i].name))
			b.Group = other.Group
		}
	}
	return notes
}

// of is the binding of the same rule and target.
func (s *side) of(b *binding.Binding) *binding.Binding {
	i := slices.IndexFunc(s.bindings, func(o binding.Binding) bool {
		return preview.RuleName(o.Rule) == preview.RuleName(b.Rule) && o.TargetID == b.TargetID
	})
	if i < 0 {
		return nil
	}
	return &s.bindings[i]
}

// lookups are the bindings whose groups may be looked up.
func (s *side) lookups() []binding.Binding {
	var out []binding.Binding
	for i, b := range s.bindings {
		if !s.unknown[i] {
			out = append(out, b)
		}
	}
	return out
}

// living is the side as the comparison takes it, and what is to be said of
// bindings that cover nothing that lives.
func (s *side) living(groups *surveyed) (out preview.Side, notes []string) {
	for i, b := range s.bindings {
		if s.unknown[i] {
			out.Unclear = append(out.Unclear, fmt.Sprintf("rule %s of %s names group %s, which only its deployment knows: say --group %s=ARN",
				preview.RuleName(b.Rule), s.name, lint.GroupName(b.Group), lint.GroupName(b.Group)))
			continue
		}
		if g := groups.byRef[lint.Ref(b.Group)]; g.Problem == lint.NotFound || g.Problem == lint.Ambiguous {
			notes = append(notes, fmt.Sprintf("rule %s of %s covers nothing now: target group %s %s", preview.RuleName(b.Rule), s.name, lint.GroupName(b.Group), problemText(g.Group)))
		}
	}
	out.Bindings, out.Maybe = withARNs(s.lookups(), groups), maybe(s.rules, s.lookups(), s.faults, groups)
	return out, notes
}

// named are the bindings with the ARNs of their groups where they are known, so
// that a group is the same by whatever it is named.
func (s *side) named(groups *surveyed) []binding.Binding {
	out := slices.Clone(s.bindings)
	for i := range out {
		if g := groups.byRef[lint.Ref(out[i].Group)]; !s.unknown[i] && g.ARN != "" {
			out[i].Group = binding.GroupRef{ARN: g.ARN}
		}
	}
	return out
}

// brokenNow says which rules could be understood before and can't be now: what
// they covered is not known to be covered by nobody.
func brokenNow(before, after *side) []string {
	broken := map[string]bool{}
	for _, f := range before.faults {
		broken[f.Rule+"\x00"+f.TargetID] = true
	}
	var out []string
	for _, f := range after.faults {
		if !broken[f.Rule+"\x00"+f.TargetID] {
			out = append(out, f.Error())
		}
	}
	return out
}

// unique sorts and drops doubles.
func unique(s []string) []string { return slices.Compact(sortedStrings(s)) }
