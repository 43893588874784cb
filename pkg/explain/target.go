package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// PodVerdict is what one pod has to do with a target under one binding.
type PodVerdict struct {
	Pod string `json:"pod"`
	UID string `json:"uid"`
	Verdict
}

// TargetAnswer is why a target is, or is not, in a group.
type TargetAnswer struct {
	Group  string `json:"group"`
	Target string `json:"target"` // ip:port
	// State is the target's in ELB: its health, or "not registered".
	State       string `json:"state"`
	StateReason string `json:"stateReason,omitempty"`
	// Claimed reports whether a live pod claims it, under whatever binding of the group.
	Claimed bool `json:"claimed"`
	// Pods are the pods with the address, with what each binding of the group
	// says of them: those that claim the target first.
	Pods      []PodVerdict `json:"pods"`
	Rules     []string     `json:"rules"`    // that name the group
	Unread    []string     `json:"unread"`   // clusters, and rules, whose pods could claim it and were not asked
	Invalid   []string     `json:"invalid"`  // rules that cover nothing
	Conclude  string       `json:"conclude"` // in one sentence
	LastCause string       `json:"lastCause"`
}

// ParseKey reads "ip:port", "[ipv6]:port" or "instance:port".
func ParseKey(s string) (claim.Key, error) {
	if a, err := netip.ParseAddrPort(s); err == nil && a.Port() != 0 {
		return claim.Key{ID: a.Addr().Unmap().String(), Port: int32(a.Port())}, nil
	}
	id, port, ok := strings.Cut(s, ":")
	if n, err := strconv.ParseUint(port, 10, 16); ok && err == nil && n > 0 && strings.HasPrefix(id, "i-") {
		return claim.Key{ID: id, Port: int32(n)}, nil
	}
	return claim.Key{}, fmt.Errorf("target %q: want IP:PORT, as in 10.64.1.6:9999 or [fd00::6]:9999", s)
}

// AllClusters stands among the unread for clusters whose names no rule says.
const AllClusters = "every other cluster"

// Target says why the group holds the key, or not. pods are those of the cluster
// that have its address.
func (w *World) Target(g Group, k claim.Key, pods []*podevent.Pod) (TargetAnswer, error) {
	a := TargetAnswer{Group: g.Name, Target: k.String(), Pods: []PodVerdict{}, Rules: []string{}, Unread: []string{}, Invalid: w.invalid(), LastCause: NoCause}
	a.State, a.StateReason = health(g, k)
	of := w.bindingsOf(g)
	for _, b := range of {
		a.Rules = append(a.Rules, ruleName(b.Rule))
		a.Unread = append(a.Unread, w.unread(b)...)
	}
	a.Unread = append(a.Unread, w.unsure()...)
	a.Rules, a.Unread = unique(a.Rules), unique(a.Unread)
	for _, p := range pods {
		e, err := w.event(p)
		if err != nil {
			return TargetAnswer{}, err
		}
		for _, b := range of {
			v := PodVerdict{Pod: p.Namespace + "/" + p.Name, UID: p.UID, Verdict: w.verdict(p, e, b)}
			a.Claimed = a.Claimed || v.Claim == k.String() && b.Enabled
			a.Pods = append(a.Pods, v)
		}
	}
	slices.SortStableFunc(a.Pods, func(x, y PodVerdict) int {
		return -compareBool(x.Claim == k.String(), y.Claim == k.String())
	})
	a.Conclude = conclude(&a, g, of)
	return a, nil
}

// bindingsOf returns the bindings that name the group.
func (w *World) bindingsOf(g Group) []*binding.Binding {
	var out []*binding.Binding
	for i := range w.Bindings {
		b := &w.Bindings[i]
		if known, ok := w.Groups[lint.Ref(b.Group)]; b.Group.ARN == g.ARN || ok && known.Problem == lint.Known && known.ARN == g.ARN {
			out = append(out, b)
		}
	}
	return out
}

// unread returns the clusters that a binding covers and that were not read.
func (w *World) unread(b *binding.Binding) []string {
	names := b.Pattern.Selection().Clusters
	if names == nil {
		return []string{AllClusters}
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == w.Cluster })
}

// unsure returns the rules of which it is not known what group they name.
func (w *World) unsure() []string {
	var out []string
	for i := range w.Bindings {
		b := &w.Bindings[i]
		if g := w.Groups[lint.Ref(b.Group)]; b.Group.ARN == "" && g.Problem == lint.Unread {
			out = append(out, "rule "+ruleName(b.Rule)+", whose group was not read")
		}
	}
	return out
}

func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// conclude says it in one sentence, no surer than what was read.
func conclude(a *TargetAnswer, g Group, of []*binding.Binding) string {
	held := a.State != notRegistered && a.State != notRead
	leaving := a.State == string(plan.Draining)
	elsewhere := ""
	if len(a.Unread) > 0 {
		elsewhere = "; not asked: pods of " + strings.Join(a.Unread, ", ")
	}
	switch {
	case len(of) == 0:
		return "no binding names this group: elbridge leaves it alone" + elsewhere
	case a.Claimed && held && !leaving:
		return "a live pod claims it, and it is registered: as it should be"
	case a.Claimed && leaving:
		return "a live pod claims it while it drains: it is registered again with the next look at the group"
	case a.Claimed:
		return "a live pod claims it, and it is not registered: it is with the next look at the group; if that does not happen, see the registrar's log and dead-letter queue"
	case leaving:
		return "no pod claims it, and it drains" + elsewhere
	case !held:
		return "no pod claims it, and it is not registered: as it should be" + elsewhere
	case g.Tags != nil && !owned(g, of):
		return "no pod claims it" + elsewhere + "; the group is not elbridge's to remove from (no owner tag of the bus, or foreignTargets: keep): it stays unless it can be shown to have been a pod's"
	case binding.Frozen(g.Tags):
		return "no pod claims it" + elsewhere + ": drift; it stays as long as the group is frozen (" + binding.FreezeTag + ": " + g.Tags[binding.FreezeTag] + ")"
	default:
		return "no pod claims it" + elsewhere + ": drift; it is removed within the group's rails when it is next looked at, or held until there is a second witness"
	}
}

func owned(g Group, of []*binding.Binding) bool {
	for _, b := range of {
		if b.KeepForeign {
			return false
		}
	}
	bus, _, _ := strings.Cut(of[0].Rule, ":rule/")
	path := strings.TrimPrefix(of[0].Rule, bus+":rule/")
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		path = path[:i]
	}
	return binding.Owns(g.Tags[binding.OwnerTag], bus+":event-bus/"+path, g.ARN)
}
