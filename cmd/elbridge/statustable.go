package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/preview"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// count fills in what the group holds.
func (s *groupStatus) count(p *preview.Plan) {
	for _, t := range p.Group.Targets {
		switch t.Health {
		case plan.Draining:
			s.Draining++
			continue
		case plan.Healthy:
			s.Healthy++
		case plan.Unhealthy, plan.UnhealthyDraining:
			s.Unhealthy++
		}
		s.Targets++
	}
}

// held adds what is held of a group, and how it is let go.
func (r *statusResult) held(p *preview.Plan, held []plan.Change) {
	if len(held) == 0 {
		return
	}
	h := heldStatus{Group: cmp.Or(p.Group.Name, groupName(p.Group.ARN)), TargetGroup: p.Group.ARN, Hash: p.Changes.Hash(p.Group.ARN)}
	for _, c := range held {
		h.Why = append(h.Why, string(c.Hold))
		h.Targets = append(h.Targets, targetevent.Key{ID: c.ID, Port: c.Port, PodUID: c.UID, Pod: c.Pod, Cluster: c.Cluster, Node: c.Node,
			Witness: string(c.Witness), Reason: string(c.Hold), Rule: c.Rule})
		if c.Hold == plan.HeldLimit {
			h.Approve = approval(p.Group.ARN, h.Hash)
		}
	}
	h.Why = unique(h.Why)
	r.Held = append(r.Held, h)
}

// frozen adds what is frozen: the bus, and groups that rules name.
func (r *statusResult) frozen(b busFacts, groups *surveyed) {
	if binding.Frozen(b.tags) {
		r.Frozen = append(r.Frozen, frozenStatus{What: "bus " + r.Bus, ARN: b.arn, Note: b.tags[binding.FreezeTag]})
	}
	seen := map[string]bool{}
	for _, ref := range slices.Sorted(maps.Keys(groups.byRef)) {
		if g := groups.byRef[ref]; binding.Frozen(g.Tags) && !seen[g.ARN] {
			seen[g.ARN] = true
			r.Frozen = append(r.Frozen, frozenStatus{What: "group " + g.Name, ARN: g.ARN, Note: g.Tags[binding.FreezeTag]})
		}
	}
}

// conclude says what is wrong.
func (r *statusResult) conclude() {
	wrong := func(n int, what string) {
		if n > 0 {
			r.Wrong = append(r.Wrong, count(n, what))
		}
	}
	groups := 0
	for i := range r.Groups {
		if !r.Groups[i].Right {
			groups++
		}
	}
	silent := 0
	for _, w := range r.Webhooks {
		if w.Silent {
			silent++
		}
	}
	if groups > 0 {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%d of %s", groups, count(len(r.Groups), "group")))
	}
	wrong(len(r.Invalid), "rule fault")
	if len(r.Frozen) > 0 {
		r.Wrong = append(r.Wrong, "removals frozen")
	}
	wrong(len(r.Unbound), "unbound group")
	wrong(silent, "silent webhook")
	if r.Resync != nil && r.Resync.Silent {
		r.Wrong = append(r.Wrong, "silent resync")
	}
	r.Right = len(r.Wrong) == 0
}

// whole reports whether all was read that there is to know.
func (r *statusResult) whole() bool {
	return len(r.Notes) == 0 && !slices.ContainsFunc(r.Groups, func(g groupStatus) bool { return len(g.Unknown) > 0 })
}

// shownRows bounds each part of the screen: -o json has all.
const shownRows = 8

// table is one screen.
func (r *statusResult) table(w io.Writer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // the table's writer keeps the error
	verdict := "all is right"
	switch {
	case !r.Right:
		verdict = "not right: " + strings.Join(r.Wrong, ", ")
	case !r.whole():
		verdict = "nothing is wrong in what was read"
	}
	line("bus %s: %s", r.Bus, verdict)
	var states []string
	for _, s := range slices.Sorted(maps.Keys(r.States)) {
		states = append(states, fmt.Sprintf("%d %s", r.States[s], s))
	}
	line("%s, %s%s; pods of cluster %s", count(r.Rules, "rule"), count(r.Bindings, "binding"), inBrackets(strings.Join(states, ", ")), orDash(r.Cluster))
	r.groupRows(w, line)
	capped(line, r.Held, func(h heldStatus) string {
		text := fmt.Sprintf("held: %s of group %s, plan %s: %s", count(len(h.Targets), "target"), h.Group, h.Hash, strings.Join(h.Why, "; "))
		if h.Approve != "" {
			text += "\n  let them go: " + h.Approve
		}
		return text
	})
	capped(line, r.Frozen, func(f frozenStatus) string { return fmt.Sprintf("frozen: %s: %s", f.What, f.Note) })
	capped(line, r.Invalid, func(f string) string { return "covers nothing: " + f })
	capped(line, r.Unbound, func(u unboundStatus) string {
		return fmt.Sprintf("no rule names group %s, which is ours and holds %s", u.Group, count(u.Targets, "target"))
	})
	r.pastLines(line)
	capped(line, r.Notes, func(n string) string { return "not known: " + n })
}

// groupRows are the groups that are not right, or of which not all is known.
func (r *statusResult) groupRows(w io.Writer, line func(string, ...any)) {
	var rows []*groupStatus
	for i := range r.Groups {
		if g := &r.Groups[i]; !g.Right || len(g.Unknown) > 0 && r.Cluster != "" || g.WouldDo+g.Later > 0 {
			rows = append(rows, g)
		}
	}
	slices.SortStableFunc(rows, func(a, b *groupStatus) int { return cmp.Compare(truth(a.Right), truth(b.Right)) }) // the wrong ones first
	if len(rows) > 0 {
		line("")
		row(w, "GROUP", "TARGETS", "HEALTHY", "UNHEALTHY", "DRAINING", "MISSING", "EXTRA", "HELD", "NOTE")
	}
	for i, g := range rows {
		if i == shownRows {
			line("and %d more", len(rows)-shownRows)
			break
		}
		missing := fmt.Sprint(g.Missing)
		if len(g.Unknown) > 0 && g.Missing == 0 {
			missing = "" // other clusters' pods may be
		}
		if g.Problem != "" {
			row(w, g.Name, "", "", "", "", "", "", "", "target group "+g.Problem)
			continue
		}
		row(w, g.Name, fmt.Sprint(g.Targets), fmt.Sprint(g.Healthy), fmt.Sprint(g.Unhealthy), fmt.Sprint(g.Draining), missing, number(g.Extra), number(g.Held), g.note())
	}
	if len(rows) > 0 {
		line("")
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// note is what the numbers don't say.
func (s *groupStatus) note() string {
	var out []string
	if s.Later > 0 {
		out = append(out, fmt.Sprintf("%d more go in steps", s.Later))
	}
	if s.WouldDo > 0 {
		out = append(out, fmt.Sprintf("%d in mode observe", s.WouldDo))
	}
	for _, k := range slices.Sorted(maps.Keys(s.Kinds)) {
		switch k {
		case "missing", "extra", "emptied": // the numbers say it
		default:
			out = append(out, fmt.Sprintf("%s %d", k, s.Kinds[k]))
		}
	}
	if len(s.Unknown) > 0 {
		out = append(out, "not known: "+strings.Join(s.Unknown, ", "))
	}
	return strings.Join(out, "; ")
}

func (r *statusResult) pastLines(line func(string, ...any)) {
	if c := r.LastChange; c != nil {
		verb := "changed last"
		if c.WouldDo {
			verb = "would have changed last"
		}
		line("%s: %s ago, group %s: %d registered, %d deregistered, %d failed: %s", verb, age(r.At, c.At), groupName(c.TargetGroup), c.Registered, c.Deregistered, c.Failed, c.Why)
	} else if r.Resync != nil {
		line("changed last: nothing in the last %.0f h", defaultSince.Hours())
	}
	capped(line, r.Webhooks, func(w webhookStatus) string {
		text := fmt.Sprintf("webhook of %s: silent: not heard in the last %.0f min", w.Cluster, heartbeatsBack.Minutes())
		if w.Last != nil {
			text = fmt.Sprintf("webhook of %s: heard %s ago, %d queued, %d dropped", w.Cluster, age(r.At, *w.Last), w.Queue, w.Dropped)
			if w.Silent {
				text += ": silent"
			}
		}
		return text
	})
	if s := r.Resync; s != nil && s.Last != nil {
		text := fmt.Sprintf("resync: heard %s ago, round %d of run %s: %d differences, %d repaired, %d held, %d failed, %d groups not read",
			age(r.At, *s.Last), s.Round, s.RunID, s.Found, s.Repaired, s.Held, s.Failed, s.Unread)
		if s.Silent {
			text += ": silent"
		}
		line("%s", text)
	} else if s != nil {
		line("resync: silent: no round in the last %.0f min", lastRound.Minutes())
	}
}

// capped writes a line for each of the first items.
func capped[T any](line func(string, ...any), items []T, text func(T) string) {
	for i, it := range items {
		if i == shownRows {
			line("and %d more", len(items)-shownRows)
			return
		}
		line("%s", text(it))
	}
}

// age is a time since, as people say it.
func age(now, then time.Time) string { return max(0, now.Sub(then)).Round(time.Second).String() }
