package claim

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Seen is a pod as it was read, and where.
type Seen struct {
	Cluster string
	*podevent.Pod
}

// PodID tells pods of all clusters apart: clusters that were restored from one
// backup share UIDs.
type PodID struct{ Cluster, UID string }

// ID returns the pod's.
func (s Seen) ID() PodID { return PodID{s.Cluster, s.UID} }

// View is what some pods claim of a group, all its bindings considered.
type View struct {
	Claims    []Claim                  // by enabled bindings: to be registered; sorted
	Protected map[Key]bool             // claimed under a disabled rule: not registered, not removed (I8)
	Rules     map[PodID]string         // the rule that selects the pod; one that manages, if any does
	CIDRs     map[PodID][]netip.Prefix // podCIDRs of the bindings that select the pod
	Refusals  map[PodID]Refusal        // of selected pods that claim nothing
	Emptied   map[PodID]bool           // true where every enabled binding that selects the pod says empty: true
	Portless  []Portless               // sorted
}

// Portless is a pod that declares no container port of the name that a binding
// has: what is wrong is the binding's, or the pod's, and people are told of it.
type Portless struct {
	Binding int // index
	Pod     Seen
}

// Problem says in words what is wrong; port is the name that the binding has.
func (p Portless) Problem(port string) string {
	return fmt.Sprintf("port %q: %s, such as %s/%s in cluster %s", port, NoPort, p.Pod.Namespace, p.Pod.Name, p.Pod.Cluster)
}

// Look asks of each pod what it claims in g under each of the group's bindings
// (I2). selects reports whether a binding selects a pod, both by index. Equal
// pods in any order give an equal view (I3).
func Look(bs []binding.Binding, g Group, pods []Seen, selects func(pod, binding int) bool) View {
	v := View{Claims: make([]Claim, 0, len(pods)), Protected: map[Key]bool{}, Rules: make(map[PodID]string, len(pods)),
		CIDRs: map[PodID][]netip.Prefix{}, Refusals: map[PodID]Refusal{}, Emptied: map[PodID]bool{}}
	observed := observedRules(bs)
	empties := slices.ContainsFunc(bs, func(b binding.Binding) bool { return b.Empty })
	for i, p := range pods {
		for j := range bs {
			if selects(i, j) {
				v.add(p, bs, j, g, observed, empties)
			}
		}
	}
	// One rule's word for a key, whatever order the pods came in (I3); one that
	// manages, if any does.
	slices.SortFunc(v.Claims, func(a, b Claim) int {
		if by := Compare(a.Key, b.Key); by != 0 {
			return by
		}
		return cmp.Or(cmp.Compare(observed[a.Rule], observed[b.Rule]), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.UID, b.UID))
	})
	slices.SortFunc(v.Portless, func(a, b Portless) int {
		return cmp.Or(cmp.Compare(a.Binding, b.Binding), ComparePods(a.Pod, b.Pod))
	})
	return v
}

// add puts a pod into the view that binding j selects. empties says that some
// binding says empty: true.
func (v *View) add(p Seen, bs []binding.Binding, j int, g Group, observed map[string]int, empties bool) {
	b, id := &bs[j], p.ID()
	if rule := v.Rules[id]; rule == "" || b.Mode == binding.Manage && observed[rule] == 1 {
		v.Rules[id] = b.Rule
	}
	if len(b.PodCIDRs) > 0 {
		v.CIDRs[id] = append(v.CIDRs[id], b.PodCIDRs...)
	}
	k, refusal := Of(p.Pod, b, g)
	if b.Enabled && empties {
		others, met := v.Emptied[id]
		v.Emptied[id] = refusal == RefusedEmpty && (others || !met)
	}
	switch {
	case refusal != None:
		v.Refusals[id] = refusal
		if refusal == NoPort {
			v.Portless = append(v.Portless, Portless{Binding: j, Pod: p})
		}
	case !b.Enabled:
		v.Protected[k] = true
	default:
		v.Claims = append(v.Claims, Claim{Key: k, Cluster: p.Cluster, Pod: p.Namespace + "/" + p.Name, UID: p.UID, Node: p.NodeName, Rule: b.Rule})
	}
}

// observedRules has a 1 for each rule that is observed for the group.
func observedRules(bs []binding.Binding) map[string]int {
	out := map[string]int{}
	for i := range bs {
		if bs[i].Mode == binding.Observe {
			out[bs[i].Rule] = 1
		}
	}
	return out
}

// Shows reports whether the pod, if it has the key's address, shows that the
// target was elbridge's: the address is within the podCIDRs of a binding that
// selects the pod (I18).
func (v View) Shows(p Seen, k Key) bool { return Within(k.ID, v.CIDRs[p.ID()]) }

// Within reports whether there are CIDRs and one holds the address.
func Within(id string, cidrs []netip.Prefix) bool {
	a, err := netip.ParseAddr(id)
	return err == nil && len(cidrs) > 0 && Allowed(a.Unmap().WithZone(""), cidrs)
}

// Keys returns the keys that v claims, protected ones included.
func (v View) Keys() map[Key]bool {
	out := make(map[Key]bool, len(v.Claims)+len(v.Protected))
	for _, c := range v.Claims {
		out[c.Key] = true
	}
	for k := range v.Protected {
		out[k] = true
	}
	return out
}

// ComparePods orders pods by cluster, namespace, name and UID.
func ComparePods(a, b Seen) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
