package state

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// reuse looks again which groups are in use, after listeners have changed.
// Targets of a group that came into use begin their life, those of a group
// that went out of it are unused. The store is locked.
func (s *Store) reuse(a *scope, now time.Time) {
	for _, g := range a.groups {
		users := a.users(g.ARN)
		if slices.Equal(users, g.Balancers) {
			continue
		}
		g.Balancers = users
		for _, t := range g.sorted() {
			if t.live() {
				s.place(t, now)
			}
		}
	}
}

func (g *group) sorted() []*target {
	out := make([]*target, 0, len(g.targets))
	for _, t := range g.targets {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *target) int { return compareKeys(a.Key, b.Key) })
	return out
}

// publishGroup tells the data planes of a group's load balancers about it.
func (s *Store) publishGroup(g *group) {
	for _, arn := range g.Balancers {
		s.publish(g.scope, g.scope.balancers[arn])
	}
}

// publish tells a load balancer's data plane what it forwards to now.
func (s *Store) publish(a *scope, b *balancer) {
	s.version++
	idle, _ := strconv.Atoi(b.attributes[attrIdle]) // checked when it was set
	t := route.Table{
		Balancer: b.ARN, Version: s.version, Kind: b.Kind, IdleTimeout: time.Duration(idle) * time.Second,
		Listeners: map[string]route.Listener{}, Groups: map[string]route.Group{},
	}
	if b.Kind == route.Network {
		t.IdleTimeout = networkIdle
	}
	for _, l := range a.listenersOf(b.ARN) {
		t.Listeners[l.ARN] = route.Listener{ARN: l.ARN, Port: l.Port, Action: l.Actions[0].Action}
		for _, arn := range groupsOf(l.Actions) {
			t.Groups[arn] = a.groups[arn].route()
		}
	}
	s.cfg.Route(t)
}

// networkIdle is how long a TCP connection through a network load balancer may
// be silent.
const networkIdle = 350 * time.Second

func (g *group) route() route.Group {
	out := route.Group{
		ARN: g.ARN, Protocol: g.Protocol, Algorithm: route.Algorithm(g.attributes[attrAlgorithm]),
		CutAtEnd:     g.Protocol != "TCP" || g.attributes[attrTermination] == "true",
		CutUnhealthy: g.attributes[attrUnhealthyTermination] == "true",
		Targets:      make([]route.Target, 0, len(g.targets)),
	}
	out.MinHealthyCount, _ = strconv.Atoi(g.attributes[attrMinCount])
	out.MinHealthyPercent, _ = strconv.Atoi(g.attributes[attrMinPercent])
	for _, t := range g.sorted() {
		if t.phase == unused {
			continue
		}
		out.Targets = append(out.Targets, route.Target{
			Key: t.Key, Addr: netip.AddrPortFrom(t.addr, uint16(t.Port)), Draining: t.phase == draining, Health: t.health,
		})
	}
	return out
}
