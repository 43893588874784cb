package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Plan is what one comparison of a group finds under a side's bindings.
type Plan struct {
	Group    *Group
	Bindings []binding.Binding // that name the group
	Claims   []claim.Claim
	Claimed  map[claim.Key]bool // protected ones included
	// Changes are as if every binding managed: Parts divides them by mode.
	Changes plan.Changes
	// Doubt says what was not read of what the group depends on. With doubt all
	// removals are held (I8).
	Doubt []string
	maybe []string // of it, what a mended rule ends
	view  claim.View
}

// Plans compares each group that the bindings name, by ARN.
func (w *World) Plans(s Side) ([]Plan, error) {
	ps, err := w.sides([]Side{s}, nil)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(ps[0]), func(a, b Plan) int { return cmp.Compare(a.Group.ARN, b.Group.ARN) }), nil
}

// Parts divides changes into those that are made and those that are only told of
// (I19).
func (p *Plan) Parts() (made, told plan.Changes) {
	split := func(cs []plan.Change, made, told *[]plan.Change) {
		for _, c := range cs {
			if binding.ModeOf(p.Bindings, c.Rule) == binding.Observe {
				*told = append(*told, c)
			} else {
				*made = append(*made, c)
			}
		}
	}
	split(p.Changes.Register, &made.Register, &told.Register)
	split(p.Changes.Deregister, &made.Deregister, &told.Deregister)
	split(p.Changes.Held, &made.Held, &told.Held)
	split(p.Changes.Later, &made.Later, &told.Later)
	return made, told
}

// sides makes the plans of each side, by group; only of groups that are asked
// for, unless only is nil.
func (w *World) sides(sides []Side, only map[string]bool) ([]map[string]Plan, error) {
	sel, err := w.match(sides)
	if err != nil {
		return nil, err
	}
	byAddress := w.byAddress()
	out := make([]map[string]Plan, len(sides))
	for i, s := range sides {
		out[i] = map[string]Plan{}
		of := map[string][]int{} // bindings by group
		unclear := slices.Clone(s.Unclear)
		for j := range s.Bindings {
			switch arn := s.Bindings[j].Group.ARN; {
			case arn == "":
				unclear = append(unclear, fmt.Sprintf("rule %s: it is not known which group it names", RuleName(s.Bindings[j].Rule)))
			case only == nil || only[arn]:
				of[arn] = append(of[arn], j)
			}
		}
		for arn := range only { // of those that no rule names any more, only that
			out[i][arn] = Plan{Group: w.group(arn), Doubt: slices.Concat(unclear, s.Maybe[arn]), maybe: s.Maybe[arn]}
		}
		for arn, js := range of {
			out[i][arn] = w.plan(w.group(arn), s.Bindings, js, sel[i], byAddress, unclear, s.Maybe[arn])
		}
	}
	return out, nil
}

// plan is the comparison of one group, whose bindings are those at js.
func (w *World) plan(g *Group, all []binding.Binding, js []int, sel []map[int]bool, byAddress map[string][]int, unclear, maybe []string) Plan {
	p := Plan{Group: g, Doubt: slices.Concat(unclear, maybe), maybe: maybe}
	for _, j := range js {
		p.Bindings = append(p.Bindings, all[j])
		p.Doubt = append(p.Doubt, w.unread(&all[j])...)
	}
	if g.Problem != "" {
		p.Doubt = append(p.Doubt, "target group "+g.Problem)
	} else if g.Targets == nil {
		p.Doubt = append(p.Doubt, "its targets were not read")
	}
	slices.Sort(p.Doubt)
	p.Doubt = slices.Compact(p.Doubt)
	pods, at := w.concerned(g, js, sel, byAddress)
	p.view = claim.Look(p.Bindings, g.Group, pods, func(pod, b int) bool { return sel[js[b]][at[pod]] })
	p.Claims, p.Claimed = p.view.Claims, p.view.Keys()
	if g.Problem != "" || g.Targets == nil {
		return p
	}
	evidence := map[claim.Key]plan.Evidence{}
	for k := range g.Targets {
		if !p.Claimed[k] {
			evidence[k] = w.evidence(k, &p, byAddress)
		}
	}
	p.Changes = plan.Diff(p.Claims, evidence, g.Targets, p.limits())
	return p
}

// concerned are the pods that bindings of the group select, and those that have
// an address which it holds, each once, with their indices.
func (w *World) concerned(g *Group, js []int, sel []map[int]bool, byAddress map[string][]int) (pods []claim.Seen, at []int) {
	set := map[int]bool{}
	for _, j := range js {
		maps.Copy(set, sel[j])
	}
	for k := range g.Targets {
		for _, i := range byAddress[k.ID] {
			set[i] = true
		}
	}
	at = slices.Sorted(maps.Keys(set))
	for _, i := range at {
		pods = append(pods, w.Pods[i])
	}
	return pods, at
}

// limits are the strictest rails of the group's bindings, with the owner's and
// the operators' word.
func (p *Plan) limits() plan.Limits {
	lim := plan.Limits{Complete: len(p.Doubt) == 0, Owned: p.Group.Owned, Frozen: p.Group.Frozen, MaxRemovalPercent: 100}
	for i := range p.Bindings {
		b := &p.Bindings[i]
		lim.MaxRemovalPercent = min(lim.MaxRemovalPercent, b.MaxRemovalPercent)
		lim.MinTargets = max(lim.MinTargets, b.MinTargets)
		lim.Owned = lim.Owned && !b.KeepForeign
	}
	return lim
}

// unread says which clusters a binding covers that were not read.
func (w *World) unread(b *binding.Binding) []string {
	names := b.Pattern.Selection().Clusters
	if names == nil {
		names = w.Clusters
	}
	if names == nil {
		names = []string{everyOther}
	}
	var out []string
	for _, n := range names {
		if !slices.Contains(w.Read, n) {
			out = append(out, "the pods of "+clusterWords(n)+" were not read")
		}
	}
	return out
}

func clusterWords(name string) string {
	if name == everyOther {
		return name
	}
	return "cluster " + name
}

// match tells for each binding of each side which pods it selects, in one pass
// over the pods.
func (w *World) match(sides []Side) ([][]map[int]bool, error) {
	var patterns []*eventpattern.Pattern
	out := make([][]map[int]bool, len(sides))
	type place struct{ side, binding int }
	var places []place
	for i, s := range sides {
		out[i] = make([]map[int]bool, len(s.Bindings))
		for j := range s.Bindings {
			out[i][j] = map[int]bool{}
			patterns = append(patterns, s.Bindings[j].Pattern)
			places = append(places, place{i, j})
		}
	}
	m := podmatch.New(eventpattern.NewSet(patterns), w.envelope())
	for i, p := range w.Pods {
		e := podevent.FromPod(p.Cluster, p.Pod, w.Annotations, w.At)
		hits, err := m.Match(&e)
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s of cluster %s: %w", p.Namespace, p.Name, p.Cluster, err)
		}
		for _, h := range hits {
			out[places[h].side][places[h].binding][i] = true
		}
	}
	return out, nil
}

// byAddress finds pods by any of their addresses, in ELB's spelling.
func (w *World) byAddress() map[string][]int {
	out := map[string][]int{}
	for i, p := range w.Pods {
		for _, f := range []claim.Family{claim.IPv4, claim.IPv6} {
			for _, a := range claim.Addresses(p.PodIPs, f) {
				out[a] = append(out[a], i)
			}
		}
	}
	return out
}

// RuleName is the name in a rule's ARN.
func RuleName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
