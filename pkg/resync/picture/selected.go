package picture

import (
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
)

// Selected returns the pods that any of the bindings selects, and for each the
// indices of the bindings that do, in no order. Nothing of it may be changed.
// Whether these are all is State's to say.
func (p *Picture) Selected(bs []binding.Binding) ([]claim.Seen, [][]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := map[*membership][]int{}
	var order []*membership
	n := 0
	for i := range bs {
		id, ok := p.names.ids[bs[i].Pattern.String()]
		if !ok {
			continue
		}
		for _, m := range p.store.of[id] {
			if by[m] == nil {
				order = append(order, m)
				n += len(m.pods)
			}
			by[m] = append(by[m], i)
		}
	}
	pods, of := make([]claim.Seen, 0, n), make([][]int, 0, n)
	for _, m := range order {
		for _, r := range m.pods {
			pods = append(pods, claim.Seen{Cluster: p.Cluster, Pod: &r.pod})
			of = append(of, by[m])
		}
	}
	return pods, of
}

// touch notes that pods that the patterns select, or did, changed.
func (p *Picture) touch(ids []int32) {
	now := p.Now()
	for _, id := range ids {
		p.touched[id] = now
	}
}

// TouchedAt returns when pods that any of the bindings selects, or did, came,
// went or changed last; zero if none is known to have.
func (p *Picture) TouchedAt(bs []binding.Binding) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last time.Time
	for i := range bs {
		if at := p.touched[p.names.ids[bs[i].Pattern.String()]]; at.After(last) {
			last = at
		}
	}
	return last
}
