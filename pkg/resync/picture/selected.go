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

// Changed returns who tells of bindings whether pods that any of them selects, or
// did, came, went or changed between the last call of Changed and this one, and
// when that happened last.
func (p *Picture) Changed() func(bs []binding.Binding) (since time.Time, touched bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := make(map[string]time.Time, len(p.touched))
	for id, when := range p.touched {
		at[p.names.texts[id]] = when
	}
	clear(p.touched)
	return func(bs []binding.Binding) (since time.Time, touched bool) {
		for i := range bs {
			if when, ok := at[bs[i].Pattern.String()]; ok && (!touched || when.After(since)) {
				since, touched = when, true
			}
		}
		return since, touched
	}
}
