package picture

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// maxInterned bounds the strings that pods share; past it the table begins anew,
// and pods keep those they have. A cluster has 5,000 nodes at most, each with a
// name and an address.
const maxInterned = 1 << 15

// store is the selected pods. It is the picture's alone, and under its lock.
type store struct {
	pods    map[string]*record      // by UID
	members map[string]*membership  // by the ids, encoded
	of      map[int32][]*membership // by pattern
	strings map[string]string
	ports   map[string][]podevent.Port // lists of ports that pods share, encoded
	seed    maphash.Seed
	key     []byte // scratch
}

// record is a selected pod. The pod in it is never changed: who has asked for it
// may keep it.
type record struct {
	pod    podevent.Pod
	ips    [1]string // behind pod.PodIPs, where there is one
	labels uint64    // hash of labels and allowed annotations
	epoch  int32     // of the patterns it was matched with last
	list   int32     // that it was seen in last, of its scope
	at     int32     // index in of.pods
	of     *membership
}

// membership is a set of patterns and the pods that just these select.
type membership struct {
	ids  []int32 // sorted
	pods []*record
}

func newStore() store {
	return store{pods: map[string]*record{}, members: map[string]*membership{}, of: map[int32][]*membership{},
		strings: map[string]string{}, ports: map[string][]podevent.Port{}, seed: maphash.MakeSeed()}
}

// put adds a record or replaces the pod's earlier one.
func (s *store) put(r *record, ids []int32) {
	if old := s.pods[r.pod.UID]; old != nil && slices.Equal(old.of.ids, ids) {
		r.of, r.at = old.of, old.at
		r.of.pods[r.at] = r
		s.pods[r.pod.UID] = r
		return
	}
	s.remove(r.pod.UID)
	m := s.membership(ids)
	r.of, r.at = m, int32(len(m.pods))
	m.pods = append(m.pods, r)
	s.pods[r.pod.UID] = r
}

// remove forgets a pod, and its membership if it was the last one of it.
func (s *store) remove(uid string) {
	r := s.pods[uid]
	if r == nil {
		return
	}
	delete(s.pods, uid)
	m := r.of
	last := m.pods[len(m.pods)-1]
	m.pods[r.at], last.at = last, r.at
	m.pods[len(m.pods)-1] = nil
	m.pods = m.pods[:len(m.pods)-1]
	if len(m.pods) > 0 {
		return
	}
	delete(s.members, string(s.encode(m.ids)))
	for _, id := range m.ids {
		s.of[id] = slices.DeleteFunc(s.of[id], func(of *membership) bool { return of == m })
		if len(s.of[id]) == 0 {
			delete(s.of, id)
		}
	}
}

// membership returns the one of the ids, which are sorted.
func (s *store) membership(ids []int32) *membership {
	key := s.encode(ids)
	if m := s.members[string(key)]; m != nil {
		return m
	}
	m := &membership{ids: slices.Clone(ids)}
	s.members[string(key)] = m
	for _, id := range ids {
		s.of[id] = append(s.of[id], m)
	}
	return m
}

func (s *store) encode(ids []int32) []byte {
	s.key = s.key[:0]
	for _, id := range ids {
		s.key = binary.LittleEndian.AppendUint32(s.key, uint32(id))
	}
	return s.key
}

// record is what is kept of a pod.
func (s *store) record(p *podevent.Pod, annotations podevent.AllowList) *record {
	r := &record{labels: s.hash(p, annotations), pod: podevent.Pod{
		Namespace: s.intern(p.Namespace), Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		NodeName: s.intern(p.NodeName), HostNetwork: p.HostNetwork, HostIP: s.intern(p.HostIP), Phase: s.intern(p.Phase),
		Ports: s.sharedPorts(p.Ports), PodIPs: p.PodIPs, Ready: p.Ready, ContainersReady: p.ContainersReady, Terminating: p.Terminating,
	}}
	if len(p.PodIPs) == 1 {
		r.ips[0] = p.PodIPs[0]
		r.pod.PodIPs = r.ips[:]
	}
	return r
}

// hash tells labels and allowed annotations apart: a pod that a pattern lost is
// deselected only if they changed (I9).
func (s *store) hash(p *podevent.Pod, annotations podevent.AllowList) uint64 {
	var sum uint64
	for k, v := range p.Labels {
		sum += maphash.Comparable(s.seed, [3]string{"label", k, v})
	}
	for k, v := range p.Annotations {
		if annotations.Allows(k) {
			sum += maphash.Comparable(s.seed, [3]string{"annotation", k, v})
		}
	}
	return sum
}

func (s *store) intern(v string) string {
	if v == "" {
		return ""
	}
	if known, ok := s.strings[v]; ok {
		return known
	}
	if len(s.strings) >= maxInterned {
		clear(s.strings)
	}
	s.strings[v] = v
	return v
}

// sharedPorts returns the named ports, which are what a claim may ask for.
func (s *store) sharedPorts(ports []podevent.Port) []podevent.Port {
	s.key = s.key[:0]
	for _, p := range ports {
		if p.Name != "" {
			s.key = binary.LittleEndian.AppendUint32(append(append(s.key, p.Name...), 0), uint32(p.ContainerPort))
		}
	}
	if len(s.key) == 0 {
		return nil
	}
	if known, ok := s.ports[string(s.key)]; ok {
		return known
	}
	if len(s.ports) >= maxInterned {
		clear(s.ports)
	}
	var kept []podevent.Port
	for _, p := range ports {
		if p.Name != "" {
			kept = append(kept, podevent.Port{Name: s.intern(p.Name), ContainerPort: p.ContainerPort})
		}
	}
	s.ports[string(s.key)] = kept
	return kept
}
