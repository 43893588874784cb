package preview

import (
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

// evidence says of a key that nobody claims what witnesses that it may go (I9),
// as far as one reading of the pods shows it. A changed rule is no witness.
func (w *World) evidence(k claim.Key, p *Plan, byAddress map[string][]int) plan.Evidence {
	var living, ended []claim.Seen
	for _, i := range byAddress[k.ID] {
		pod := w.Pods[i]
		switch {
		case pod.HostNetwork && p.view.Rules[pod.ID()] == "": // the host's address is everybody's there
		case pod.Terminating || pod.Finished():
			ended = append(ended, pod)
		default:
			living = append(living, pod)
		}
	}
	slices.SortFunc(living, claim.ComparePods)
	slices.SortFunc(ended, claim.ComparePods)
	for _, pod := range living {
		if rule := p.view.Rules[pod.ID()]; rule != "" { // it is there, and does not ask for traffic
			ev := of(pod, rule)
			if p.view.Emptied[pod.ID()] {
				ev.Witness, ev.Shown = plan.Emptied, p.view.Shows(pod, k)
			}
			return ev
		}
	}
	if len(living) > 0 { // no rule selects it, an emptied one neither: whose the target was is not known
		return of(living[0], "")
	}
	for _, pod := range ended {
		if pod.Finished() { // its object may outlive its hold on the address by days, and nobody saw it end (P046)
			continue
		}
		if rule := p.view.Rules[pod.ID()]; rule != "" && w.Ready != nil && w.Ready(pod.Cluster, pod.NodeName) {
			ev := of(pod, rule)
			ev.Witness, ev.Shown = plan.PodEnded, p.view.Shows(pod, k)
			return ev
		}
	}
	if len(ended) > 0 {
		return p.unknown(of(ended[0], ""))
	}
	return p.unknown(plan.Evidence{})
}

// unknown is the evidence for a key whose address no living pod has, and of which
// it is not known whose it was. A group of which every binding says empty: true,
// and none is disabled, is emptied of those too.
func (p *Plan) unknown(ev plan.Evidence) plan.Evidence {
	keeps := func(b binding.Binding) bool { return !b.Empty || !b.Enabled }
	if len(p.Bindings) > 0 && !slices.ContainsFunc(p.Bindings, keeps) {
		ev.Witness, ev.Rule = plan.Emptied, p.Bindings[0].Rule
	}
	return ev
}

func of(p claim.Seen, rule string) plan.Evidence {
	return plan.Evidence{Cluster: p.Cluster, Pod: p.Namespace + "/" + p.Name, UID: p.UID, Node: p.NodeName, Rule: rule}
}
