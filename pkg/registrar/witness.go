package registrar

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// goneMaxAge is how young a hint must be that witnesses, after a 404, that its
// pod is gone (I9): VPC CNI gives an address to nobody else for about 30 s.
const goneMaxAge = 30 * time.Second

// evidence says of each unclaimed key what witnesses that it may go (I9). Nodes
// that can't be read are an error; a node that does not exist is not Ready.
func (r *Registrar) evidence(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, v claim.View, everyone []claim.Seen, cands []claim.Key) (map[claim.Key]plan.Evidence, error) {
	byID := map[string][]claim.Seen{}
	for _, p := range everyone {
		for _, id := range claim.Addresses(p.PodIPs, w.Group.Family) {
			byID[id] = append(byID[id], p)
		}
	}
	nodes, err := r.nodesReady(ctx, hs, w.added, byID, cands)
	if err != nil {
		return nil, err
	}
	out := make(map[claim.Key]plan.Evidence, len(cands))
	for _, k := range cands {
		out[k] = r.judge(k, w, bs, hs, v, byID[k.ID], nodes)
	}
	return out, nil
}

// judge is evidence for one key. owners are the pods whose status shows its
// address, none of which claims it.
func (r *Registrar) judge(k claim.Key, w *groupWork, bs []binding.Binding, hs []*hint, v claim.View, owners []claim.Seen, ready map[[2]string]bool) plan.Evidence {
	ev := attribution(k, w, bs, hs)
	owners = slices.DeleteFunc(slices.Clone(owners), func(p claim.Seen) bool { // the host's address is everybody's there
		return p.HostNetwork && v.Rules[p.ID()] == "" && hintOf(hs, p.UID) == nil
	})
	slices.SortFunc(owners, claim.ComparePods) // the same evidence in whatever order they were read
	var living []claim.Seen
	for _, p := range owners {
		if p.Terminating || p.Finished() {
			continue
		}
		if v.Rules[p.ID()] != "" { // it is there, and only does not ask for traffic now
			ev = of(p, ruleBehind(p, bs, hs, v))
			if v.Emptied[p.ID()] {
				ev.Witness, ev.Shown = plan.Emptied, v.Shows(p, k)
			}
			return ev
		}
		living = append(living, p)
	}
	for _, p := range living {
		if rule := r.deselected(hs, w, bs, p); rule != "" {
			ev = of(p, rule)
			ev.Witness = plan.Deselected
			return ev
		}
	}
	if len(living) > 0 {
		if p := living[0]; !p.HostNetwork && namedForAnother(hs, k.ID, p.UID, w.Group.Family) {
			ev.Witness = plan.OtherOwner
		}
		return ev
	}
	for _, p := range owners {
		if rule := endedUnder(p, bs, hs, v, k.ID, w.Group.Family); rule != "" && ready[[2]string{p.Cluster, p.NodeName}] {
			ev = of(p, rule)
			ev.Witness, ev.Shown = plan.PodEnded, v.Shows(p, k)
			return ev
		}
	}
	if len(owners) == 0 && r.goneFrom(k.ID, w, hs, ready) {
		ev.Witness = plan.PodGone
	}
	return ev
}

// of attributes a key to a pod and the rule that selects it.
func of(p claim.Seen, rule string) plan.Evidence {
	return plan.Evidence{Cluster: p.Cluster, Pod: p.Namespace + "/" + p.Name, UID: p.UID, Node: p.NodeName, Rule: rule}
}

// endedUnder returns the rule behind an ended pod, and "" if the pod is not known
// to be the one behind the key: its object may outlive its hold on the address by
// days (P046).
func endedUnder(p claim.Seen, bs []binding.Binding, hs []*hint, v claim.View, id string, f claim.Family) string {
	if hintOf(hs, p.UID) == nil && namedForAnother(hs, id, p.UID, f) {
		return ""
	}
	return ruleBehind(p, bs, hs, v)
}

// ruleBehind returns the rule that selects a pod or whose hint names it, one that
// manages if any does: what a rule has registered it may take out, though by now
// an observed rule selects the pod.
func ruleBehind(p claim.Seen, bs []binding.Binding, hs []*hint, v claim.View) string {
	rule := v.Rules[p.ID()]
	for _, h := range hs {
		if h.Detail.UID == p.UID && (rule == "" || binding.ModeOf(bs, rule) == binding.Observe) {
			rule = h.bind.Rule
		}
	}
	return rule
}

// namedForAnother reports whether a hint names the address for another pod than
// this one: the target was that pod's.
func namedForAnother(hs []*hint, id, uid string, f claim.Family) bool {
	return slices.ContainsFunc(hs, func(h *hint) bool { return h.Detail.UID != uid && h.touches(id, f) })
}

// goneFrom reports whether a pod with this address is gone, by a hint young
// enough to name UID and node, or by a reading of our own a moment ago.
func (r *Registrar) goneFrom(id string, w *groupWork, hs []*hint, ready map[[2]string]bool) bool {
	for _, h := range hs {
		d := h.Detail
		if h.gone && h.touches(id, w.Group.Family) && d.UID != "" && h.age(r.Now()) < goneMaxAge && ready[[2]string{d.Cluster, d.NodeName}] {
			return true
		}
	}
	return slices.ContainsFunc(w.added, func(c claim.Claim) bool { return c.ID == id && ready[[2]string{c.Cluster, c.Node}] })
}

// deselected returns the rule that the pod's own labels lost: a hint carries
// labels that a rule, as it is now, selects, and the pod has others. A changed
// rule selects neither.
func (r *Registrar) deselected(hs []*hint, w *groupWork, bs []binding.Binding, p claim.Seen) (rule string) {
	for _, c := range w.added { // by a reading of ours a moment ago: it is put back as it was
		if c.UID == p.UID {
			return c.Rule
		}
	}
	for _, h := range hs {
		if h.Detail.UID != p.UID {
			continue
		}
		was := []podevent.Pod{*p.Pod, *p.Pod}
		was[0].Labels, was[0].Annotations = h.Detail.Labels, h.Detail.Annotations
		if h.Detail.Previous != nil && h.Detail.Previous.Labels != nil {
			was[1].Labels = h.Detail.Previous.Labels
		}
		for i := range was {
			e, err := r.event(w, claim.Seen{Cluster: p.Cluster, Pod: &was[i]})
			if err != nil {
				continue
			}
			for _, b := range bs {
				if b.Pattern.Matches(e) && (rule == "" || binding.ModeOf(bs, rule) == binding.Observe) {
					rule = b.Rule
				}
			}
		}
	}
	return rule
}

// attribution names the hint or the registration behind a key, as far as one is:
// of several hints the first whose rule manages, so that their order decides
// nothing (I3).
func attribution(k claim.Key, w *groupWork, bs []binding.Binding, hs []*hint) plan.Evidence {
	var ev plan.Evidence
	for _, h := range hs {
		if !h.touches(k.ID, w.Group.Family) || ev.Rule != "" && binding.ModeOf(bs, h.bind.Rule) == binding.Observe {
			continue
		}
		d := h.Detail
		ev = plan.Evidence{Cluster: d.Cluster, Pod: d.Namespace + "/" + d.Name, UID: d.UID, Node: d.NodeName, Rule: h.bind.Rule}
		if binding.ModeOf(bs, h.bind.Rule) == binding.Manage {
			return ev
		}
	}
	for _, c := range w.added {
		if ev.Rule == "" && c.ID == k.ID {
			return plan.Evidence{Cluster: c.Cluster, Pod: c.Pod, UID: c.UID, Node: c.Node, Rule: c.Rule}
		}
	}
	return ev
}

// hintOf returns the hint of that pod, or nil.
func hintOf(hs []*hint, uid string) *hint {
	for _, h := range hs {
		if h.Detail.UID == uid {
			return h
		}
	}
	return nil
}

// nodesReady reads the nodes of the pods that hints name, that were registered
// here and that have the addresses, each once.
func (r *Registrar) nodesReady(ctx context.Context, hs []*hint, added []claim.Claim, byID map[string][]claim.Seen, cands []claim.Key) (map[[2]string]bool, error) {
	want := map[[2]string]bool{}
	for _, h := range hs {
		if h.Detail.NodeName != "" {
			want[[2]string{h.Detail.Cluster, h.Detail.NodeName}] = false
		}
	}
	for _, c := range added {
		want[[2]string{c.Cluster, c.Node}] = false
	}
	for _, k := range cands {
		for _, p := range byID[k.ID] {
			if p.NodeName != "" {
				want[[2]string{p.Cluster, p.NodeName}] = false
			}
		}
	}
	ready := make(map[[2]string]bool, len(want))
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for n := range want {
		g.Go(func() error {
			node, err := r.Clusters[n[0]].Node(ctx, n[1])
			if err != nil && !errors.Is(err, cluster.ErrNotFound) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			ready[n] = err == nil && node.Ready
			return nil
		})
	}
	return ready, g.Wait()
}
