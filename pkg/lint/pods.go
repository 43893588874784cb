package lint

import (
	"fmt"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// selectPods gives each binding the pods that it selects, in one pass over the
// pods. A pod that no event could carry is selected by none.
func (l *linter) selectPods() {
	if len(l.in.Pods) == 0 {
		return
	}
	patterns := make([]*eventpattern.Pattern, len(l.bound))
	for i, b := range l.bound {
		patterns[i] = b.Pattern
	}
	set := eventpattern.NewSet(patterns)
	for i := range l.in.Pods {
		p := &l.in.Pods[i]
		e, err := parsed(podevent.FromPod(p.Cluster, p.Pod, l.in.Annotations, l.in.At))
		if err != nil {
			continue
		}
		for _, hit := range set.Matches(e) {
			l.bound[hit].selected = append(l.bound[hit].selected, p)
		}
	}
}

func (p *Pod) name() string { return p.Namespace + "/" + p.Name }

// both returns the names of pods that two bindings select.
func both(a, b *bound) []string {
	in := make(map[*Pod]bool, len(a.selected))
	for _, p := range a.selected {
		in[p] = true
	}
	var out []string
	for _, p := range b.selected {
		if in[p] {
			out = append(out, p.name())
		}
	}
	return out
}

// pods judges a binding by the pods that there are.
func (l *linter) pods(b *bound) {
	if !l.reads(b) {
		return
	}
	pods := b.selected
	if len(pods) == 0 {
		f := b.of(MatchesNoPod)
		f.Path = "EventPattern"
		f.Message = fmt.Sprintf("no pod of %s matches now", list(l.in.Clusters))
		f.Fix = "ask: elbridge explain POD -n NAMESPACE, for a pod that should"
		if b.Empty || !b.Enabled {
			f.Severity = Info
		}
		l.add(f)
		return
	}
	g, known := l.in.Groups[Ref(b.Group)]
	if !known || g.Problem != Known {
		return
	}
	l.claims(b, g, pods)
	l.grace(b, g, pods)
}

// reads reports whether clusters were read that the binding covers.
func (l *linter) reads(b *bound) bool {
	want := b.Pattern.Selection().Clusters
	return len(l.in.Clusters) > 0 && (want == nil || slices.ContainsFunc(l.in.Clusters, func(c string) bool { return slices.Contains(want, c) }))
}

// claims says why no selected pod claims a target, where a reason lies in the
// binding and not in the pods' lives.
func (l *linter) claims(b *bound, g Group, pods []*Pod) {
	why := map[claim.Refusal]int{}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *Pod) bool { return len(p.PodIPs) == 0 }) // they have only begun
	for _, p := range pods {
		_, refusal := claim.Of(p.Pod, &b.Binding, g.Group)
		why[refusal]++
	}
	for _, refusal := range []claim.Refusal{claim.NoPort, claim.Outside, claim.Pending} {
		if len(pods) == 0 || why[refusal] != len(pods) {
			continue
		}
		f := b.of(ClaimsNothing)
		f.Message = fmt.Sprintf("%d selected, and none can be registered: %s", len(pods), refusal)
		switch refusal {
		case claim.NoPort:
			f.Path, f.Fix = "$.binding.port", "give the number, or name the container port "+b.Port.Name
		case claim.Outside:
			f.Path, f.Fix = "$.binding.podCIDRs", "add the pods' block"
		default:
			f.Path, f.Fix = "$.binding.targetGroup", fmt.Sprintf("the group's family is %s: give the pods such addresses, or use a group of theirs", g.Family)
		}
		l.add(f)
	}
}

// grace compares how long pods live after their deletion with how long the load
// balancer may go on using them (P020).
func (l *linter) grace(b *bound, g Group, pods []*Pod) {
	shortest, of := time.Duration(-1), ""
	for _, p := range pods {
		if t := p.TerminationGracePeriod; t >= 0 && (of == "" || t < shortest) {
			shortest, of = t, p.name()
		}
	}
	if of == "" {
		return
	}
	f := b.of(ShortGrace)
	need := g.propagation()
	switch {
	case need > 0 && shortest < need:
		f.Message = fmt.Sprintf("pod %s has %s to end, and the load balancer may send new connections for %s after its deregistration", of, shortest, need)
		f.Fix = fmt.Sprintf("terminationGracePeriodSeconds of more than %.0f, and a preStop hook that sleeps for %.0f s", need.Seconds(), need.Seconds())
		l.add(f)
	case g.DeregistrationDelay > shortest:
		f.Check = GraceBelowDrain
		f.Message = fmt.Sprintf("pod %s has %s to end, the group's deregistration delay is %s: requests that last longer are cut off", of, shortest, g.DeregistrationDelay)
		f.Fix = "a longer terminationGracePeriodSeconds, or a delay no longer than it"
		l.add(f)
	}
}
