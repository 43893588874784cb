package picture

import (
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
)

// Follow has the picture keep the pods of these bindings, which are those that
// cover the cluster. It lists again only if one has a pattern that it doesn't
// follow yet; a rule that went, or whose constants changed, costs nothing.
func (p *Picture) Follow(bs []binding.Binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var patterns []*eventpattern.Pattern
	var selections []eventpattern.Selection
	next, known := patternSet{has: map[int32]bool{}}, true
	for i := range bs {
		pattern := bs[i].Pattern
		id := p.names.id(pattern.String())
		if next.has[id] {
			continue
		}
		selection := pattern.Selection()
		if selection.Clusters != nil && !slices.Contains(selection.Clusters, p.Cluster) {
			continue // selects none here
		}
		next.has[id], known = true, known && p.set.has[id]
		next.ids, patterns, selections = append(next.ids, id), append(patterns, pattern), append(selections, selection)
	}
	p.follows = true
	if !known {
		next.matcher = podmatch.New(eventpattern.NewSet(patterns), podmatch.Envelope{Account: p.Account, Region: p.Region})
		p.set = next
		p.begin(Scopes(selections))
	}
	p.forget()
}

// begin has Run list everything anew. It is under the lock.
func (p *Picture) begin(scopes []cluster.Scope) {
	p.epoch++
	p.scopes = nil
	for _, s := range scopes {
		p.scopes = append(p.scopes, &scope{Scope: s, epoch: p.epoch, unmatched: map[string]error{}})
	}
	select {
	case p.again <- struct{}{}:
	default: // it is told already
	}
}

func (n *names) id(text string) int32 {
	id, ok := n.ids[text]
	if !ok {
		n.last++
		id = n.last
		n.ids[text], n.texts[id] = id, text
	}
	return id
}

func (n *names) of(ids []int32) []string {
	var out []string
	for _, id := range ids {
		out = append(out, n.texts[id])
	}
	return out
}

// forget forgets patterns that nothing speaks of any more.
func (p *Picture) forget() {
	for text, id := range p.names.ids {
		if !p.set.has[id] && p.store.of[id] == nil {
			delete(p.names.ids, text)
			delete(p.names.texts, id)
			delete(p.touched, id)
		}
	}
}
