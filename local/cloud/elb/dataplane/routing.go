package dataplane

import (
	"maps"
	"math/rand/v2"
	"sync/atomic"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// routing is a table made ready for traffic. It is never changed.
type routing struct {
	listeners map[string]*listenerRoute
}

type listenerRoute struct {
	action route.Action
	groups []*groupRoute // as in action.Forward
	total  uint64        // of the weights
	stride uint64
	turn   *atomic.Uint64
}

type groupRoute struct {
	route.Group
	serving []*member // those that may get something new
	turn    *atomic.Uint64
}

type member struct {
	*backend
	health *route.Health
}

type backendKey struct {
	group string
	route.Key
}

// Apply makes traffic follow a table. An older one than the last is ignored.
func (p *Plane) Apply(t route.Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Version <= p.version || p.closed {
		return
	}
	p.version = t.Version
	next := &routing{listeners: map[string]*listenerRoute{}}
	groups, present := map[string]*groupRoute{}, map[backendKey]bool{} // true: takes something new
	for arn, g := range t.Groups {
		groups[arn] = p.group(g, t, present)
	}
	for arn, l := range t.Listeners {
		lr := &listenerRoute{action: l.Action, turn: p.counter(arn)}
		for _, w := range l.Action.Forward {
			lr.groups = append(lr.groups, groups[w.GroupARN])
			lr.total += uint64(w.Weight)
		}
		lr.stride = stride(lr.total)
		next.listeners[arn] = lr
	}
	p.routing.Store(next) // first, so that who is refused below finds the new one
	for k, b := range p.backends {
		takesNew, ok := present[k]
		if takesNew {
			continue
		}
		b.flows.accept(false)
		b.idle()
		if ok {
			continue // it drains
		}
		delete(p.backends, k)
		if g, ok := t.Groups[k.group]; ok && g.CutAtEnd {
			b.flows.cut()
		}
	}
	maps.DeleteFunc(p.counters, func(arn string, _ *atomic.Uint64) bool {
		_, listener := t.Listeners[arn]
		_, group := t.Groups[arn]
		return !listener && !group
	})
}

// group prepares a target group, and remembers its backends in present.
func (p *Plane) group(g route.Group, t route.Table, present map[backendKey]bool) *groupRoute {
	gr := &groupRoute{Group: g, turn: p.counter(g.ARN)}
	for _, target := range g.Targets {
		k := backendKey{g.ARN, target.Key}
		present[k] = !target.Draining
		b := p.backends[k]
		if b == nil || b.addr != target.Addr {
			if b != nil { // an instance that got another address
				b.idle()
			}
			b = p.newBackend(g, target.Addr, t.IdleTimeout)
			p.backends[k] = b
		}
		if target.Draining {
			continue
		}
		b.flows.accept(true)
		gr.serving = append(gr.serving, &member{b, target.Health})
	}
	return gr
}

func (p *Plane) counter(arn string) *atomic.Uint64 {
	c := p.counters[arn]
	if c == nil {
		c = &atomic.Uint64{}
		p.counters[arn] = c
	}
	return c
}

// Traffic says whether a target may get something new, and how many requests
// or connections it has.
func (p *Plane) Traffic(group string, key route.Key) (takesNew bool, underWay int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.backends[backendKey{group, key}]; b != nil {
		return b.flows.state()
	}
	return false, 0
}

// CutTarget closes the connections of a target that turned unhealthy.
func (p *Plane) CutTarget(group string, key route.Key) {
	p.mu.Lock()
	b := p.backends[backendKey{group, key}]
	p.mu.Unlock()
	if b != nil {
		b.flows.cut() // it may still be chosen: when all are unhealthy
	}
}

// action returns what a listener does now; nil if the table doesn't have it yet.
func (p *Plane) action(arn string) *listenerRoute { return p.routing.Load().listeners[arn] }

// pick chooses a group by weight and a target in it; nil if that group has none.
func (l *listenerRoute) pick() *member {
	if l == nil || l.total == 0 {
		return nil
	}
	n := (l.turn.Add(1) * l.stride) % l.total
	for i, w := range l.action.Forward {
		if n < uint64(w.Weight) {
			return l.groups[i].pick()
		}
		n -= uint64(w.Weight)
	}
	return nil
}

// stride spreads the turns of a listener over its groups: it shares no factor
// with total, so total turns in a row visit each place once.
func stride(total uint64) uint64 {
	for s := total*618/1000 + 1; s < total; s++ {
		if gcd(s, total) == 1 {
			return s
		}
	}
	return 1
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// pick chooses a target: among the healthy ones, or among all if those are too
// few.
func (g *groupRoute) pick() *member {
	healthy := 0
	for _, m := range g.serving {
		if m.health.Healthy() {
			healthy++
		}
	}
	enough := healthy >= max(g.MinHealthyCount, 1) && healthy*100 >= g.MinHealthyPercent*len(g.serving)
	from := healthy
	if !enough {
		from = len(g.serving)
	}
	if from == 0 {
		return nil
	}
	var n int
	switch g.Algorithm {
	case route.LeastOutstanding:
		return g.least(enough)
	case route.WeightedRandom:
		n = rand.IntN(from)
	default:
		n = int(g.turn.Add(1) % uint64(from))
	}
	var last *member
	for _, m := range g.serving {
		if enough && !m.health.Healthy() {
			continue
		}
		last = m
		if n == 0 {
			break
		}
		n-- // health may change while we count: then the last one has it
	}
	return last
}

func (g *groupRoute) least(onlyHealthy bool) *member {
	var best *member
	fewest := 0
	for _, m := range g.serving {
		if onlyHealthy && !m.health.Healthy() {
			continue
		}
		if n := m.flows.count(); best == nil || n < fewest {
			best, fewest = m, n
		}
	}
	return best
}
