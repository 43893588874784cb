package registrar

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/reconcile"
)

// owned is who has the candidate addresses now.
type owned struct {
	mu   sync.Mutex
	pods map[[2]string]claim.Seen // by cluster and UID: readings of one name may be of two pods
}

func (o *owned) add(clusterName string, ps ...claim.Seen) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range ps {
		o.pods[[2]string{clusterName, p.UID}] = p
	}
}

func (o *owned) all() []claim.Seen {
	out := make([]claim.Seen, 0, len(o.pods))
	for _, p := range o.pods {
		out = append(out, p)
	}
	return out
}

// owners asks every cluster that a binding of the group covers who has the
// addresses (I2). One cluster that can't be asked is an error: the removal of an
// address needs every one of them.
func (r *Registrar) owners(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, cands []claim.Key) (*owned, error) {
	names := r.clustersOf(bs)
	for _, name := range names {
		if _, known := r.Clusters[name]; !known {
			return nil, errUnknownCluster(name)
		}
	}
	o := &owned{pods: map[[2]string]claim.Seen{}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	asked := map[string]bool{}
	for _, name := range names {
		api := r.Clusters[name]
		for _, k := range cands {
			if asked[name+"\x00"+k.ID] {
				continue
			}
			asked[name+"\x00"+k.ID] = true
			g.Go(func() error {
				pods, err := api.PodsByIP(ctx, k.ID)
				for _, p := range pods {
					o.add(name, claim.Seen{Cluster: name, Pod: p})
				}
				return err
			})
		}
		if secondFamily(hs, w.Group.Family) {
			for i := range bs {
				g.Go(func() error { return o.bySelection(ctx, name, api, &bs[i]) })
			}
		}
	}
	return o, g.Wait()
}

// bySelection lists a binding's pods: the API server can't be asked for an
// address of the second family.
func (o *owned) bySelection(ctx context.Context, name string, api reconcile.Cluster, b *binding.Binding) error {
	sel := b.Pattern.Selection()
	namespaces := sel.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, ns := range namespaces {
		pods, err := api.Pods(ctx, ns, sel.LabelSelector())
		if err != nil {
			return err
		}
		for _, p := range pods {
			o.add(name, claim.Seen{Cluster: name, Pod: p})
		}
	}
	return nil
}

// secondFamily reports whether the group's family is not the first of the pods'.
func secondFamily(hs []*hint, f claim.Family) bool {
	for _, h := range hs {
		if ip := h.Detail.PodIP; ip != "" && len(claim.Addresses([]string{ip}, f)) == 0 {
			return true
		}
	}
	return false
}

// clustersOf returns the clusters that the bindings cover: those their patterns
// pin, or all.
func (r *Registrar) clustersOf(bs []binding.Binding) []string {
	set := map[string]bool{}
	for i := range bs {
		pinned := bs[i].Pattern.Selection().Clusters
		if pinned == nil {
			return sortedNames(r.Clusters)
		}
		for _, c := range pinned {
			set[c] = true
		}
	}
	return sortedNames(set)
}

type errUnknownCluster string

func (e errUnknownCluster) Error() string {
	return "a rule covers cluster " + string(e) + ", which this registrar can't read: add it to the list of clusters, or take it out of the rule"
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
