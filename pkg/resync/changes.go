package resync

import (
	"maps"
	"reflect"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// ruleChange is a rule that is not what it was.
type ruleChange struct {
	rule   string
	kinds  []targetevent.ChangeKind
	groups []string // that it names or named
	rounds int      // for which its effect has been waited for
}

// ruleState is what of a rule can change.
type ruleState struct {
	rule     binding.Rule
	bindings []binding.Binding
	faults   []string
}

// changedRules compares two readings of the bus's bindings. Rules that are none,
// whose targets are others than the registrar's queue, are no news.
func changedRules(before, after reconcile.Snapshot) []ruleChange {
	was, is := states(before), states(after)
	var out []ruleChange
	for _, arn := range slices.Sorted(maps.Keys(is)) {
		if old, known := was[arn]; !known {
			out = append(out, ruleChange{rule: arn, kinds: []targetevent.ChangeKind{targetevent.RuleAdded}})
		} else if kinds := differences(old, is[arn]); len(kinds) > 0 {
			out = append(out, ruleChange{rule: arn, kinds: kinds})
		}
	}
	for _, arn := range slices.Sorted(maps.Keys(was)) {
		if _, still := is[arn]; !still {
			out = append(out, ruleChange{rule: arn, kinds: []targetevent.ChangeKind{targetevent.RuleRemoved}})
		}
	}
	return out
}

// states are the rules that are bindings, or mean to be.
func states(s reconcile.Snapshot) map[string]ruleState {
	out := map[string]ruleState{}
	for _, b := range s.Bindings {
		st := out[b.Rule]
		st.bindings = append(st.bindings, b)
		out[b.Rule] = st
	}
	for _, f := range s.Faults {
		st := out[f.Rule.ARN]
		st.faults = append(st.faults, f.Err.Error())
		out[f.Rule.ARN] = st
	}
	for _, r := range s.Rules {
		if st, ours := out[r.ARN]; ours {
			st.rule = r
			out[r.ARN] = st
		}
	}
	return out
}

func differences(was, is ruleState) []targetevent.ChangeKind {
	var out []targetevent.ChangeKind
	if was.rule.Pattern != is.rule.Pattern {
		out = append(out, targetevent.PatternChanged)
	}
	if off, on := was.rule.State == disabled, is.rule.State == disabled; off && !on {
		out = append(out, targetevent.RuleEnabled)
	} else if !off && on {
		out = append(out, targetevent.RuleDisabled)
	}
	if !reflect.DeepEqual(constants(was.bindings), constants(is.bindings)) || !slices.Equal(was.faults, is.faults) {
		out = append(out, targetevent.ConstantsChanged)
	}
	return out
}

const disabled = "DISABLED" // state of a rule; any other is enabled

// constants are bindings without what the rule itself says.
func constants(bs []binding.Binding) []binding.Binding {
	out := slices.Clone(bs)
	for i := range out {
		out[i].Pattern, out[i].Enabled = nil, false
	}
	return out
}

// groupsOf returns the groups that each rule names, as they were resolved.
func groupsOf(groups map[string]*group) map[string][]string {
	out := map[string][]string{}
	for _, arn := range slices.Sorted(maps.Keys(groups)) {
		for i := range groups[arn].bindings {
			if rule := groups[arn].bindings[i].Rule; !slices.Contains(out[rule], arn) {
				out[rule] = append(out[rule], arn)
			}
		}
	}
	return out
}
