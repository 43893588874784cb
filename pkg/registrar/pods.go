package registrar

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

const (
	// listFrom is the number of hints of one binding from which one LIST is
	// better than a GET each: it also shows what has not been announced yet, so
	// that one call registers it and the next invocations find it done.
	listFrom = 2
	// maxNamespaces bounds the LISTs that stand for one binding.
	maxNamespaces = 4
)

// listing is the pods of one or more bindings, by cluster and namespace/name.
type listing struct {
	pods map[[2]string]claim.Seen
}

func podKey(clusterName, namespace, name string) [2]string {
	return [2]string{clusterName, namespace + "/" + name}
}

// readPods reads the pods of hints: by one LIST of the binding where it has
// several hints, else by a GET each, which is a quorum read (I1). A hint whose
// pod can't be read gets its outcome here.
func (r *Registrar) readPods(ctx context.Context, w *groupWork, hs []*hint) {
	w.read = r.Now()
	r.list(ctx, w, hs)
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, h := range hs {
		if h.preferred {
			continue
		}
		if w.list != nil {
			if p, ok := w.list.pods[podKey(h.Detail.Cluster, h.Detail.Namespace, h.Detail.Name)]; ok {
				h.see(p.Pod)
				continue
			}
		}
		g.Go(func() error { // absent from a LIST by labels is not yet gone
			p, err := r.Clusters[h.Detail.Cluster].Pod(ctx, h.Detail.Namespace, h.Detail.Name)
			switch {
			case errors.Is(err, cluster.ErrNotFound):
				h.see(nil)
			case err != nil:
				r.unreadable(h, err)
			default:
				h.see(p)
			}
			return nil
		})
	}
	_ = g.Wait() // each hint carries its error
}

// list reads the bindings that have several of the hints, where their patterns
// can be pushed into a LIST that is not the whole cluster.
func (r *Registrar) list(ctx context.Context, w *groupWork, hs []*hint) {
	type source struct{ cluster, rule string }
	count := map[source]int{}
	for _, h := range hs {
		count[source{h.Detail.Cluster, h.bind.Rule}]++
	}
	l := &listing{pods: map[[2]string]claim.Seen{}}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, h := range hs {
		src := source{h.Detail.Cluster, h.bind.Rule}
		if count[src] < listFrom {
			continue
		}
		count[src] = 0 // once
		sel := h.bind.Pattern.Selection()
		labels := sel.LabelSelector()
		namespaces := sel.Namespaces
		if len(namespaces) > maxNamespaces || (len(namespaces) == 0 && labels == "") {
			continue
		}
		if len(namespaces) == 0 {
			namespaces = []string{""}
		}
		for _, ns := range namespaces {
			g.Go(func() error {
				pods, err := r.Clusters[src.cluster].Pods(ctx, ns, labels)
				if err != nil {
					return nil // the GETs that follow say what is wrong, hint by hint
				}
				mu.Lock()
				defer mu.Unlock()
				for _, p := range pods {
					l.pods[podKey(src.cluster, p.Namespace, p.Name)] = claim.Seen{Cluster: src.cluster, Pod: p}
				}
				return nil
			})
		}
	}
	_ = g.Wait() // as above
	w.list = nil
	if len(l.pods) > 0 {
		w.list = l
	}
}

// pods returns every pod read for these hints, each once.
func (w *groupWork) pods(hs []*hint) []claim.Seen {
	all := map[[2]string]claim.Seen{}
	if w.list != nil {
		for k, p := range w.list.pods {
			all[k] = p
		}
	}
	for _, h := range hs {
		if h.pod != nil {
			all[podKey(h.Detail.Cluster, h.pod.Namespace, h.pod.Name)] = claim.Seen{Cluster: h.Detail.Cluster, Pod: h.pod}
		}
	}
	out := make([]claim.Seen, 0, len(all))
	for _, p := range all {
		out = append(out, p)
	}
	return out
}

// readAdded reads the pods that the last round registered and that have not been
// read since: they have no hint here, and no LIST shows them any more.
func (r *Registrar) readAdded(ctx context.Context, w *groupWork, known []claim.Seen) ([]claim.Seen, error) {
	have := map[[2]string]bool{}
	for _, p := range known {
		have[[2]string{p.Cluster, p.UID}] = true
	}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, c := range w.added {
		if have[[2]string{c.Cluster, c.UID}] {
			continue
		}
		g.Go(func() error {
			namespace, name, _ := strings.Cut(c.Pod, "/")
			p, err := r.Clusters[c.Cluster].Pod(ctx, namespace, name)
			switch {
			case errors.Is(err, cluster.ErrNotFound):
				return nil
			case err != nil:
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			known = append(known, claim.Seen{Cluster: c.Cluster, Pod: p})
			return nil
		})
	}
	err := g.Wait()
	return known, err
}

// podOf is the pod that an event speaks of, as far as a claim needs it.
func podOf(e podevent.Event) *podevent.Pod {
	ips := e.PodIPs
	if len(ips) == 0 && e.PodIP != "" {
		ips = []string{e.PodIP}
	}
	return &podevent.Pod{
		Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion,
		Labels: e.Labels, Annotations: e.Annotations, Owner: e.Owner, ServiceAccount: e.ServiceAccount,
		NodeName: e.NodeName, HostNetwork: e.HostNetwork, Ports: e.Ports, PodIPs: ips, HostIP: e.HostIP,
		Phase: e.Phase, Ready: e.Ready, ContainersReady: e.ContainersReady, Terminating: e.Terminating,
	}
}
