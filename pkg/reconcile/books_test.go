package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const (
	busARN   = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	queueARN = "arn:aws:sqs:eu-west-1:111122223333:registrar"
	webARN   = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"
)

func ruleARN(name string) string {
	return "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name
}

// clock stands still until it is told to go on.
type clock struct{ at time.Time }

func newClock() *clock                { return &clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

// rules is a bus: constants by the name of a rule, in any order.
type rules struct {
	constants map[string]string
	disabled  map[string]bool
	tags      map[string]string
	fails     string   // name of a rule whose targets can't be read
	asked     []string // rules whose targets were read
}

func (r *rules) rule(name string) binding.Rule {
	state := "ENABLED"
	if r.disabled[name] {
		state = "DISABLED"
	}
	return binding.Rule{ARN: ruleARN(name), Name: name, Bus: "elbridge", State: state,
		Pattern: `{"source":["elbridge"],"detail":{"labels":{"app":["` + name + `"]}}}`}
}

func (r *rules) List(context.Context) ([]binding.Rule, error) {
	var out []binding.Rule
	for name := range r.constants {
		out = append(out, r.rule(name))
	}
	return out, nil
}

func (r *rules) Rule(_ context.Context, name string) (binding.Rule, error) { return r.rule(name), nil }

func (r *rules) Targets(_ context.Context, name string) ([]binding.Target, error) {
	if name == r.fails {
		return nil, errors.New("no answer")
	}
	r.asked = append(r.asked, name)
	return []binding.Target{{ID: "registrar", ARN: queueARN, Transformer: &binding.Transformer{
		Template: `{"binding":` + r.constants[name] + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}, nil
}

func (r *rules) Tags(context.Context, string) (map[string]string, error) { return r.tags, nil }

// inTurn makes one call at a time, as the fake counts them.
type inTurn struct {
	*rules
	turn chan struct{}
}

func (r inTurn) Targets(ctx context.Context, name string) ([]binding.Target, error) {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	return r.rules.Targets(ctx, name)
}

func constants(text string) string { return `{"targetGroup":"` + webARN + `","port":8080` + text + `}` }

// TestFresh_I8: a fault lasts until its rule is right, though its targets are not
// read each time, and what was not read to the end is an error.
func TestFresh_I8(t *testing.T) {
	c := newClock()
	bus := &rules{constants: map[string]string{"b": constants(""), "a": constants(`,"mode":"observe"`), "wrong": constants(`,"prot":1`)}}
	var told []string
	book := reconcile.NewRuleBook(inTurn{bus, make(chan struct{}, 1)}, queueARN, c.now, func(r binding.Rule, _ error) { told = append(told, r.Name) })
	look := func(what string) {
		t.Helper()
		s, err := book.Fresh(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, r := range s.Rules {
			got = append(got, r.Name)
		}
		for _, b := range s.Bindings {
			got = append(got, strings.TrimPrefix(b.Rule, ruleARN("")))
		}
		if want := "a b wrong a b"; strings.Join(got, " ") != want {
			t.Errorf("%s: rules and bindings %v, want %s", what, got, want)
		}
		if len(s.Faults) != 1 || s.Faults[0].Rule.Name != "wrong" || !strings.Contains(s.Faults[0].Err.Error(), "prot") {
			t.Errorf("%s: faults %v, want rule wrong's", what, s.Faults)
		}
	}
	look("at first")
	look("at once again")
	if len(bus.asked) != 3 || len(told) != 1 {
		t.Errorf("targets read of %v, told of %v, want each once", bus.asked, told)
	}
	c.pass(time.Minute)
	look("a minute later")
	if len(bus.asked) != 6 || len(told) != 2 {
		t.Errorf("after a minute: targets read of %v, told of %v, want each again", bus.asked, told)
	}
	c.pass(time.Minute)
	bus.fails = "a"
	if s, err := book.Fresh(t.Context()); err == nil || s.Rules != nil || s.Bindings != nil {
		t.Errorf("a page is missing: %+v, error %v, want the error alone", s, err)
	}
	bus.fails, bus.constants["wrong"] = "", constants("")
	c.pass(time.Minute) // what was read beside the missing page is not read again so soon
	if s, err := book.Fresh(t.Context()); err != nil || len(s.Faults) != 0 || len(s.Bindings) != 3 {
		t.Errorf("once it is right: %+v, error %v", s, err)
	}
	delete(bus.constants, "b")
	if s, err := book.Fresh(t.Context()); err != nil || len(s.Rules) != 2 || len(s.Bindings) != 2 {
		t.Errorf("without rule b: %+v, error %v", s, err)
	}
}

// What is told of a rule is as the rule is now, whichever part of it changed and
// whatever was understood of it before.
func TestFreshAfterChanges_I8(t *testing.T) {
	c := newClock()
	bus := &rules{constants: map[string]string{"a": constants("")}, disabled: map[string]bool{}}
	book := reconcile.NewRuleBook(bus, queueARN, c.now, nil)
	for _, tt := range []struct {
		what      string
		constants string
		disabled  bool
		want      string // of the only binding
	}{
		{"at first", "", false, "manage true"},
		{"as it was", "", false, "manage true"},
		{"disabled", "", true, "manage false"},
		{"enabled", "", false, "manage true"},
		{"other constants", `,"mode":"observe"`, false, "observe true"},
		{"both", "", true, "manage false"},
		{"unreadable", `,"prot":1`, true, ""},
		{"right again", "", true, "manage false"},
	} {
		c.pass(time.Second)
		bus.constants["a"], bus.disabled["a"] = constants(tt.constants), tt.disabled
		s, err := book.FreshOldest(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, b := range s.Bindings {
			got += fmt.Sprint(b.Mode, " ", b.Enabled)
		}
		if got != tt.want || (len(s.Faults) > 0) != (tt.want == "") {
			t.Errorf("%s: bindings %q, faults %v, want %q", tt.what, got, s.Faults, tt.want)
		}
	}
}

// Whoever asks round after round reads the targets of a few rules in each.
func TestFreshOldest(t *testing.T) {
	c := newClock()
	bus := &rules{constants: map[string]string{"a": constants(""), "b": constants(""), "c": constants("")}}
	book := reconcile.NewRuleBook(inTurn{bus, make(chan struct{}, 1)}, queueARN, c.now, nil)
	for range 4 {
		if _, err := book.FreshOldest(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		slices.Sort(bus.asked)
		c.pass(time.Second)
	}
	if got := strings.Join(bus.asked, " "); got != "a a b b c c" {
		t.Errorf("targets were read of %s, want each at first, and then one a round in turn", got)
	}
}

// groups is one target group, with what was called.
type groups struct {
	tags   map[string]string
	err    error
	refuse map[claim.Key]error
	calls  []string
}

func (g *groups) Describe(_ context.Context, ref binding.GroupRef) (claim.Group, error) {
	g.calls = append(g.calls, "describe "+ref.Name)
	return web, g.err
}

func (g *groups) Health(context.Context, claim.Group) (map[claim.Key]plan.Target, error) {
	panic("what a group holds is the caller's to read")
}

func (g *groups) Tags(context.Context, string) (map[string]string, error) {
	g.calls = append(g.calls, "tags")
	return g.tags, g.err
}

func (g *groups) Register(_ context.Context, _ claim.Group, ks []claim.Key, zone string) targetgroup.Result {
	return g.call("register in "+zone, ks)
}

func (g *groups) Deregister(_ context.Context, _ claim.Group, ks []claim.Key) targetgroup.Result {
	return g.call("deregister", ks)
}

func (g *groups) call(what string, ks []claim.Key) targetgroup.Result {
	res := targetgroup.Result{Failed: map[claim.Key]error{}, Calls: 1}
	for _, k := range ks {
		what += " " + k.ID
		if err := g.refuse[k]; err != nil {
			res.Failed[k] = err
		}
	}
	g.calls = append(g.calls, what)
	return res
}

func TestGroupBook(t *testing.T) {
	c, api := newClock(), &groups{}
	book := reconcile.NewGroupBook(c.now)
	get := func(b *binding.Binding, calls int) {
		t.Helper()
		if g, err := book.Get(t.Context(), api, b); err != nil || g != web || len(api.calls) != calls {
			t.Errorf("%+v, error %v after %q, want the group after %d calls", g, err, api.calls, calls)
		}
	}
	b := &binding.Binding{Group: binding.GroupRef{Name: "web"}}
	get(b, 1)
	get(b, 1)
	get(&binding.Binding{Group: binding.GroupRef{Name: "web"}, RoleARN: "arn:aws:iam::444455556666:role/x"}, 2) // another account's
	book.Forget(webARN)
	get(b, 3)
	c.pass(time.Minute) // another group may have the name
	get(b, 4)
	c.pass(time.Minute)
	api.err = targetgroup.ErrNotFound
	fails := func(want error, calls int) {
		t.Helper()
		if _, err := book.Get(t.Context(), api, b); !errors.Is(err, want) || len(api.calls) != calls {
			t.Errorf("error %v after %q, want %v after %d calls", err, api.calls, want, calls)
		}
	}
	fails(targetgroup.ErrNotFound, 5)
	fails(targetgroup.ErrNotFound, 5) // a moment later it is still not there
	c.pass(3 * time.Second)
	fails(targetgroup.ErrNotFound, 6)
	c.pass(3 * time.Second)
	api.err = targetgroup.ErrThrottled // says nothing of the group
	fails(targetgroup.ErrThrottled, 7)
	fails(targetgroup.ErrThrottled, 8)
	api.err = nil
	get(b, 9)
}

// TestLimits_I18 takes the strictest of a group's rails.
func TestLimits_I18(t *testing.T) {
	owned, frozen := map[string]string{binding.OwnerTag: "elbridge"}, map[string]string{binding.FreezeTag: "incident 7"}
	bs := func(keep bool) []binding.Binding {
		return []binding.Binding{{MaxRemovalPercent: 20, MinTargets: 1}, {MaxRemovalPercent: 10, MinTargets: 1, KeepForeign: keep}, {MaxRemovalPercent: 30, MinTargets: 5}}
	}
	tests := map[string]struct {
		group, bus map[string]string
		bs         []binding.Binding
		want       string // owned, frozen, percent, least
	}{
		"ours":                          {group: owned, bs: bs(false), want: "true false 10 5"},
		"nobody's":                      {bs: bs(false), want: "false false 10 5"},
		"ours, but one binding keeps":   {group: owned, bs: bs(true), want: "false false 10 5"},
		"the group is frozen":           {group: frozen, bs: bs(false), want: "false true 10 5"},
		"the bus is frozen":             {group: owned, bus: frozen, bs: bs(false), want: "true true 10 5"},
		"ours, and no binding names it": {group: owned, want: "true false 100 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			lim, err := reconcile.NewTagBook(c.now).Limits(t.Context(), busARN, &rules{tags: tt.bus}, &groups{tags: tt.group}, web, tt.bs)
			if got := fmt.Sprint(lim.Owned, lim.Frozen, lim.MaxRemovalPercent, lim.MinTargets); err != nil || got != tt.want || lim.Complete {
				t.Errorf("%+v, error %v, want %s and the rest left to the caller", lim, err, tt.want)
			}
		})
	}
}

// TestTagsAge_I3: a freeze is seen as soon as a decision is too old to be acted on.
func TestTagsAge_I3(t *testing.T) {
	c, api, bus := newClock(), &groups{}, &rules{}
	book := reconcile.NewTagBook(c.now)
	limits := func() (frozen bool, err error) {
		lim, err := book.Limits(t.Context(), busARN, bus, api, web, nil)
		return lim.Frozen, err
	}
	if frozen, err := limits(); frozen || err != nil {
		t.Fatalf("frozen %t, error %v", frozen, err)
	}
	api.tags = map[string]string{binding.FreezeTag: "true"}
	c.pass(reconcile.DecisionMaxAge - time.Millisecond)
	if _, err := limits(); err != nil || len(api.calls) != 1 {
		t.Errorf("error %v, calls %q, want one reading within a decision", err, api.calls)
	}
	c.pass(time.Millisecond)
	if frozen, err := limits(); !frozen || err != nil {
		t.Errorf("frozen %t, error %v, want it frozen", frozen, err)
	}
	c.pass(reconcile.DecisionMaxAge)
	api.err = targetgroup.ErrThrottled
	if _, err := limits(); !errors.Is(err, targetgroup.ErrThrottled) {
		t.Errorf("error %v: tags that can't be read are no tags", err)
	}
}

var web = claim.Group{ARN: webARN, Type: claim.IP, Family: claim.IPv4, Port: 80}

func sorted(m map[claim.Key]error) []claim.Key {
	return slices.SortedFunc(maps.Keys(m), claim.Compare)
}
