package preview

import (
	"cmp"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// Report is where a rule and a living group disagree: what would be done to the
// group if the rule managed. For a rule that does manage it is what is not done
// yet, or held.
type Report struct {
	Rule        string            `json:"rule"` // its name
	Name        string            `json:"group"`
	TargetGroup string            `json:"targetGroup"`
	Mode        binding.Mode      `json:"mode"`
	Register    []targetevent.Key `json:"register,omitempty"`
	Deregister  []targetevent.Key `json:"deregister,omitempty"`
	Later       []targetevent.Key `json:"later,omitempty"` // emptied, and go in steps
	Held        []targetevent.Key `json:"held,omitempty"`
	Hash        string            `json:"hash,omitempty"` // of all that would be held of the group
	// Waits counts removals that the rule alone does not decide: nobody knows whose
	// they were, so every rule of the group has to manage (I19).
	Waits int `json:"waits,omitempty"`
	// Unknown says what was not read; no removal is known then, and Unjudged counts
	// the targets that no pod which was read claims.
	Unknown  []string `json:"unknown,omitempty"`
	Unjudged int      `json:"unjudged,omitempty"`
}

// Agrees reports whether the group is as the rule has it: managing it changes
// nothing.
func (r *Report) Agrees() bool {
	return len(r.Unknown) == 0 && len(r.Register)+len(r.Deregister)+len(r.Later)+len(r.Held)+r.Waits == 0
}

// Reports returns a report for each rule of each plan that is observed, or for
// each rule if all is set, by rule, then by group.
func Reports(ps []Plan, all bool) []Report {
	var out []Report
	for i := range ps {
		p := &ps[i]
		seen := map[string]bool{}
		for j := range p.Bindings {
			rule := p.Bindings[j].Rule
			mode := binding.ModeOf(p.Bindings, rule)
			if seen[rule] || mode != binding.Observe && !all {
				continue
			}
			seen[rule] = true
			out = append(out, p.report(rule, mode))
		}
	}
	slices.SortFunc(out, func(a, b Report) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Name, b.Name)) })
	return out
}

// report is what managing by the rule does.
func (p *Plan) report(rule string, mode binding.Mode) Report {
	r := Report{Rule: RuleName(rule), Name: cmp.Or(p.Group.Name, p.Group.ARN), TargetGroup: p.Group.ARN, Mode: mode, Unknown: p.Doubt}
	managed := *p
	managed.Bindings = managing(p.Bindings, rule)
	whole := !slices.ContainsFunc(managed.Bindings, func(b binding.Binding) bool { return b.Mode == binding.Observe })
	mine := func(cs []plan.Change) []plan.Change {
		var out []plan.Change
		for _, c := range cs {
			if c.Rule == rule || whole && managed.orphan(c) {
				out = append(out, c)
			}
		}
		return out
	}
	words := words{g: p.Group, before: &managed, after: &managed}
	r.Register = words.keys(mine(p.Changes.Register), words.gained)
	if len(p.Doubt) > 0 {
		r.Unjudged = unjudged(p.Group, p)
		return r
	}
	r.Deregister = words.keys(mine(p.Changes.Deregister), words.lost)
	r.Later = words.keys(mine(p.Changes.Later), words.lost)
	r.Held = words.keys(mine(p.Changes.Held), words.held)
	if len(r.Held) > 0 {
		r.Hash = p.Changes.Hash(p.Group.ARN)
	}
	if !whole {
		for _, c := range removals(p.Changes) {
			if managed.orphan(c) {
				r.Waits++
			}
		}
	}
	return r
}

// orphan reports whether no rule of the group is known to be behind a change.
func (p *Plan) orphan(c plan.Change) bool {
	return !slices.ContainsFunc(p.Bindings, func(b binding.Binding) bool { return b.Rule == c.Rule })
}

// managing are bindings with one rule in mode manage.
func managing(bs []binding.Binding, rule string) []binding.Binding {
	out := slices.Clone(bs)
	for i := range out {
		if out[i].Rule == rule {
			out[i].Mode = binding.Manage
		}
	}
	return out
}
