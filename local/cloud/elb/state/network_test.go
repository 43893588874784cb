package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

func TestNetworkQuotas(t *testing.T) {
	many := func(subnet string, n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("%s.%d", subnet, i+1))
		}
		return strings.Join(out, " ")
	}
	tests := map[string]struct {
		crossZone string
		targets   string
		want      string
	}{
		"a zone just full":                     {"false", many("10.64.1", 4), "<nil>"},
		"a zone too full":                      {"false", many("10.64.1", 5), "TooManyTargets"},
		"two zones":                            {"false", many("10.64.1", 3) + " " + many("10.64.2", 3), "<nil>"},
		"the load balancer too full":           {"false", many("10.64.1", 4) + " " + many("10.64.2", 4), "TooManyTargets"},
		"across zones it is one sum":           {"true", many("10.64.1", 3) + " " + many("10.64.2", 3), "TooManyTargets"},
		"across zones, and the sum just right": {"true", many("10.64.1", 2) + " " + many("10.64.2", 2), "<nil>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *state.Config) { c.Limits.TargetsPerNLB, c.Limits.TargetsPerZoneNLB = 7, 4 })
			g := w.newGroup("tcp", func(g *state.GroupSpec) { g.Protocol = "TCP" })
			b, err := w.CreateBalancer(scope, state.BalancerSpec{Name: "edge", Kind: "network", Subnets: []string{"subnet-a", "subnet-b"}}, addressOf(2), w.now)
			w.check(err)
			_, err = w.BalancerAttributes(scope, b.ARN, []state.Attribute{{Key: "load_balancing.cross_zone.enabled", Value: tt.crossZone}})
			w.check(err)
			spec := forwardTo(g)
			spec.Protocol = "TCP"
			_, err = w.CreateListener(scope, b.ARN, spec, opened, w.now)
			w.check(err)
			if err := w.Register(scope, g, targets(tt.targets), w.now); code(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// What the attributes and protocols mean for the data plane.
func TestRoutes(t *testing.T) {
	last := func(w *world, group string) route.Group { return w.tables[len(w.tables)-1].Groups[group] }
	w := newWorld(t)
	w.attach(w.group)
	if g := last(w, w.group); !g.CutAtEnd || g.CutUnhealthy || g.MinHealthyCount != 1 || g.MinHealthyPercent != 0 || g.Algorithm != route.RoundRobin {
		t.Errorf("an application's group: %+v", g)
	}
	_, err := w.GroupAttributes(scope, w.group, []state.Attribute{
		{Key: "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage", Value: "50"},
		{Key: "load_balancing.algorithm.type", Value: "least_outstanding_requests"},
	})
	w.check(err)
	if g := last(w, w.group); g.MinHealthyPercent != 50 || g.Algorithm != route.LeastOutstanding {
		t.Errorf("after setting attributes: %+v", g)
	}
	tcp := w.newGroup("tcp", func(g *state.GroupSpec) { g.Protocol = "TCP" })
	b, err := w.CreateBalancer(scope, state.BalancerSpec{Name: "edge", Kind: "network", Subnets: []string{"subnet-a"}}, addressOf(2), w.now)
	w.check(err)
	spec := forwardTo(tcp)
	spec.Protocol = "TCP"
	_, err = w.CreateListener(scope, b.ARN, spec, opened, w.now)
	w.check(err)
	if g := last(w, tcp); g.CutAtEnd || !g.CutUnhealthy {
		t.Errorf("a network's group: %+v", g)
	}
	for i := 1; i < len(w.tables); i++ {
		if w.tables[i].Version <= w.tables[i-1].Version {
			t.Errorf("table %d has version %d after %d", i, w.tables[i].Version, w.tables[i-1].Version)
		}
	}
}

// Registering and deregistering all day leaves no timers behind.
func TestTimersAreBounded(t *testing.T) {
	w := newWorld(t)
	w.attach(w.group)
	for range 10_000 {
		w.check(w.Register(scope, w.group, targets("10.64.1.1"), w.now))
		w.check(w.Deregister(scope, w.group, targets("10.64.1.1"), w.now))
	}
	if n := state.Timers(w.Store); n > 4096 {
		t.Errorf("one target has %d timers", n)
	}
}
