package plan_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

func key(id string) claim.Key { return claim.Key{ID: id, Port: 8080} }

func ids(cs []plan.Change) string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.ID
	}
	return strings.Join(out, " ")
}

// TestDiff_I5_I8_I9_I18 writes claims and unclaimed keys as "a b" (unclaimed: a!
// is witnessed, a+ is shown by the API server) and the group as "a=healthy".
func TestDiff_I5_I8_I9_I18(t *testing.T) {
	one := plan.Limits{Complete: true, Owned: true, MaxRemovalPercent: 20, MinTargets: 1}
	with := func(f func(*plan.Limits)) plan.Limits { l := one; f(&l); return l }
	tests := map[string]struct {
		claimed, unclaimed, current string
		lim                         plan.Limits
		want                        string // "registered | deregistered | held"
	}{
		"new pod":                                          {claimed: "a", lim: one, want: "a |  | "},
		"same set":                                         {claimed: "a", current: "a=initial", lim: one, want: " |  | "},
		"I5 claimed again in its drain":                    {claimed: "a", current: "a=draining", lim: one, want: "a |  | "},
		"P050 already draining":                            {unclaimed: "a", current: "a=draining", lim: one, want: " |  | "},
		"sorted, no duplicates":                            {claimed: "z b z", lim: one, want: "b z |  | "},
		"a key nobody looked at stays":                     {claimed: "a", current: "a=healthy b=healthy", lim: one, want: " |  | "},
		"claimed wins over unclaimed":                      {claimed: "a", unclaimed: "a!", current: "a=healthy", lim: one, want: " |  | "},
		"unclaimed and absent":                             {unclaimed: "a!", lim: one, want: " |  | "},
		"one of many":                                      {claimed: "a b", unclaimed: "c", current: "a=healthy b=healthy c=healthy", lim: one, want: " | c | "},
		"I9 one after the other is many":                   {claimed: "a b", unclaimed: "c", current: "a=healthy b=healthy c=healthy d=draining", lim: one, want: " |  | c"},
		"I9 witnessed drain does not count":                {unclaimed: "c d!", current: "a=healthy b=healthy c=healthy d=draining", lim: one, want: " | c | "},
		"P035 too many at once":                            {claimed: "a", unclaimed: "b c", current: "a=healthy b=healthy c=healthy", lim: one, want: " |  | b c"},
		"too many, but witnessed":                          {claimed: "a", unclaimed: "b! c", current: "a=healthy b=healthy c=unhealthy", lim: one, want: " | b c | "},
		"I9 all unhealthy is no witness":                   {unclaimed: "a b", current: "a=unhealthy b=unhealthy", lim: one, want: " |  | a b"},
		"I9 unavailable is no witness":                     {unclaimed: "b c", current: "a=healthy b=unavailable c=unavailable", lim: one, want: " |  | b c"},
		"last healthy one, no witness":                     {unclaimed: "a", current: "a=healthy", lim: one, want: " |  | a"},
		"last healthy one, witnessed":                      {unclaimed: "a!", current: "a=healthy", lim: one, want: " | a | "},
		"I8 incomplete read: no removal":                   {claimed: "z", unclaimed: "a! b", current: "a=healthy b=initial", lim: with(func(l *plan.Limits) { l.Complete = false }), want: "z |  | a b"},
		"frozen: additions only":                           {claimed: "z", unclaimed: "a!", current: "a=healthy", lim: with(func(l *plan.Limits) { l.Frozen = true }), want: "z |  | a"},
		"I18 foreign group keeps the unknown":              {claimed: "z", unclaimed: "a! b!+", current: "a=healthy b=healthy", lim: with(func(l *plan.Limits) { l.Owned = false }), want: "z | b | a"},
		"I9 minTargets counts what goes with a witness":    {unclaimed: "a! b", current: "a=healthy b=healthy", lim: one, want: " | a | b"},
		"I9 failing open, unhealthy ones are all there is": {claimed: "b", unclaimed: "a", current: "a=unhealthy b=unhealthy", lim: one, want: " |  | a"},
		"I9 unavailable ones may be all there is":          {claimed: "b", unclaimed: "a", current: "a=unavailable b=unavailable", lim: one, want: " |  | a"},
		"an unused one gets no requests":                   {claimed: "b", unclaimed: "a", current: "a=unused b=unused", lim: one, want: " | a | "},
		"I9 what drains with a witness allows nothing":     {unclaimed: "b c d! e! f! g! h! i!", current: "a=healthy b=healthy c=healthy d=draining e=draining f=draining g=draining h=draining i=draining", lim: one, want: " |  | b c"},
		"I9 what drains without one is of the whole":       {unclaimed: "c d", current: "a=healthy b=healthy c=healthy d=draining", lim: with(func(l *plan.Limits) { l.MaxRemovalPercent = 50 }), want: " | c | "},
		"minTargets":                                       {unclaimed: "c", current: "a=healthy b=healthy c=healthy", lim: with(func(l *plan.Limits) { l.MinTargets = 3 }), want: " |  | c"},
		"maxRemovalPercent":                                {unclaimed: "c d", current: "a=healthy b=healthy c=healthy d=healthy", lim: with(func(l *plan.Limits) { l.MaxRemovalPercent = 50 }), want: " | c d | "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claimed, unclaimed, current := parse(tt.claimed, tt.unclaimed, tt.current)
			c := plan.Diff(claimed, unclaimed, current, tt.lim)
			if got := ids(c.Register) + " | " + ids(c.Deregister) + " | " + ids(c.Held); got != tt.want {
				t.Errorf("Diff(%q, %q, %q) = %q, want %q", tt.claimed, tt.unclaimed, tt.current, got, tt.want)
			}
		})
	}
}

func parse(claimed, unclaimed, current string) ([]claim.Claim, map[claim.Key]plan.Evidence, map[claim.Key]plan.Target) {
	var cs []claim.Claim
	for _, id := range strings.Fields(claimed) {
		cs = append(cs, claim.Claim{Key: key(id)})
	}
	un := map[claim.Key]plan.Evidence{}
	for _, f := range strings.Fields(unclaimed) {
		f, shown := strings.CutSuffix(f, "+")
		id, witnessed := strings.CutSuffix(f, "!")
		ev := plan.Evidence{Shown: shown}
		if witnessed {
			ev.Witness = plan.PodEnded
		}
		un[key(id)] = ev
	}
	cur := map[claim.Key]plan.Target{}
	for _, f := range strings.Fields(current) {
		id, health, _ := strings.Cut(f, "=")
		cur[key(id)] = plan.Target{Health: plan.Health(health)}
	}
	return cs, un, cur
}

// TestDiff_properties draws whole situations: no key is both registered and
// removed, a claimed key is never removed or held, nothing goes on doubt, and
// unwitnessed removals stay within the limit whatever the rest looks like.
func TestDiff_properties_I5_I8_I9(t *testing.T) {
	states := []plan.Health{plan.Initial, plan.Healthy, plan.Unhealthy, plan.Unused, plan.Draining, plan.Unavailable}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.StringMatching(`[a-h]`), 0, 8)
		var claimed []claim.Claim
		for _, id := range some.Draw(t, "claimed") {
			claimed = append(claimed, claim.Claim{Key: key(id)})
		}
		unclaimed := map[claim.Key]plan.Evidence{}
		for _, id := range some.Draw(t, "unclaimed") {
			unclaimed[key(id)] = plan.Evidence{
				Witness: rapid.SampledFrom([]plan.Witness{plan.Unwitnessed, plan.PodEnded, plan.OtherOwner, plan.Emptied}).Draw(t, "witness"),
				Shown:   rapid.Bool().Draw(t, "shown")}
		}
		current := map[claim.Key]plan.Target{}
		healthy := 0
		for _, id := range some.Draw(t, "current") {
			if _, twice := current[key(id)]; twice {
				continue
			}
			h := rapid.SampledFrom(states).Draw(t, "health")
			current[key(id)] = plan.Target{Health: h}
			if h == plan.Healthy {
				healthy++
			}
		}
		lim := plan.Limits{Complete: rapid.Bool().Draw(t, "complete"), Owned: rapid.Bool().Draw(t, "owned"),
			Frozen: rapid.Bool().Draw(t, "frozen"), MaxRemovalPercent: rapid.IntRange(0, 100).Draw(t, "percent"),
			MinTargets: rapid.IntRange(0, 4).Draw(t, "min")}

		c := plan.Diff(claimed, unclaimed, current, lim)
		if again := plan.Diff(claimed, unclaimed, current, lim); !slices.Equal(c.Held, again.Held) || !slices.Equal(c.Deregister, again.Deregister) {
			t.Fatalf("two runs differ: %v, %v", c, again)
		}
		want := map[claim.Key]bool{}
		for _, cl := range claimed {
			want[cl.Key] = true
		}
		unwitnessed, gone, serving := 0, 0, false
		for _, ch := range append(slices.Clone(c.Deregister), c.Held...) {
			if want[ch.Key] {
				t.Fatalf("claimed key %v leaves", ch.Key)
			}
		}
		for _, ch := range c.Deregister {
			if ch.Witness == plan.Unwitnessed {
				unwitnessed++
				serving = serving || ch.Was != plan.Unused
			}
			if ch.Was == plan.Healthy {
				gone++
			}
			if !lim.Owned && !unclaimed[ch.Key].Shown {
				t.Fatalf("%v leaves a foreign group unshown", ch.Key)
			}
		}
		if len(c.Deregister) > 0 && (!lim.Complete || lim.Frozen) {
			t.Fatalf("removal on doubt or while frozen: %v", c.Deregister)
		}
		if serving && healthy-gone < lim.MinTargets {
			t.Fatalf("%d of %d healthy keys go, some target unwitnessed, at least %d must stay", gone, healthy, lim.MinTargets)
		}
		if unwitnessed > max(1, len(current)*lim.MaxRemovalPercent/100) {
			t.Fatalf("%d unwitnessed removals of %d keys at %d%%", unwitnessed, len(current), lim.MaxRemovalPercent)
		}
	})
}

func TestHash_I9(t *testing.T) {
	held := func(ids ...string) plan.Changes {
		var c plan.Changes
		for i, id := range ids {
			c.Held = append(c.Held, plan.Change{Key: key(id), UID: string(rune('0' + i))})
		}
		return c
	}
	if h := held().Hash("g"); h != "" {
		t.Errorf("hash of nothing held = %q, want none", h)
	}
	same, other, unknown := held("a", "b"), held("a", "c"), held("a", "b")
	unknown.Held[0].UID = ""
	if same.Hash("g") != held("a", "b").Hash("g") || same.Hash("g") != unknown.Hash("g") {
		t.Error("equal plans have different hashes")
	}
	if same.Hash("g") == other.Hash("g") || same.Hash("g") == same.Hash("h") {
		t.Error("different keys or groups share a hash")
	}
}

// TestApprove_I9: an operator lets go that very plan, and nothing that is held
// for another reason.
func TestApprove_I9(t *testing.T) {
	held := plan.Changes{Deregister: []plan.Change{{Key: key("b"), Witness: plan.PodEnded}}, Held: []plan.Change{
		{Key: key("a"), Hold: plan.HeldLimit}, {Key: key("c"), Hold: plan.HeldForeign}, {Key: key("d"), Hold: plan.HeldLimit}}}
	hash := held.Hash("g")
	tests := map[string]struct{ group, hash, deregister, held string }{
		"that very plan":     {"g", hash, "a b d", "c"},
		"another plan":       {"g", "0123456789ab", "b", "a c d"},
		"no hash":            {"g", "", "b", "a c d"},
		"the same elsewhere": {"h", hash, "b", "a c d"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := held.Approve(tt.group, tt.hash)
			if ids(c.Deregister) != tt.deregister || ids(c.Held) != tt.held {
				t.Errorf("Approve = %q | %q, want %q | %q", ids(c.Deregister), ids(c.Held), tt.deregister, tt.held)
			}
		})
	}
	if c := (plan.Changes{}).Approve("g", ""); !c.Empty() {
		t.Errorf("approving nothing gives %v", c)
	}
	for _, ch := range held.Approve("g", hash).Deregister {
		if want := plan.Approved; ch.ID != "b" && (ch.Witness != want || ch.Hold != "") {
			t.Errorf("%v is let go as %q, hold %q, want %q", ch.Key, ch.Witness, ch.Hold, want)
		}
	}
}

// TestDiff_empty: an emptied binding's keys go in steps, to the last one.
func TestDiff_empty_I8_I9(t *testing.T) {
	lim := plan.Limits{Complete: true, Owned: true, MaxRemovalPercent: 20, MinTargets: 1}
	ten := "a=healthy b=healthy c=healthy d=healthy e=healthy f=healthy g=healthy h=healthy i=healthy j=healthy"
	with := func(f func(*plan.Limits)) plan.Limits { l := lim; f(&l); return l }
	tests := map[string]struct {
		emptied, current string
		lim              plan.Limits
		want             string // "deregistered | held | later"
	}{
		"the first step":                 {"a b c d e f g h i j", ten, lim, "a b |  | c d e f g h i j"},
		"while they drain, no other":     {"a b c d", strings.Replace(strings.Replace(ten, "a=healthy", "a=draining", 1), "b=healthy", "b=draining", 1), lim, " |  | c d"},
		"the last one goes too":          {"a", "a=healthy", lim, "a |  | "},
		"what gets no requests, at once": {"a b c", "a=unused b=unused c=unused", lim, "a b c |  | "},
		"what is unhealthy, at once":     {"a b c", "a=unhealthy b=healthy c=unhealthy", lim, "a b c |  | "},
		"as many as the binding says":    {"a b c", "a=healthy b=healthy c=healthy", with(func(l *plan.Limits) { l.MaxRemovalPercent = 100 }), "a b c |  | "},
		"frozen":                         {"a b", "a=healthy b=healthy", with(func(l *plan.Limits) { l.Frozen = true }), " | a b | "},
		"I8 on doubt, none":              {"a b", "a=healthy b=healthy", with(func(l *plan.Limits) { l.Complete = false }), " | a b | "},
		"I18 not from a foreign group":   {"a b", "a=healthy b=healthy", with(func(l *plan.Limits) { l.Owned = false }), " | a b | "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, current := parse("", "", tt.current)
			evidence := map[claim.Key]plan.Evidence{}
			for _, id := range strings.Fields(tt.emptied) {
				evidence[key(id)] = plan.Evidence{Witness: plan.Emptied}
			}
			c := plan.Diff(nil, evidence, current, tt.lim)
			if got := ids(c.Deregister) + " | " + ids(c.Held) + " | " + ids(c.Later); got != tt.want {
				t.Errorf("Diff = %q, want %q", got, tt.want)
			}
		})
	}
}
