package resync

import (
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/resync/picture"
)

// group is a target group with all bindings that name it.
type group struct {
	claim.Group
	api      Groups
	bindings []binding.Binding
}

// look is one comparison of one group.
type look struct {
	g        claim.Group
	api      paced
	bindings []binding.Binding
	clusters []string // that the bindings cover and that can be read, sorted
	// complete says that every cluster, rule and reference was read to the end; if
	// not, nothing is removed (I8).
	complete bool
	reads    *reads
}

// ruleThatSelected returns the rule of the group whose pattern, as it is now,
// selected the pod then; "" if none did.
func (lk *look) ruleThatSelected(past picture.Past) string {
	for i := range lk.bindings {
		if past.Had(&lk.bindings[i]) {
			return lk.bindings[i].Rule
		}
	}
	return ""
}

// within reports whether the key's address is within the podCIDRs of a binding
// that selected the pod (I18).
func (lk *look) within(past picture.Past, k claim.Key) bool {
	return slices.ContainsFunc(lk.bindings, func(b binding.Binding) bool { return past.Had(&b) && claim.Within(k.ID, b.PodCIDRs) })
}

// emptied reports whether every binding of the group says empty: true, and none
// is disabled.
func (lk *look) emptied() bool {
	return !slices.ContainsFunc(lk.bindings, func(b binding.Binding) bool { return !b.Empty || !b.Enabled })
}

// see returns the pods that the group's bindings select, readings in the place
// of the picture, and what they claim.
func (r *Resync) see(lk *look) (claim.View, []claim.Seen) {
	var pods []claim.Seen
	var selected [][]int
	for _, name := range lk.clusters {
		ps, by := r.pictures[name].Selected(lk.bindings)
		pods, selected = append(pods, ps...), append(selected, by...)
	}
	all, picked := lk.reads.over(pods)
	by := make([][]int, len(all))
	for i, p := range all {
		if picked[i] >= 0 {
			by[i] = selected[picked[i]]
		} else {
			by[i] = r.selects(lk, p)
		}
	}
	v := claim.Look(lk.bindings, lk.g, all, func(pod, b int) bool { return slices.Contains(by[pod], b) })
	return v, all
}

// selects returns the bindings that select a pod that was read, by index.
func (r *Resync) selects(lk *look, p claim.Seen) []int {
	ev := podevent.FromPod(p.Cluster, p.Pod, r.Config.Annotations, r.Now())
	e, err := podmatch.Event(&ev, r.envelope())
	if err != nil {
		r.Log.Error("pod can't be matched", "cluster", p.Cluster, "pod", p.Namespace+"/"+p.Name, "err", err)
		return nil
	}
	var out []int
	for i := range lk.bindings {
		if lk.bindings[i].Pattern.Matches(e) {
			out = append(out, i)
		}
	}
	return out
}

// unclaimed returns the group's keys that are not claimed, sorted; draining ones
// too, since they count against the limits. open says that one does not drain.
func unclaimed(claimed map[claim.Key]bool, current map[claim.Key]plan.Target) (out []claim.Key, open bool) {
	for k, t := range current {
		if !claimed[k] {
			out = append(out, k)
			open = open || t.Health != plan.Draining
		}
	}
	slices.SortFunc(out, claim.Compare)
	return out, open
}

// secondFamily reports whether the group's addresses may be second ones of pods.
func (lk *look) secondFamily(pods []claim.Seen) bool {
	if lk.g.Family == claim.IPv6 {
		return true
	}
	return slices.ContainsFunc(pods, func(p claim.Seen) bool {
		return p.PodIP() != "" && len(claim.Addresses([]string{p.PodIP()}, lk.g.Family)) == 0
	})
}
