package resync

import (
	"context"
	"errors"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// parallelReads bounds the point reads under way for one group: as many as the
// registrar has.
const parallelReads = 10

// named is a pod by cluster and namespace/name.
type named [2]string

// reads are point reads of pods, quorum reads all of them (I1): what they say
// takes the place of the picture, which is a moment older.
type reads struct {
	mu    sync.Mutex
	names map[named]claim.Seen // a nil Pod: there is none of that name
	ids   map[string]bool      // addresses whose owners were asked for, in every cluster
}

func newReads() *reads {
	return &reads{names: map[named]claim.Seen{}, ids: map[string]bool{}}
}

func nameOf(p claim.Seen) named { return named{p.Cluster, p.Namespace + "/" + p.Name} }

// see notes a pod as it was read.
func (r *reads) see(clusterName string, ps ...*podevent.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range ps {
		s := claim.Seen{Cluster: clusterName, Pod: p}
		r.names[nameOf(s)] = s
	}
}

func (r *reads) gone(n named) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[n] = claim.Seen{Cluster: n[0]}
}

// of returns the reading of that name: known is false if there was none, and the
// pod is nil if there is none.
func (r *reads) of(n named) (p *podevent.Pod, known bool) {
	s, known := r.names[n]
	return s.Pod, known
}

// has reports whether the pod, or another of its name, was read.
func (r *reads) has(p claim.Seen) bool {
	if len(r.names) == 0 {
		return false
	}
	_, read := r.names[nameOf(p)]
	return read
}

// over puts the readings in the place of the picture's pods. picked says of each
// which of pods it is, and -1 for one that was read.
func (r *reads) over(pods []claim.Seen) (out []claim.Seen, picked []int) {
	n := len(pods) + len(r.names)
	out, picked = make([]claim.Seen, 0, n), make([]int, 0, n)
	for i, p := range pods {
		if !r.has(p) {
			out, picked = append(out, p), append(picked, i)
		}
	}
	for _, s := range r.names {
		if s.Pod != nil {
			out, picked = append(out, s), append(picked, -1)
		}
	}
	return out, picked
}

// byName reads pods. Those that can't be read are returned with the error.
func (r *reads) byName(ctx context.Context, clusters map[string]Cluster, want map[named]bool) map[named]error {
	failed := map[named]error{}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for n := range want {
		g.Go(func() error {
			namespace, name, _ := strings.Cut(n[1], "/")
			p, err := clusters[n[0]].Pod(ctx, namespace, name)
			switch {
			case errors.Is(err, cluster.ErrNotFound):
				r.gone(n)
			case err != nil:
				mu.Lock()
				failed[n] = err
				mu.Unlock()
			default:
				r.see(n[0], p)
			}
			return nil
		})
	}
	_ = g.Wait() // each pod has its error
	return failed
}

// owners asks every cluster who has the addresses; one that can't be asked is an
// error (I2, I8).
func (r *reads) owners(ctx context.Context, clusters map[string]Cluster, names []string, ids map[string]bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for _, name := range names {
		for id := range ids {
			g.Go(func() error {
				pods, err := clusters[name].PodsByIP(ctx, id)
				if err != nil {
					return err
				}
				r.see(name, pods...)
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for id := range ids {
		r.ids[id] = true
	}
	return nil
}

// selected lists the pods of the group's bindings anew: the API server can't be
// asked for an address of the second family.
func (r *reads) selected(ctx context.Context, clusters map[string]Cluster, lk *look) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for _, name := range lk.clusters {
		for i := range lk.bindings {
			sel := lk.bindings[i].Pattern.Selection()
			namespaces := sel.Namespaces
			if len(namespaces) == 0 {
				namespaces = []string{""}
			}
			for _, ns := range namespaces {
				g.Go(func() error {
					pods, err := clusters[name].Pods(ctx, ns, sel.LabelSelector())
					if err != nil {
						return err
					}
					r.see(name, pods...)
					return nil
				})
			}
		}
	}
	return g.Wait()
}
