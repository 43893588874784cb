package resync_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const (
	drainTime = 60 * time.Second // a target drains for so long
	startTime = 5 * time.Second  // and becomes healthy after so long
)

// group is a target group: targets with health, tags, a quota and faults.
type group struct {
	w       *world
	name    string
	arn     string
	kind    claim.TargetType
	family  claim.Family
	targets map[claim.Key]*target
	tags    map[string]string
	quota   int
	slips   int  // so often a draining target drains on, though it was registered
	sick    bool // what is registered stays initial
	// onCall is called before a call is worked off ("health", "tags", "register",
	// "deregister"); its error is the answer.
	onCall func(ctx context.Context, operation string) error
}

type target struct {
	health plan.Health
	reason string
	zone   string
	since  time.Time
	moves  bool // on to healthy, or out
}

func arnOf(name string) string {
	return "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/" + name + "/0123456789abcdef"
}

// nameOf is the group's name in an ARN.
func nameOf(arn string) string {
	if parts := strings.Split(arn, "/"); len(parts) > 1 {
		return parts[1]
	}
	return arn
}

// group adds a target group that is ours, or returns the one that is there.
func (w *world) group(name string) *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.groups[name]
	if g == nil {
		g = &group{w: w, name: name, arn: arnOf(name), kind: claim.IP, family: claim.IPv4, targets: map[claim.Key]*target{},
			tags: map[string]string{binding.OwnerTag: busARN}, quota: 1000}
		w.groups[name] = g
	}
	return g
}

func (w *world) web() *group { return w.group("web") }

// key is an address as "10.0.0.1" (port 8080), "10.0.0.1:9090" or "[fd00::1]:9090".
func key(text string) claim.Key {
	if a, err := netip.ParseAddrPort(text); err == nil {
		return claim.Key{ID: a.Addr().String(), Port: int32(a.Port())}
	}
	return claim.Key{ID: text, Port: 8080}
}

// hold puts targets into the group, given as "10.0.0.1=healthy"; healthy where
// nothing is said.
func (g *group) hold(texts ...string) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	for _, text := range texts {
		for _, f := range strings.Fields(text) {
			id, health, said := strings.Cut(f, "=")
			if !said {
				health = string(plan.Healthy)
			}
			t := &target{health: plan.Health(health), since: time.Now(), moves: health == string(plan.Draining)}
			if t.health == plan.Unused {
				t.reason = "Target.NotInUse"
			}
			g.targets[key(id)] = t
		}
	}
}

// many are n addresses 10.0.a.b.
func many(n int) (out []string) {
	for i := range n {
		out = append(out, "10.0."+strconv.Itoa(1+i/200)+"."+strconv.Itoa(1+i%200))
	}
	return out
}

func (g *group) drop(id string) { g.w.do(func() { delete(g.targets, key(id)) }) }

// move lets targets become healthy, or leave. It is under the lock.
func (g *group) move() {
	for k, t := range g.targets {
		switch age := time.Since(t.since); {
		case !t.moves:
		case t.health == plan.Initial && age >= startTime && !g.sick:
			t.health, t.moves = plan.Healthy, false
		case t.health == plan.Draining && age >= drainTime:
			delete(g.targets, k)
		}
	}
}

// holds returns the group's targets that don't drain, sorted; without the port
// 8080.
func (g *group) holds() string {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.move()
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(g.targets), claim.Compare) {
		if g.targets[k].health != plan.Draining {
			out = append(out, strings.TrimSuffix(k.String(), ":8080"))
		}
	}
	return strings.Join(out, " ")
}

// wantHolds checks the targets that don't drain.
func (g *group) wantHolds(want string) {
	g.w.t.Helper()
	if got := g.holds(); got != want {
		g.w.t.Errorf("group %s holds %q, want %q", g.name, got, want)
	}
}

// groupsOf is ELBv2 as a role sees it; "" is the function's own.
type groupsOf struct {
	w    *world
	role string
}

// enter notes a call and returns the group.
func (x groupsOf) enter(ctx context.Context, operation, arn string, ks []claim.Key) (*group, error) {
	var g *group
	var onCall func(context.Context, string) error
	x.w.do(func() {
		for _, of := range x.w.groups {
			if of.arn == arn {
				g, onCall = of, of.onCall
			}
		}
		var ids []string
		for _, k := range ks {
			ids = append(ids, strings.TrimSuffix(k.String(), ":8080"))
		}
		x.w.calls = append(x.w.calls, call{time.Now(), operation, nameOf(arn), strings.Join(ids, " ")})
	})
	if g == nil {
		return nil, fmt.Errorf("%s: %w", operation, targetgroup.ErrNotFound)
	}
	if onCall != nil {
		if err := onCall(ctx, operation); err != nil {
			return nil, err
		}
	}
	return g, ctx.Err()
}

func (g *group) group() claim.Group {
	return claim.Group{ARN: g.arn, Type: g.kind, Family: g.family, Port: 80}
}

func (x groupsOf) List(context.Context) ([]targetgroup.Listed, error) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	x.w.calls = append(x.w.calls, call{at: time.Now(), operation: "list"})
	if err := x.w.listErr[x.role]; err != nil {
		return nil, err
	}
	var out []targetgroup.Listed
	for _, name := range slices.Sorted(maps.Keys(x.w.groups)) {
		out = append(out, targetgroup.Listed{Group: x.w.groups[name].group(), Name: name})
	}
	return out, nil
}

func (x groupsOf) TagsOf(_ context.Context, arns []string) (map[string]map[string]string, error) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	for range (len(arns) + 19) / 20 {
		x.w.calls = append(x.w.calls, call{at: time.Now(), operation: "tags"})
	}
	if x.w.describeErr != nil {
		return nil, x.w.describeErr
	}
	out := map[string]map[string]string{}
	for _, arn := range arns {
		g := x.w.groups[nameOf(arn)]
		if g == nil || g.arn != arn {
			return nil, fmt.Errorf("%w: a target group went while tags were read", targetgroup.ErrUnavailable)
		}
		out[arn] = maps.Clone(g.tags)
	}
	return out, nil
}

func (x groupsOf) Describe(_ context.Context, ref binding.GroupRef) (claim.Group, error) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	x.w.calls = append(x.w.calls, call{at: time.Now(), operation: "describe"})
	if x.w.describeErr != nil {
		return claim.Group{}, x.w.describeErr
	}
	var found []*group
	for _, g := range x.w.groups {
		carries := len(ref.Tags) > 0
		for k, v := range ref.Tags {
			carries = carries && g.tags[k] == v
		}
		if g.arn == ref.ARN || g.name == ref.Name || carries {
			found = append(found, g)
		}
	}
	if len(found) != 1 {
		return claim.Group{}, fmt.Errorf("%w: %d found", targetgroup.ErrAmbiguous, len(found))
	}
	return found[0].group(), nil
}

func (x groupsOf) Health(ctx context.Context, of claim.Group) (map[claim.Key]plan.Target, error) {
	g, err := x.enter(ctx, "health", of.ARN, nil)
	if err != nil {
		return nil, err
	}
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	g.move()
	out := map[claim.Key]plan.Target{}
	for k, t := range g.targets {
		out[k] = plan.Target{Health: t.health, Reason: t.reason, Zone: t.zone}
	}
	return out, nil
}

func (x groupsOf) Tags(ctx context.Context, arn string) (map[string]string, error) {
	g, err := x.enter(ctx, "tags", arn, nil)
	if err != nil {
		return nil, err
	}
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	return maps.Clone(g.tags), nil
}

func (x groupsOf) Register(ctx context.Context, of claim.Group, ks []claim.Key, zone string) targetgroup.Result {
	return x.change(ctx, "register", of, ks, func(g *group, k claim.Key) error {
		serving := 0
		for _, t := range g.targets {
			if t.health != plan.Draining {
				serving++
			}
		}
		switch t := g.targets[k]; {
		case t != nil && t.health != plan.Draining:
			return nil
		case t != nil && g.slips > 0:
			g.slips--
			return nil
		case serving >= g.quota:
			return targetgroup.ErrQuota
		}
		if zone == binding.ZoneAuto {
			zone = ""
		}
		g.targets[k] = &target{health: plan.Initial, since: time.Now(), moves: true, zone: zone}
		return nil
	})
}

func (x groupsOf) Deregister(ctx context.Context, of claim.Group, ks []claim.Key) targetgroup.Result {
	return x.change(ctx, "deregister", of, ks, func(g *group, k claim.Key) error {
		switch t := g.targets[k]; {
		case t == nil || t.health == plan.Draining:
		case t.health == plan.Unused:
			delete(g.targets, k)
		default:
			g.targets[k] = &target{health: plan.Draining, since: time.Now(), moves: true}
		}
		return nil
	})
}

func (x groupsOf) change(ctx context.Context, operation string, of claim.Group, ks []claim.Key, do func(*group, claim.Key) error) targetgroup.Result {
	res := targetgroup.Result{Failed: map[claim.Key]error{}, Calls: (len(ks) + 199) / 200}
	g, err := x.enter(ctx, operation, of.ARN, ks)
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	for _, k := range ks {
		e := err
		if e == nil {
			e = do(g, k)
		}
		if e != nil {
			res.Failed[k] = e
		}
	}
	return res
}

// callsOf counts the calls of an operation on a group; of all, if it is "".
func (w *world) callsOf(operation, group string) (n int) {
	w.do(func() {
		for _, c := range w.calls {
			if c.operation == operation && (group == "" || c.group == group) {
				n++
			}
		}
	})
	return n
}
