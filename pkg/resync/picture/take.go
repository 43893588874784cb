package picture

import (
	"fmt"
	"slices"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// take puts a pod into the picture as it is now, or lets it go. It is under the
// lock.
func (p *Picture) take(s *scope, pod *podevent.Pod) {
	old := p.store.pods[pod.UID]
	if old != nil && old.pod.ResourceVersion == pod.ResourceVersion && pod.ResourceVersion != "" && old.epoch == p.epoch {
		old.list = s.list
		return // the same object, matched before
	}
	ids, err := p.match(pod)
	if err != nil { // what is known of it stays
		s.unmatched[pod.UID] = fmt.Errorf("cluster %s: pod %s/%s can't be matched: %w", p.Cluster, pod.Namespace, pod.Name, err)
		if old != nil {
			old.list = s.list
		}
		return
	}
	delete(s.unmatched, pod.UID)
	if old == nil && len(ids) == 0 {
		return
	}
	next := p.store.record(pod, p.Annotations)
	next.epoch, next.list = p.epoch, s.list
	p.compare(old, next, ids)
	if len(ids) == 0 {
		p.store.remove(pod.UID)
		return
	}
	p.store.put(next, ids)
	p.past.back(pod.UID, next.pod.PodIPs, func(text string) bool { return slices.Contains(ids, p.names.ids[text]) })
}

// match returns the ids of the patterns that select the pod, sorted.
func (p *Picture) match(pod *podevent.Pod) ([]int32, error) {
	e := podevent.FromPod(p.Cluster, pod, p.Annotations, p.Now())
	hits, err := p.set.matcher.Match(&e)
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	ids := make([]int32, len(hits))
	for i, hit := range hits {
		ids[i] = p.set.ids[hit]
	}
	slices.Sort(ids)
	return ids, nil
}

// compare remembers what a pod has lost, and which patterns' pods changed. old
// is nil for a new one; it still stands in the store.
func (p *Picture) compare(old, next *record, ids []int32) {
	now := p.Now()
	if old == nil {
		p.touch(ids)
		return
	}
	lost := slices.DeleteFunc(slices.Clone(old.of.ids), func(id int32) bool { return slices.Contains(ids, id) })
	if len(lost) > 0 || len(ids) != len(old.of.ids) || changed(&old.pod, &next.pod) {
		p.touch(ids)
		p.touch(old.of.ids)
	}
	seen := claim.Seen{Cluster: p.Cluster, Pod: &next.pod}
	if !old.pod.Finished() && next.pod.Finished() {
		addresses := append(without(old.pod.PodIPs, next.pod.PodIPs), next.pod.PodIPs...)
		p.past.add(addresses, Past{Pod: seen, Kind: Finished, Ended: true, At: now, Patterns: p.names.of(old.of.ids)})
		return // its address is nobody's who could move or be deselected
	}
	if moved := without(old.pod.PodIPs, next.pod.PodIPs); len(moved) > 0 {
		p.past.add(moved, Past{Pod: seen, Kind: Moved, At: now, Patterns: p.names.of(old.of.ids)})
	}
	// A pattern that is followed no more was not lost by the pod's doing.
	lost = slices.DeleteFunc(lost, func(id int32) bool { return !p.set.has[id] })
	if len(lost) > 0 && old.labels != next.labels {
		p.past.add(old.pod.PodIPs, Past{Pod: seen, Kind: Deselected, At: now, Patterns: p.names.of(lost)})
	}
}

// gone takes a pod out that the stream says has left.
func (p *Picture) gone(s *scope, pod *podevent.Pod) {
	delete(s.unmatched, pod.UID)
	old := p.store.pods[pod.UID]
	if old == nil {
		return
	}
	p.touch(old.of.ids)
	if old.pod.Finished() { // its address went when it finished, not now
		p.store.remove(pod.UID)
		return
	}
	last := p.store.record(pod, p.Annotations)
	addresses := append(without(old.pod.PodIPs, last.pod.PodIPs), last.pod.PodIPs...)
	p.past.add(addresses, Past{Pod: claim.Seen{Cluster: p.Cluster, Pod: &last.pod}, Kind: Gone, At: p.Now(),
		Ended: pod.Terminating || pod.Finished(), Patterns: p.names.of(old.of.ids)})
	p.store.remove(pod.UID)
}

// sweep takes out what a whole list of the scope did not show, and what is in no
// scope any more. Absence from a list is no witness, so nothing is remembered.
func (p *Picture) sweep(s *scope) {
	for uid, r := range p.store.pods {
		covered := s.covers(r.pod.Namespace)
		if covered && r.list == s.list {
			continue
		}
		if covered || !slices.ContainsFunc(p.scopes, func(o *scope) bool { return o.covers(r.pod.Namespace) }) {
			p.touch(r.of.ids)
			p.store.remove(uid)
		}
	}
}

// changed reports whether a pod is another to a claim or a witness.
func changed(a, b *podevent.Pod) bool {
	return a.NodeName != b.NodeName || a.HostNetwork != b.HostNetwork || a.HostIP != b.HostIP || a.Phase != b.Phase ||
		a.Ready != b.Ready || a.ContainersReady != b.ContainersReady || a.Terminating != b.Terminating ||
		!slices.Equal(a.PodIPs, b.PodIPs) || !slices.Equal(a.Ports, b.Ports)
}

// without returns what of a is not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(v string) bool { return slices.Contains(b, v) })
}
