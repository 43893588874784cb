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

// touch is the last change of the pods that a pattern selects, or did.
type touch struct {
	at     time.Time
	number int64 // of all touches
}

func (p *Picture) touch(ids []int32) {
	now := p.Now()
	for _, id := range ids {
		p.touches++
		p.touched[id] = touch{now, p.touches}
	}
}

// Changed returns who tells of bindings whether pods that any of them selects, or
// did, came, went or changed between the last call of Changed and this one, and
// when that happened last.
func (p *Picture) Changed() func(bs []binding.Binding) (since time.Time, touched bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := map[string]time.Time{}
	for id, t := range p.touched {
		if t.number > p.told {
			at[p.names.texts[id]] = t.at
		}
	}
	p.told = p.touches
	return func(bs []binding.Binding) (since time.Time, touched bool) {
		for i := range bs {
			if when, ok := at[bs[i].Pattern.String()]; ok && (!touched || when.After(since)) {
				since, touched = when, true
			}
		}
		return since, touched
	}
}

// TouchedAt returns when pods that any of the bindings selects, or did, came,
// went or changed last; zero if none is known to have.
func (p *Picture) TouchedAt(bs []binding.Binding) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last time.Time
	for i := range bs {
		if t := p.touched[p.names.ids[bs[i].Pattern.String()]]; t.at.After(last) {
			last = t.at
		}
	}
	return last
}
