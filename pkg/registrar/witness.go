package registrar

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
)

// goneMaxAge is how young a hint must be that witnesses, after a 404, that its
// pod is gone (I9): VPC CNI gives an address to nobody else for about 30 s.
const goneMaxAge = 30 * time.Second

// evidence says of each unclaimed key what witnesses that it may go (I9). Nodes
// that can't be read are an error; a node that does not exist is not Ready.
func (r *Registrar) evidence(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, v view, everyone []seen, cands []claim.Key) (map[claim.Key]plan.Evidence, error) {
	byID := map[string][]seen{}
	for _, p := range everyone {
		for _, id := range claim.Addresses(p.PodIPs, w.g.Family) {
			byID[id] = append(byID[id], p)
		}
	}
	nodes, err := r.nodesReady(ctx, hs, byID, cands)
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
func (r *Registrar) judge(k claim.Key, w *groupWork, bs []binding.Binding, hs []*hint, v view, owners []seen, ready map[[2]string]bool) plan.Evidence {
	ev := r.attribution(k, w, hs)
	slices.SortFunc(owners, func(a, b seen) int { // the same evidence in whatever order they were read
		return compareSeen(a, b)
	})
	for _, p := range owners {
		if p.Terminating || p.Finished() {
			continue
		}
		h := hintOf(hs, p.UID)
		switch {
		case v.selected[p.UID]: // it is there, and only does not ask for traffic now
			return ev
		case h == nil:
			ev.Witness = plan.OtherOwner
		case r.deselected(h, w, p):
			ev.Witness = plan.Deselected
		}
		return ev
	}
	for _, p := range owners {
		ours := v.selected[p.UID] || hintOf(hs, p.UID) != nil
		if ours && ready[[2]string{p.cluster, p.NodeName}] {
			return plan.Evidence{Witness: plan.PodEnded, Shown: v.selected[p.UID] && v.within[p.UID], Cluster: p.cluster,
				Pod: p.Namespace + "/" + p.Name, UID: p.UID, Node: p.NodeName, Rule: ev.Rule}
		}
	}
	if len(owners) > 0 {
		return ev
	}
	for _, h := range hs {
		d := h.Detail
		if h.gone && h.touches(k.ID, w.g.Family) && d.UID != "" && h.age(r.Now()) < goneMaxAge && ready[[2]string{d.Cluster, d.NodeName}] {
			ev.Witness = plan.PodGone
			return ev
		}
	}
	return ev
}

// deselected reports whether the pod's own labels changed from selected to not:
// the hint carries labels that the rule, as it is now, selects, and the pod has
// others (a changed rule selects neither).
func (r *Registrar) deselected(h *hint, w *groupWork, p seen) bool {
	if maps.Equal(h.Detail.Labels, p.Labels) && h.Detail.Previous == nil {
		return false
	}
	was := *p.Pod
	was.Labels = h.Detail.Labels
	if e, err := r.event(w, seen{p.cluster, &was}); err == nil && h.bind.Pattern.Matches(e) {
		return true
	}
	if h.Detail.Previous == nil || h.Detail.Previous.Labels == nil {
		return false
	}
	was.Labels = h.Detail.Previous.Labels
	e, err := r.event(w, seen{p.cluster, &was})
	return err == nil && h.bind.Pattern.Matches(e)
}

// attribution names the hint behind a key, as far as one is.
func (r *Registrar) attribution(k claim.Key, w *groupWork, hs []*hint) plan.Evidence {
	for _, h := range hs {
		if h.touches(k.ID, w.g.Family) {
			d := h.Detail
			return plan.Evidence{Cluster: d.Cluster, Pod: d.Namespace + "/" + d.Name, UID: d.UID, Node: d.NodeName, Rule: h.bind.Rule}
		}
	}
	return plan.Evidence{Rule: hs[0].bind.Rule}
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

// nodesReady reads the nodes of the hints' pods and of the owners, each once.
func (r *Registrar) nodesReady(ctx context.Context, hs []*hint, byID map[string][]seen, cands []claim.Key) (map[[2]string]bool, error) {
	want := map[[2]string]bool{}
	for _, h := range hs {
		if h.Detail.NodeName != "" {
			want[[2]string{h.Detail.Cluster, h.Detail.NodeName}] = false
		}
	}
	for _, k := range cands {
		for _, p := range byID[k.ID] {
			if p.NodeName != "" {
				want[[2]string{p.cluster, p.NodeName}] = false
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
