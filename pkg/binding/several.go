package binding

import "reflect"

// Enabled reports whether the rule sends events.
func (r Rule) Enabled() bool { return r.State != "DISABLED" }

// ModeOf returns the mode of a rule among the bindings of one group: where one of
// its targets for the group is observed, all are, so that observing changes
// nothing (I19). What no rule of the group is known to be behind is only changed
// where all of them manage.
func ModeOf(bs []Binding, rule string) Mode {
	var own, any bool // some binding of the rule, or of any rule, observes
	known := false
	for i := range bs {
		observes := bs[i].Mode == Observe
		any = any || observes
		if bs[i].Rule == rule {
			known, own = true, own || observes
		}
	}
	if known && own || !known && any {
		return Observe
	}
	return Manage
}

// SameConstants reports whether two rule targets say the same, whatever rules
// they are of.
func SameConstants(a, b Binding) bool {
	a.Rule, a.TargetID, a.Pattern, a.Enabled = b.Rule, b.TargetID, b.Pattern, b.Enabled
	return reflect.DeepEqual(a, b)
}
