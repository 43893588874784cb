package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Row is one binding of the overview. Numbers are absent where what they count
// was not read.
type Row struct {
	Rule   string `json:"rule"`
	Target string `json:"target"` // target id of the rule
	Group  string `json:"group"`
	State  string `json:"state"` // enabled, disabled, observe, empty, invalid
	// Pods are those that the binding selects, Claims the keys they claim under it.
	Pods   *int `json:"pods,omitempty"`
	Claims *int `json:"claims,omitempty"`
	// Of the group, whatever binding they are for: what it holds without what
	// drains, what of it is healthy, and what drains.
	Targets  *int `json:"targets,omitempty"`
	Healthy  *int `json:"healthy,omitempty"`
	Draining *int `json:"draining,omitempty"`
	// Missing are keys that pods claim under enabled rules and the group does not
	// hold; Extra are keys that it holds and no pod of the cluster claims.
	Missing []string `json:"missing,omitempty"`
	Extra   []string `json:"extra,omitempty"`
	// Partial says that rules of the group cover clusters which were not read: Extra
	// may be theirs.
	Partial bool   `json:"partial,omitempty"`
	Note    string `json:"note,omitempty"`
}

// group is what all bindings of one group come to.
type group struct {
	claimed   map[claim.Key]bool // by enabled rules
	protected map[claim.Key]bool // by disabled ones: neither added nor removed
	partial   bool
}

// Overview is a row for each binding, and one for each rule that covers nothing,
// by rule and target. pods are all of the cluster's; nil if none was read.
func (w *World) Overview(pods []*podevent.Pod) ([]Row, error) {
	rows := make([]Row, 0, len(w.Bindings))
	groups := map[string]*group{}
	of := make([]*group, len(w.Bindings))
	for i := range w.Bindings {
		b := &w.Bindings[i]
		rows = append(rows, Row{Rule: ruleName(b.Rule), Target: b.TargetID, Group: lint.GroupName(b.Group), State: StateOf(b)})
		g := w.Groups[lint.Ref(b.Group)]
		key := cmp.Or(g.ARN, lint.Ref(b.Group))
		if groups[key] == nil {
			groups[key] = &group{claimed: map[claim.Key]bool{}, protected: map[claim.Key]bool{}}
		}
		of[i] = groups[key]
		of[i].partial = of[i].partial || len(w.unread(b)) > 0
	}
	if pods != nil {
		if err := w.count(rows, of, pods); err != nil {
			return nil, err
		}
	}
	for i := range rows {
		w.compare(&rows[i], &w.Bindings[i], of[i], pods != nil)
	}
	for _, f := range w.Faults {
		rows = append(rows, Row{Rule: f.Rule, Target: f.TargetID, State: "invalid", Note: faultText(f)})
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Target, b.Target)) })
	return rows, nil
}

func faultText(f *binding.Fault) string {
	if f.Path == "" {
		return f.Reason
	}
	return f.Path + ": " + f.Reason
}

// StateOf is a binding's state in a word: disabled, empty, observe or enabled.
func StateOf(b *binding.Binding) string {
	switch {
	case !b.Enabled:
		return "disabled"
	case b.Empty:
		return "empty"
	case b.Mode == binding.Observe:
		return "observe"
	default:
		return "enabled"
	}
}

// count fills in what pods are selected and what they claim.
func (w *World) count(rows []Row, of []*group, pods []*podevent.Pod) error {
	selected, claims := make([]int, len(rows)), make([]map[claim.Key]bool, len(rows))
	patterns := make([]*eventpattern.Pattern, len(w.Bindings))
	for i := range w.Bindings {
		patterns[i] = w.Bindings[i].Pattern
	}
	set := eventpattern.NewSet(patterns)
	for _, p := range pods {
		e, err := w.event(p)
		if err != nil {
			return fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		for _, i := range set.Matches(e) {
			b := &w.Bindings[i]
			selected[i]++
			g, ok := w.Groups[lint.Ref(b.Group)]
			if !ok || g.Problem != lint.Known {
				continue
			}
			k, refusal := claim.Of(p, b, g.Group.Group)
			switch {
			case refusal != claim.None:
				continue
			case b.Enabled:
				of[i].claimed[k] = true
			default:
				of[i].protected[k] = true
			}
			if claims[i] == nil {
				claims[i] = map[claim.Key]bool{}
			}
			claims[i][k] = true
		}
	}
	for i := range rows {
		rows[i].Pods, rows[i].Claims = new(selected[i]), new(len(claims[i]))
	}
	return nil
}

// compare fills in what the group holds and how it differs from the claims.
func (w *World) compare(r *Row, b *binding.Binding, of *group, podsRead bool) {
	g, ok := w.Groups[lint.Ref(b.Group)]
	if !ok {
		return
	}
	if g.Problem != lint.Known {
		r.Note = fmt.Sprintf("target group %s", g.Problem)
		if g.Detail != "" {
			r.Note += ": " + g.Detail
		}
		return
	}
	r.Note = groupNote(g)
	if g.Targets == nil {
		return
	}
	held, healthy, draining := 0, 0, 0
	for k, t := range g.Targets {
		switch t.Health {
		case plan.Draining:
			draining++
			continue
		case plan.Healthy:
			healthy++
		}
		held++
		if podsRead && !of.claimed[k] && !of.protected[k] {
			r.Extra = append(r.Extra, k.String())
		}
	}
	r.Targets, r.Healthy, r.Draining = &held, &healthy, &draining
	if !podsRead {
		return
	}
	for k := range of.claimed {
		if t, ok := g.Targets[k]; !ok || t.Health == plan.Draining {
			r.Missing = append(r.Missing, k.String())
		}
	}
	r.Partial = of.partial
	slices.Sort(r.Missing)
	slices.Sort(r.Extra)
}

func groupNote(g Group) string {
	switch {
	case g.Type != claim.IP:
		return fmt.Sprintf("targets of type %s are not yet supported", g.Type)
	case g.Tags != nil && g.Tags[binding.OwnerTag] == "":
		return "no owner tag: nothing but pods within podCIDRs is removed"
	default:
		return ""
	}
}
