package preview

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// RuleChange is what became of a rule.
type RuleChange struct {
	Rule    string                   `json:"rule"` // its name
	Changes []targetevent.ChangeKind `json:"changes"`
	Details []string                 `json:"details,omitempty"` // in words
}

// Rules says which rules were added, removed or changed, by name. A rule is the
// same if its name is: files and buses may differ in account and region.
func Rules(old, new []binding.Binding) []RuleChange {
	before, after := byRule(old), byRule(new)
	var out []RuleChange
	for name, bs := range after {
		was, known := before[name]
		if !known {
			out = append(out, RuleChange{Rule: name, Changes: []targetevent.ChangeKind{targetevent.RuleAdded}})
			continue
		}
		if c := changed(was, bs); len(c.Changes) > 0 {
			c.Rule = name
			out = append(out, c)
		}
	}
	for name := range before {
		if _, still := after[name]; !still {
			out = append(out, RuleChange{Rule: name, Changes: []targetevent.ChangeKind{targetevent.RuleRemoved}})
		}
	}
	slices.SortFunc(out, func(a, b RuleChange) int { return cmp.Compare(a.Rule, b.Rule) })
	return out
}

// byRule parts bindings by the names of their rules, by target.
func byRule(bs []binding.Binding) map[string][]*binding.Binding {
	out := map[string][]*binding.Binding{}
	for i := range bs {
		name := RuleName(bs[i].Rule)
		out[name] = append(out[name], &bs[i])
	}
	for _, of := range out {
		slices.SortFunc(of, func(a, b *binding.Binding) int { return cmp.Compare(a.TargetID, b.TargetID) })
	}
	return out
}

// changed compares the bindings of one rule.
func changed(old, new []*binding.Binding) RuleChange {
	var c RuleChange
	add := func(kind targetevent.ChangeKind, detail string) {
		if !slices.Contains(c.Changes, kind) {
			c.Changes = append(c.Changes, kind)
		}
		if detail != "" {
			c.Details = append(c.Details, detail)
		}
	}
	if was, now := old[0].Enabled, new[0].Enabled; was != now {
		add(map[bool]targetevent.ChangeKind{true: targetevent.RuleEnabled, false: targetevent.RuleDisabled}[now], "")
	}
	if was, now := old[0].Pattern.String(), new[0].Pattern.String(); was != now {
		add(targetevent.PatternChanged, fmt.Sprintf("pattern %s → %s", was, now))
	}
	for _, b := range new {
		i := slices.IndexFunc(old, func(o *binding.Binding) bool { return o.TargetID == b.TargetID })
		if i < 0 {
			add(targetevent.ConstantsChanged, "target "+b.TargetID+" added")
			continue
		}
		for _, detail := range constants(old[i], b) {
			add(targetevent.ConstantsChanged, detail)
		}
	}
	for _, b := range old {
		if !slices.ContainsFunc(new, func(o *binding.Binding) bool { return o.TargetID == b.TargetID }) {
			add(targetevent.ConstantsChanged, "target "+b.TargetID+" removed")
		}
	}
	return c
}

// constants says which constants differ, as a bindings.yaml would name them.
func constants(a, b *binding.Binding) []string {
	var out []string
	differ := func(name string, was, now any) {
		if !reflect.DeepEqual(was, now) {
			out = append(out, fmt.Sprintf("%s %s → %s", name, value(was), value(now)))
		}
	}
	differ("targetGroup", a.Group, b.Group)
	differ("port", a.Port, b.Port)
	differ("registerWhen", a.RegisterWhen, b.RegisterWhen)
	differ("minTargets", a.MinTargets, b.MinTargets)
	differ("maxRemovalPercent", a.MaxRemovalPercent, b.MaxRemovalPercent)
	differ("podCIDRs", a.PodCIDRs, b.PodCIDRs)
	differ("mode", a.Mode, b.Mode)
	differ("foreignTargets", foreign(a.KeepForeign), foreign(b.KeepForeign))
	differ("empty", a.Empty, b.Empty)
	differ("availabilityZone", a.AvailabilityZone, b.AvailabilityZone)
	differ("roleArn", a.RoleARN, b.RoleARN)
	differ("externalId", a.ExternalID, b.ExternalID)
	differ("readinessGate", a.ReadinessGate, b.ReadinessGate)
	if len(out) == 0 && !binding.SameConstants(*a, *b) {
		out = append(out, "constants differ")
	}
	return out
}

func foreign(keep bool) string {
	if keep {
		return "keep"
	}
	return "remove"
}

func value(v any) string {
	var text string
	switch v := v.(type) {
	case binding.GroupRef:
		text = cmp.Or(v.ARN, v.Name)
		if len(v.Tags) > 0 {
			text = strings.TrimPrefix(fmt.Sprint(v.Tags), "map")
		}
	case binding.Port:
		text = v.Name
		if v.Number != 0 {
			text = fmt.Sprint(v.Number)
		}
		return cmp.Or(text, "the group's")
	case []netip.Prefix:
		text = strings.Trim(fmt.Sprint(v), "[]")
	default:
		text = fmt.Sprint(v)
	}
	return cmp.Or(text, "none")
}
