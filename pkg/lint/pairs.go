package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// pairs judges the bindings of each group together.
func (l *linter) pairs() {
	groups := map[string][]*bound{}
	for _, b := range l.bound {
		groups[b.group] = append(groups[b.group], b)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if bs := groups[key]; len(bs) > 1 {
			l.conflicts(bs)
			l.overlaps(bs)
		}
	}
}

// constant is one that belongs to the group as a whole, or to each pod of it.
type constant struct {
	name     string
	of       func(*binding.Binding) string
	check    Check
	strictly string // what happens where they differ
}

var constants = []constant{
	{"mode", func(b *binding.Binding) string { return string(b.Mode) }, Conflict, "one rule's pods are registered, the other's are only told of"},
	{"foreignTargets", func(b *binding.Binding) string {
		return map[bool]string{true: "keep", false: "remove"}[b.KeepForeign]
	}, Conflict, "keep wins for the whole group"},
	{"roleArn", func(b *binding.Binding) string { return orNone(b.RoleARN) }, Conflict, "one of the roles may not reach the group"},
	{"externalId", func(b *binding.Binding) string { return orNone(b.ExternalID) }, Conflict, "one of the calls may be refused"},
	{"minTargets", func(b *binding.Binding) string { return fmt.Sprint(b.MinTargets) }, Conflict, "the highest counts for the whole group"},
	{"maxRemovalPercent", func(b *binding.Binding) string { return fmt.Sprint(b.MaxRemovalPercent) }, Conflict, "the lowest counts for the whole group"},
	{"readinessGate", func(b *binding.Binding) string { return orNone(b.ReadinessGate) }, Conflict, "some pods of the group get the condition, others do not"},
	{"empty", func(b *binding.Binding) string { return fmt.Sprint(b.Empty) }, PodConflict, "the group is not emptied while another rule fills it"},
	{"port", func(b *binding.Binding) string {
		if b.Port.Name != "" {
			return b.Port.Name
		}
		if b.Port.Number != 0 {
			return fmt.Sprint(b.Port.Number)
		}
		return "the group's"
	}, PodConflict, "a pod that both select is registered with both"},
	{"registerWhen", func(b *binding.Binding) string { return string(b.RegisterWhen) }, PodConflict, "for a pod that both select the earlier one counts"},
	{"podCIDRs", func(b *binding.Binding) string { return fmt.Sprint(b.PodCIDRs) }, PodConflict, "an address that one refuses the other may register"},
	{"availabilityZone", func(b *binding.Binding) string { return b.AvailabilityZone }, PodConflict, "for a pod that both select either may be used"},
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// conflicts finds constants that differ among the bindings of one group.
func (l *linter) conflicts(bs []*bound) {
	for _, c := range constants {
		by := map[string][]string{} // value → rules
		for _, b := range bs {
			v := c.of(&b.Binding)
			if !slices.Contains(by[v], b.rule.Label()) {
				by[v] = append(by[v], b.rule.Label())
			}
		}
		if len(by) < 2 {
			continue
		}
		var said []string
		for _, v := range slices.Sorted(maps.Keys(by)) {
			said = append(said, fmt.Sprintf("%s in %s", v, list(some(by[v]))))
		}
		odd := differing(bs, c)
		f := odd.of(c.check)
		f.Path = "$.binding." + c.name
		f.Message = fmt.Sprintf("the rules of one group differ in %s: %s; %s", c.name, strings.Join(said, ", "), c.strictly)
		f.Fix = "say the same in all rules of the group"
		if c.check == PodConflict {
			f.Fix = "fine if it is meant; otherwise say the same in all rules of the group"
		}
		l.add(f)
	}
}

// differing is the first binding that differs from the one before it.
func differing(bs []*bound, c constant) *bound {
	for _, b := range bs[1:] {
		if c.of(&b.Binding) != c.of(&bs[0].Binding) {
			return b
		}
	}
	return bs[0]
}

// some cuts a list that is too long to read.
func some(names []string) []string {
	if len(names) <= longestPlaces+1 {
		return names
	}
	return append(slices.Clone(names[:longestPlaces]), fmt.Sprintf("%d more", len(names)-longestPlaces))
}

// maxPairs bounds the pairs of rules that are compared for one group.
const maxPairs = 2000

// overlaps finds bindings of one group that select the same pods: by pods that
// there are, or by one that there could be.
func (l *linter) overlaps(bs []*bound) {
	pairs := 0
	for i, a := range bs {
		for _, b := range bs[i+1:] {
			if pairs++; pairs > maxPairs {
				return
			}
			l.overlap(a, b)
		}
	}
}

func (l *linter) overlap(a, b *bound) {
	f := b.of(Overlap)
	f.Path = "EventPattern"
	f.Fix = "merge them, or pin what tells them apart: deleting one of them leaves its pods in the group"
	other := fmt.Sprintf("rule %s", a.rule.Label())
	if a.rule == b.rule {
		other = fmt.Sprintf("target %s of the same rule", a.TargetID)
	}
	if pods := both(a, b); len(pods) > 0 {
		f.Message = fmt.Sprintf("%s selects the same pods for the same group: %s", other, list(some(pods)))
		l.add(f)
		return
	}
	if e, ok := witness(a, b); ok {
		f.Message = fmt.Sprintf("%s can select the same pod for the same group: %s", other, describe(e))
		l.add(f)
	}
}

// describe writes what of an invented pod matters.
func describe(e podevent.Event) string {
	out := []string{"namespace " + e.Namespace}
	if e.Cluster != "any" {
		out = append(out, "cluster "+e.Cluster)
	}
	for _, k := range slices.Sorted(maps.Keys(e.Labels)) {
		out = append(out, k+"="+e.Labels[k])
	}
	return "one with " + strings.Join(out, ", ")
}
