package state_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

// modelled is a target as the obvious way to keep one has it.
type modelled struct {
	state      string // initial, healthy, unhealthy, draining
	ups, downs int
	until      time.Time // of draining
	life       int       // which registration it is
}

type asked struct {
	state.Probe
	life int
}

// model is a target group kept in the obvious way.
type model struct {
	*world
	by      map[state.Key]*modelled
	pending []asked
	lives   int
}

const modelDelay = 300 * time.Second

// TestAnyHistory: any sequence of calls, checks and time ends in the set and
// the states that the model has. Results of an earlier life count for nothing,
// a refused call changes nothing, and the data plane is told of the same set.
func TestAnyHistory(t *testing.T) {
	ids := []string{"10.64.1.1", "10.64.1.2:81", "10.64.2.1", "10.9.0.1:80@all"}
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{world: newWorld(t), by: map[state.Key]*modelled{}}
		m.attach(m.group)
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, len(ids), rapid.ID[string])
		rt.Repeat(map[string]func(*rapid.T){
			"register":   func(rt *rapid.T) { m.register(some.Draw(rt, "ids")) },
			"deregister": func(rt *rapid.T) { m.deregister(some.Draw(rt, "ids")) },
			"refused": func(rt *rapid.T) {
				bad := append(slices.Clone(some.Draw(rt, "ids")), "8.8.8.8@all")
				if err := m.Register(scope, m.group, targets(strings.Join(bad, " ")), m.now); err == nil {
					rt.Fatal("a public address was accepted")
				}
			},
			"checks": func(rt *rapid.T) {
				for _, p := range m.pending {
					m.observe(p, rapid.Bool().Draw(rt, "passes"))
				}
				m.pending = nil
			},
			"time": func(rt *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(rt, "seconds")) * time.Second)
			},
			"": m.compare,
		})
	})
}

func keyOf(id string) state.Key {
	d := target(id)
	if d.Port == 0 {
		d.Port = 80
	}
	return state.Key{ID: d.ID, Port: d.Port}
}

func (m *model) register(ids []string) {
	m.check(m.Register(scope, m.group, targets(strings.Join(ids, " ")), m.now))
	for _, id := range ids {
		if t := m.by[keyOf(id)]; t == nil || t.state == "draining" {
			m.lives++
			m.by[keyOf(id)] = &modelled{state: "initial", life: m.lives}
		}
	}
}

func (m *model) deregister(ids []string) {
	m.check(m.Deregister(scope, m.group, targets(strings.Join(ids, " ")), m.now))
	for _, id := range ids {
		if t := m.by[keyOf(id)]; t != nil && t.state != "draining" {
			t.state, t.until = "draining", m.now.Add(modelDelay)
		}
	}
}

func (m *model) observe(p asked, passes bool) {
	r := state.Result{Outcome: state.Failed}
	if passes {
		r.Outcome = state.Passed
	}
	m.Observe(p.Probe, r, m.now, m.now)
	t := m.by[p.Target]
	if t == nil || t.life != p.life || t.state == "draining" {
		return
	}
	if passes {
		t.ups, t.downs = t.ups+1, 0
		if t.ups >= 3 {
			t.state = "healthy"
		}
		return
	}
	t.ups, t.downs = 0, t.downs+1
	if t.downs >= 2 {
		t.state = "unhealthy"
	}
}

func (m *model) compare(rt *rapid.T) {
	due, _ := m.Advance(m.now)
	for k, t := range m.by {
		if t.state == "draining" && !t.until.After(m.now) {
			delete(m.by, k)
		}
	}
	for _, p := range due {
		if t := m.by[p.Target]; t == nil || t.state == "draining" {
			rt.Fatalf("%v is checked, but it is %v", p.Target, t)
		}
		m.pending = append(m.pending, asked{p, m.by[p.Target].life})
	}
	health, err := m.Health(scope, m.group, nil)
	m.check(err)
	if len(health) != len(m.by) {
		rt.Fatalf("the targets are %s, want %d", m.all(), len(m.by))
	}
	for _, h := range health {
		if t := m.by[h.Key]; t == nil || t.state != h.State {
			rt.Fatalf("%v is %s, want %+v", h.Key, h.State, t)
		}
	}
	for _, t := range m.tables[len(m.tables)-1].Groups[m.group].Targets {
		want := m.by[t.Key]
		if want == nil || t.Draining != (want.state == "draining") || t.Health.Healthy() != (want.state == "healthy") && !t.Draining {
			rt.Fatalf("the data plane has %v draining %v healthy %v, want %+v", t.Key, t.Draining, t.Health.Healthy(), want)
		}
	}
	if n := len(m.tables[len(m.tables)-1].Groups[m.group].Targets); n != len(m.by) {
		rt.Fatalf("the data plane has %d targets, want %d", n, len(m.by))
	}
}
