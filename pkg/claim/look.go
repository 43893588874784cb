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

// View is what some pods claim of a group, all its bindings considered.
type View struct {
	Claims    []Claim            // by enabled bindings: to be registered; sorted
	Protected map[Key]bool       // claimed under a disabled rule: not registered, not removed (I8)
	Rules     map[string]string  // by UID, the rule that selects the pod; one that manages, if any does
	Within    map[string]bool    // by UID, true where an address is within the podCIDRs of a binding that selects the pod
	Refusals  map[string]Refusal // by UID, of selected pods that claim nothing
	Emptied   map[string]bool    // by UID, true where every enabled binding that selects the pod says empty: true
	Portless  []Portless         // sorted
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
	v := View{Claims: make([]Claim, 0, len(pods)), Protected: map[Key]bool{}, Rules: make(map[string]string, len(pods)),
		Within: map[string]bool{}, Refusals: map[string]Refusal{}, Emptied: map[string]bool{}}
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
		return cmp.Or(cmp.Compare(observed[a.Rule], observed[b.Rule]), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.UID, b.UID))
	})
	slices.SortFunc(v.Portless, func(a, b Portless) int {
		return cmp.Or(cmp.Compare(a.Binding, b.Binding), ComparePods(a.Pod, b.Pod))
	})
	return v
}

// add puts a pod into the view that binding j selects. empties says that some
// binding says empty: true.
func (v *View) add(p Seen, bs []binding.Binding, j int, g Group, observed map[string]int, empties bool) {
	b := &bs[j]
	if rule := v.Rules[p.UID]; rule == "" || b.Mode == binding.Manage && observed[rule] == 1 {
		v.Rules[p.UID] = b.Rule
	}
	if Within(p.Pod, b) {
		v.Within[p.UID] = true
	}
	k, refusal := Of(p.Pod, b, g)
	if b.Enabled && empties {
		others, met := v.Emptied[p.UID]
		v.Emptied[p.UID] = refusal == RefusedEmpty && (others || !met)
	}
	switch {
	case refusal != None:
		v.Refusals[p.UID] = refusal
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

// Within reports whether the binding has podCIDRs and one holds an address of
// the pod.
func Within(p *podevent.Pod, b *binding.Binding) bool {
	if len(b.PodCIDRs) == 0 {
		return false
	}
	return slices.ContainsFunc(p.PodIPs, func(ip string) bool {
		a, err := netip.ParseAddr(ip)
		return err == nil && Allowed(a.Unmap().WithZone(""), b.PodCIDRs)
	})
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
