package state_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

var (
	scope = core.Scope{Account: "111122223333", Region: "eu-west-1"}
	began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// network has one range without a subnet (10.4.0.0/16), as real ones do.
var network = state.VPC{
	ID:    "vpc-1",
	CIDRs: []netip.Prefix{prefix("10.64.0.0/16"), prefix("10.4.0.0/16"), prefix("fd00::/64")},
	Subnets: []state.Subnet{
		{ID: "subnet-a", Zone: "a", CIDRs: []netip.Prefix{prefix("10.64.1.0/24"), prefix("fd00::/64")}},
		{ID: "subnet-b", Zone: "b", CIDRs: []netip.Prefix{prefix("10.64.2.0/24")}},
		{ID: "subnet-c", Zone: "c", CIDRs: []netip.Prefix{prefix("10.64.3.0/24")}},
	},
	Peered: []netip.Prefix{prefix("fd01::/64")},
}

// world is a store with a clock that stands still and one group behind one
// load balancer in the zones a and b.
type world struct {
	*state.Store
	t        testing.TB
	now      time.Time
	group    string
	balancer string
	listener string
	probes   map[state.Key]state.Probe // asked for, not answered
	tables   []route.Table
	cut      []state.Key
	changes  []state.Change
}

func newWorld(t testing.TB, change ...func(*state.Config)) *world {
	t.Helper()
	w := &world{t: t, now: began, probes: map[state.Key]state.Probe{}}
	n := 0
	cfg := state.Config{
		VPCs: []state.VPC{network}, Limits: state.DefaultLimits(),
		NewID: func() string { n++; return fmt.Sprintf("%016x", n) },
		Instance: func(id string) (state.Instance, bool) {
			switch id {
			case "i-0000000000000000a":
				return state.Instance{Addr: netip.MustParseAddr("10.64.1.1"), Zone: "a", Running: true}, true
			case "i-0000000000000000b":
				return state.Instance{Addr: netip.MustParseAddr("10.64.2.1"), Zone: "b"}, true
			case "i-0000000000000000c":
				return state.Instance{Addr: netip.MustParseAddr("10.64.3.1"), Zone: "c", VPC: "vpc-2", Running: true}, true
			}
			return state.Instance{}, false
		},
		Route:     func(t route.Table) { w.tables = append(w.tables, t) },
		Unhealthy: func(_, _ string, k state.Key) { w.cut = append(w.cut, k) },
		Change:    func(c state.Change) { w.changes = append(w.changes, c) },
	}
	for _, c := range change {
		c(&cfg)
	}
	w.Store = state.New(cfg)
	w.group = w.newGroup("web")
	b, err := w.CreateBalancer(scope, state.BalancerSpec{Name: "front", Subnets: []string{"subnet-a", "subnet-b"}},
		func() (netip.Addr, error) { return netip.MustParseAddr("127.80.0.1"), nil }, w.now)
	w.check(err)
	w.balancer = b.ARN
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func p32(n int32) *int32 { return &n }

func (w *world) newGroup(name string, change ...func(*state.GroupSpec)) string {
	w.t.Helper()
	spec := state.GroupSpec{
		Name: name, Protocol: "HTTP", VPC: "vpc-1", TargetType: "ip", Port: p32(80),
		Check: state.CheckSpec{Interval: p32(10), Timeout: p32(5), HealthyThreshold: p32(3), UnhealthyThreshold: p32(2)},
	}
	for _, c := range change {
		c(&spec)
	}
	g, err := w.CreateGroup(scope, spec, w.now)
	w.check(err)
	return g.ARN
}

func (w *world) attach(groups ...string) {
	w.t.Helper()
	var f []route.Weighted
	for _, g := range groups {
		f = append(f, route.Weighted{GroupARN: g, Weight: 1})
	}
	act := []state.Action{{Type: "forward", Action: route.Action{Forward: f}}}
	spec := state.ListenerSpec{Protocol: "HTTP", Port: p32(8080), Actions: act}
	if w.listener != "" {
		_, err := w.ModifyListener(scope, w.listener, spec, nil, w.now)
		w.check(err)
		return
	}
	l, err := w.CreateListener(scope, w.balancer, spec, func(state.Listener) error { return nil }, w.now)
	w.check(err)
	w.listener = l.ARN
}

func (w *world) detach() {
	w.t.Helper()
	_, err := w.DeleteListener(scope, w.listener, w.now)
	w.check(err)
	w.listener = ""
}

// target reads "10.64.1.1", "10.64.1.1:90" or "10.9.0.1:90@all".
func target(text string) state.Description {
	id, zone, _ := strings.Cut(text, "@")
	d := state.Description{ID: id, Zone: zone}
	if i := strings.LastIndex(id, ":"); i >= 0 && (strings.Count(id, ":") == 1 || strings.Contains(id, "]")) {
		n, err := strconv.Atoi(id[i+1:])
		if err != nil {
			panic(err)
		}
		d.ID, d.Port = strings.Trim(id[:i], "[]"), int32(n)
	}
	return d
}

func targets(text string) []state.Description {
	out := []state.Description{}
	for f := range strings.FieldsSeq(text) {
		out = append(out, target(f))
	}
	return out
}

// pass lets time go by until at most d later, and answers each check that falls
// due with r.
func (w *world) pass(d time.Duration, r *state.Result) {
	end := w.now.Add(d)
	for {
		due, next := w.Advance(w.now)
		for _, p := range due {
			w.probes[p.Target] = p
			if r != nil {
				w.Observe(p, *r, w.now, w.now)
				delete(w.probes, p.Target)
			}
		}
		if len(due) > 0 && r != nil {
			_, next = w.Advance(w.now)
		}
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		w.now = next
	}
}

// status is "state/reason" of a target; "-" if it is not there.
func (w *world) status(id string) string {
	w.t.Helper()
	all, err := w.Health(scope, w.group, targets(id))
	w.check(err)
	switch h := all[0]; h.Reason {
	case "":
		return h.State
	case "Target.NotRegistered":
		return "-"
	default:
		_, reason, _ := strings.Cut(h.Reason, ".")
		return h.State + "/" + reason
	}
}

// all is the group's targets and states.
func (w *world) all() string {
	w.t.Helper()
	health, err := w.Health(scope, w.group, nil)
	w.check(err)
	var out []string
	for _, h := range health {
		out = append(out, fmt.Sprintf("%s:%d=%s", h.ID, h.Port, h.State))
	}
	return strings.Join(out, " ")
}

func code(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

// addressOf is a load balancer's address, the n-th one.
func addressOf(n byte) func() (netip.Addr, error) {
	return func() (netip.Addr, error) { return netip.AddrFrom4([4]byte{127, 80, 0, n}), nil }
}
