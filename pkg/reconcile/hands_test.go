package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// desk is hands with what they write.
type desk struct {
	*clock
	reconcile.Hands
	log    bytes.Buffer
	sent   []bus.Entry
	busErr error
}

func newDesk() *desk {
	d := &desk{clock: newClock()}
	d.Hands = reconcile.Hands{Observed: map[string]bool{"lab": true}, Events: d, Now: d.now, Log: slog.New(slog.NewJSONHandler(&d.log, nil)), Meter: telemetry.NewMeter(&d.log, d.now, nil)}
	return d
}

func (d *desk) Put(_ context.Context, es []bus.Entry) ([]bus.Unsent, error) {
	d.sent = append(d.sent, es...)
	return nil, d.busErr
}

// work is one group under three rules, with its load balancer.
func work(api *groups) *reconcile.Work {
	return &reconcile.Work{Group: web, API: api, Claimed: 7, Rule: "first", Cause: targetevent.Cause{Kind: targetevent.Resync, RunID: "run-1"},
		Bindings: []binding.Binding{{Rule: "zonal", Mode: binding.Manage, AvailabilityZone: "eu-west-1a"}, {Rule: "plain", Mode: binding.Manage, AvailabilityZone: binding.ZoneAuto}, {Rule: "watched", Mode: binding.Observe}}}
}

func key(id string) claim.Key { return claim.Key{ID: id, Port: 8080} }

// changes are given as "10.0.0.1 rule=plain cluster=prod because=missing".
func changes(texts ...string) []plan.Change {
	var out []plan.Change
	for _, text := range texts {
		id, words, _ := strings.Cut(text, " ")
		c := plan.Change{Key: key(id), Cluster: "prod", Rule: "plain"}
		for _, f := range strings.Fields(words) {
			k, v, _ := strings.Cut(f, "=")
			switch k {
			case "rule":
				c.Rule = v
			case "cluster":
				c.Cluster = v
			case "because":
				c.Cause = plan.Cause{Kind: "drift", RunID: "run-1", Round: 3, Request: "ask-1", Reason: v}
			case "hint":
				c.Cause = plan.Cause{Kind: "hint", EventID: v, MessageID: "m-" + v, Reason: "IPAssigned"}
			default:
				panic("unknown word " + f)
			}
		}
		out = append(out, c)
	}
	return out
}

func decode[T targetevent.TargetsChanged | targetevent.RemovalHeld | targetevent.BindingInvalid](t *testing.T, es []bus.Entry) []T {
	t.Helper()
	var out []T
	for _, e := range es {
		ev, err := targetevent.Decode[T](e.Detail)
		if err != nil || e.Source != targetevent.Source {
			t.Fatalf("%s from %s: %v", e.DetailType, e.Source, err)
		}
		out = append(out, ev)
	}
	return out
}

func ids(cs []plan.Change) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.ID)
	}
	return strings.Join(out, " ")
}

// TestRegister_I6_I7_I19: a call a zone, nothing for what is observed, and an
// event for each.
func TestRegister_I6_I7_I19(t *testing.T) {
	d, api := newDesk(), &groups{refuse: map[claim.Key]error{key("10.0.0.2"): targetgroup.ErrInvalidTarget}}
	w := work(api)
	done := d.Register(t.Context(), w, changes("10.0.0.1 rule=zonal", "10.0.0.2", "10.0.0.3", "10.0.0.4 rule=watched", "10.0.0.5 cluster=lab", "10.0.0.6 rule=unknown"))
	if want := []string{"register in auto 10.0.0.2 10.0.0.3", "register in eu-west-1a 10.0.0.1"}; !slices.Equal(api.calls, want) {
		t.Errorf("calls %q, want %q", api.calls, want)
	}
	if got := ids(done.Made) + " | " + ids(done.WouldDo); got != "10.0.0.3 10.0.0.1 | 10.0.0.4 10.0.0.5 10.0.0.6" || done.Calls != 2 ||
		!slices.Equal(sorted(done.Failed), []claim.Key{key("10.0.0.2")}) || !errors.Is(done.Failed[key("10.0.0.2")], targetgroup.ErrInvalidTarget) {
		t.Errorf("made, would do %s, failed %v, %d calls", got, done.Failed, done.Calls)
	}
	var got []string
	for _, ev := range decode[targetevent.TargetsChanged](t, w.Outbox) {
		text := fmt.Sprint(ev.Mode, " ", ev.WouldDo)
		for _, k := range ev.Registered {
			text += " " + k.ID + k.Zone
		}
		for _, f := range ev.Failed {
			text += " !" + f.ID + " " + f.Operation
		}
		got = append(got, text)
	}
	if want := []string{"observe true 10.0.0.4 10.0.0.5 10.0.0.6", "manage false 10.0.0.3 !10.0.0.2 register", "manage false 10.0.0.1eu-west-1a"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestObserveEverything_I19(t *testing.T) {
	d, api := newDesk(), &groups{}
	d.Observe = true
	w := work(api)
	in, out := d.Register(t.Context(), w, changes("10.0.0.1")), d.Deregister(t.Context(), w, changes("10.0.0.2"), nil)
	if len(api.calls) != 0 || len(in.WouldDo) != 1 || len(out.WouldDo) != 1 || len(in.Made)+len(out.Made) != 0 {
		t.Errorf("calls %q, registered %+v, deregistered %+v", api.calls, in, out)
	}
	if evs := decode[targetevent.TargetsChanged](t, w.Outbox); len(evs) != 2 || !evs[0].WouldDo || !evs[1].WouldDo {
		t.Errorf("events %+v, want two of what would be done", evs)
	}
}

// TestCause_I10: an event has the cause of its changes, and the work's where they
// have none.
func TestCause_I10(t *testing.T) {
	tests := map[string]struct {
		changes []string
		rule    string
		want    targetevent.Cause
	}{
		"a difference":                      {[]string{"10.0.0.1 because=missing"}, "plain", targetevent.Cause{Kind: targetevent.Drift, RunID: "run-1", Round: 3, Drift: "missing", Request: "ask-1"}},
		"a hint":                            {[]string{"10.0.0.1 hint=e1"}, "plain", targetevent.Cause{Kind: targetevent.Hint, EventID: "e1", MessageID: "m-e1"}},
		"none":                              {[]string{"10.0.0.1"}, "plain", targetevent.Cause{Kind: targetevent.Resync, RunID: "run-1"}},
		"none, and no rule":                 {[]string{"10.0.0.1 rule="}, "first", targetevent.Cause{Kind: targetevent.Resync, RunID: "run-1"}},
		"the first that has one of its own": {[]string{"10.0.0.1", "10.0.0.2 rule=zonal hint=e2", "10.0.0.3 hint=e3"}, "zonal", targetevent.Cause{Kind: targetevent.Hint, EventID: "e2", MessageID: "m-e2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, w := newDesk(), work(&groups{})
			w.Bindings = nil // one call
			d.Deregister(t.Context(), w, changes(tt.changes...), nil)
			d.Held(t.Context(), w, plan.Changes{Held: changes(tt.changes...)}, nil)
			if ev := decode[targetevent.TargetsChanged](t, w.Outbox[:1])[0]; ev.Cause != tt.want || ev.Rule != tt.rule {
				t.Errorf("changed because of %+v by rule %q, want %+v by %q", ev.Cause, ev.Rule, tt.want, tt.rule)
			}
			if ev := decode[targetevent.RemovalHeld](t, w.Outbox[1:])[0]; ev.Cause != tt.want || ev.Rule != tt.rule {
				t.Errorf("held because of %+v by rule %q, want %+v by %q", ev.Cause, ev.Rule, tt.want, tt.rule)
			}
		})
	}
	t.Run("what failed has one as well", func(t *testing.T) {
		d, w := newDesk(), work(&groups{refuse: map[claim.Key]error{key("10.0.0.1"): targetgroup.ErrThrottled}})
		d.Register(t.Context(), w, changes("10.0.0.1 because=missing"))
		if ev := decode[targetevent.TargetsChanged](t, w.Outbox)[0]; ev.Cause.Drift != "missing" || len(ev.Failed) != 1 {
			t.Errorf("event %+v", ev)
		}
	})
}

// TestDeregister_I10 follows a removal into event, log and metrics.
func TestDeregister_I10(t *testing.T) {
	d, api := newDesk(), &groups{}
	w := work(api)
	w.Lag = func(c plan.Change) (time.Duration, bool) { return 2 * time.Second, c.ID == "10.0.0.1" }
	current := map[claim.Key]plan.Target{key("10.0.0.1"): {Health: plan.Healthy}, key("10.0.0.2"): {Health: plan.Initial}, key("10.0.0.3"): {Health: plan.Draining}}
	d.Deregister(t.Context(), w, changes("10.0.0.1 because=extra", "10.0.0.2 because=extra"), current)
	ev := decode[targetevent.TargetsChanged](t, w.Outbox)[0]
	if want := (targetevent.Counts{Claimed: 7, Healthy: 1, Draining: 1, Targets: 2}); ev.Counts != want || ev.Deregistered[0].Reason != "extra" || !slices.Equal(w.Outbox[0].Resources, []string{webARN}) {
		t.Errorf("event %+v of %v, want counts %+v and the reason", ev, w.Outbox[0].Resources, want)
	}
	d.Meter.Flush()
	for _, want := range []string{`"verb":"deregister"`, `"run_id":"run-1","round":3,"request":"ask-1"`, `"deregistrations_total":2`, `"delete_to_deregister_seconds":[2]`, `"aws_mutating_calls_total":1`} {
		if !strings.Contains(d.log.String(), want) {
			t.Errorf("%s is not in the log:\n%s", want, d.log.String())
		}
	}
}

// TestLargeEvents_I10: a bus takes 256 KB an event, and the record is whole.
func TestLargeEvents_I10(t *testing.T) {
	const n = 1000
	d, w := newDesk(), work(&groups{})
	var cs []plan.Change
	for i := range n {
		c := changes(fmt.Sprintf("10.0.%d.%d because=%s", i/250, i%250, strings.Repeat("r", 100)))[0]
		c.UID, c.Pod, c.Node, c.Rule = strings.Repeat("u", 36), strings.Repeat("p", 80), strings.Repeat("n", 60), strings.Repeat("a", 120)
		cs = append(cs, c)
	}
	w.Bindings = nil
	d.Register(t.Context(), w, cs)
	d.Held(t.Context(), w, plan.Changes{Held: cs}, nil)
	told, hashes := map[string]int{}, map[any]bool{}
	for _, e := range w.Outbox {
		if e.Size() > bus.MaxCallBytes {
			t.Errorf("%s has %d bytes", e.DetailType, e.Size())
		}
		var keys struct {
			Registered, Held []json.RawMessage
			Hash             string
		}
		if err := json.Unmarshal(e.Detail, &keys); err != nil {
			t.Fatal(err)
		}
		told["registered"] += len(keys.Registered)
		told["held"] += len(keys.Held)
		if len(keys.Held) > 0 {
			hashes[keys.Hash] = true
		}
	}
	if told["registered"] != n || told["held"] != n || len(hashes) != 1 {
		t.Errorf("told of %v, hashes %v, want all keys and one plan", told, hashes)
	}
}

// TestStandingFailure_I10: keys that fail in the same way round after round are told
// of once a witness window, and counted each time; others are news.
func TestStandingFailure_I10(t *testing.T) {
	full := map[claim.Key]error{}
	d, api := newDesk(), &groups{refuse: full}
	w := work(api)
	fail := func(err error, ids ...string) (told int) {
		w.Outbox = nil
		for _, id := range ids {
			full[key(id)] = fmt.Errorf("request %d: %w", d.log.Len(), err)
		}
		d.Register(t.Context(), w, changes(ids...))
		for _, ev := range decode[targetevent.TargetsChanged](t, w.Outbox) {
			told += len(ev.Failed)
		}
		return told
	}
	var got []int
	for range 10 { // rounds of 20 s: 3 min 20 s
		got = append(got, fail(targetgroup.ErrQuota, "10.0.0.1", "10.0.0.2"))
		d.pass(20 * time.Second)
	}
	got = append(got, fail(targetgroup.ErrDenied, "10.0.0.1", "10.0.0.2"), fail(targetgroup.ErrDenied, "10.0.0.1", "10.0.0.2", "10.0.0.3"), fail(targetgroup.ErrDenied, "10.0.0.2", "10.0.0.1"))
	if want := []int{2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("told of %v failures, want %v", got, want)
	}
	if n := strings.Count(d.log.String(), "a change failed"); n != 9 {
		t.Errorf("%d lines of the log, want 9", n)
	}
	d.Meter.Flush()
	if !strings.Contains(d.log.String(), `"registrations_total":27`) {
		t.Errorf("each is to be counted:\n%s", d.log.String())
	}
}

// TestInvalid_I6 tells once of what is met again and again.
func TestInvalid_I6(t *testing.T) {
	d := newDesk()
	var out []bus.Entry
	ev := targetevent.BindingInvalid{Rule: "web", TargetGroup: webARN, Problem: "port 70000: want 1 to 65535"}
	other := ev
	other.Problem = "unknown key"
	for range 8 { // for 4 min
		out = d.Invalid(out, ev)
		out = d.Invalid(out, other)
		d.pass(30 * time.Second)
	}
	d.Send(t.Context(), out)
	if got := decode[targetevent.BindingInvalid](t, d.sent); len(got) != 4 || got[0].Problem != ev.Problem || got[1].Problem != other.Problem || got[0].At.IsZero() {
		t.Errorf("told %+v, want each problem twice, three minutes apart", got)
	}
	d.Meter.Flush()
	if !strings.Contains(d.log.String(), `"bindings_invalid":16`) {
		t.Errorf("each is to be counted:\n%s", d.log.String())
	}
}

// TestManyHolds: what is remembered is bounded, and the memory's end is told once
// more, never less.
func TestManyHolds_I9(t *testing.T) {
	d, w := newDesk(), work(&groups{})
	held := func(n int) {
		w.Group.ARN = fmt.Sprint("g", n)
		d.Held(t.Context(), w, plan.Changes{Held: changes("10.0.0.1")}, nil)
	}
	for i := range 5000 {
		held(i)
	}
	if len(w.Outbox) != 5000 {
		t.Errorf("told of %d plans, want 5000", len(w.Outbox))
	}
	held(4999)
	d.Held(t.Context(), w, plan.Changes{}, nil)
	if len(w.Outbox) != 5000 {
		t.Errorf("told of %d plans, want the last one known and none of nothing", len(w.Outbox))
	}
	if held(0); len(w.Outbox) != 5001 {
		t.Errorf("told of %d plans, want the first again", len(w.Outbox))
	}
}

// TestChangingHold: a hold to which a key is added each two minutes is overdue when
// its oldest key is, is told of as overdue once, and of new plans at most each minute.
func TestChangingHold_I9(t *testing.T) {
	d, w := newDesk(), work(&groups{})
	var texts []string
	for i := range 60 { // rounds of 20 s
		if i%6 == 0 {
			texts = append(texts, fmt.Sprintf("10.0.0.%d", i))
		}
		d.Held(t.Context(), w, plan.Changes{Held: changes(texts...)}, nil)
		d.pass(20 * time.Second)
	}
	var at []string
	for _, ev := range decode[targetevent.RemovalHeld](t, w.Outbox) {
		at = append(at, fmt.Sprint(ev.At.Sub(d.at.Add(-20*time.Minute)), " ", len(ev.Held), " ", ev.Overdue, " ", ev.At.Sub(ev.Since)))
	}
	want := []string{"0s 1 false 0s", "2m0s 2 false 2m0s", "3m0s 2 true 3m0s", "4m0s 3 true 4m0s", "6m0s 4 true 6m0s", "8m0s 5 true 8m0s", "10m0s 6 true 10m0s",
		"12m0s 7 true 12m0s", "14m0s 8 true 14m0s", "16m0s 9 true 16m0s", "18m0s 10 true 18m0s"}
	if !slices.Equal(at, want) {
		t.Errorf("told %q, want %q", at, want)
	}
	d.pass(2 * reconcile.WitnessWindow)
	w.Outbox = nil
	d.Held(t.Context(), w, plan.Changes{Held: changes("10.0.0.0")}, nil)
	if evs := decode[targetevent.RemovalHeld](t, w.Outbox); len(evs) != 1 || evs[0].Overdue {
		t.Errorf("after a break: %+v, want one that is not overdue", evs)
	}
	for i := range 6 { // another plan each 20 s, two minutes long
		d.pass(20 * time.Second)
		d.Held(t.Context(), w, plan.Changes{Held: changes("10.0.0.0", fmt.Sprintf("10.0.1.%d", i))}, nil)
	}
	if evs := decode[targetevent.RemovalHeld](t, w.Outbox); len(evs) != 3 {
		t.Errorf("told of %d plans in two minutes, want 3", len(evs))
	}
}

// TestPartialHold: a plan that is not the whole group's has no hash to approve.
func TestPartialHold_I9(t *testing.T) {
	d, w := newDesk(), work(&groups{})
	w.Partial = true
	d.Held(t.Context(), w, plan.Changes{Held: changes("10.0.0.1")}, nil)
	d.Held(t.Context(), w, plan.Changes{Held: changes("10.0.0.1")}, nil)
	if evs := decode[targetevent.RemovalHeld](t, w.Outbox); len(evs) != 1 || evs[0].Hash != "" {
		t.Errorf("told %+v, want one without a hash", evs)
	}
}

// TestHeldFor: a hold that lasts is told of once more, but for what somebody holds
// by his own will; what is only observed is held by nobody.
func TestHeldFor_I9_I19(t *testing.T) {
	tests := map[string]struct {
		changes []plan.Change
		why     plan.HoldReason
		overdue bool
		mode    string
	}{
		"no witness":             {changes("10.0.0.1"), plan.HeldLimit, true, "manage"},
		"not read to the end":    {changes("10.0.0.1"), plan.HeldIncomplete, true, "manage"},
		"frozen":                 {changes("10.0.0.1"), plan.HeldFrozen, false, "manage"},
		"not ours":               {changes("10.0.0.1"), plan.HeldForeign, false, "manage"},
		"observed":               {changes("10.0.0.1 rule=watched"), plan.HeldLimit, true, "observe"},
		"one of two is observed": {changes("10.0.0.1 rule=watched", "10.0.0.2"), plan.HeldLimit, true, "manage"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, w := newDesk(), work(&groups{})
			for i := range tt.changes {
				tt.changes[i].Hold = tt.why
			}
			for range 5 { // a minute apart: less than the witness window
				d.Held(t.Context(), w, plan.Changes{Held: tt.changes}, nil)
				d.pass(time.Minute)
			}
			told := decode[targetevent.RemovalHeld](t, w.Outbox)
			want := 1
			if tt.overdue {
				want = 2
			}
			if len(told) != want || told[len(told)-1].Overdue != tt.overdue || told[0].Mode != tt.mode || told[0].WouldDo != (tt.mode == "observe") {
				t.Errorf("told %+v, want %d events, the last overdue: %v, mode %s", told, want, tt.overdue, tt.mode)
			}
			d.Meter.Flush()
			if counted := strings.Contains(d.log.String(), telemetry.TargetsHeldOverdue); counted != tt.overdue {
				t.Errorf("counted as overdue: %v, want %v", counted, tt.overdue)
			}
		})
	}
}

func TestSendFails(t *testing.T) {
	d := newDesk()
	d.busErr = errors.New("bus gone")
	d.Send(t.Context(), nil)
	if len(d.sent) != 0 || d.log.Len() != 0 {
		t.Errorf("sent %v for nothing", d.sent)
	}
	d.Send(t.Context(), []bus.Entry{{Source: targetevent.Source}})
	if !strings.Contains(d.log.String(), "events not sent") {
		t.Errorf("log: %s", d.log.String())
	}
}
