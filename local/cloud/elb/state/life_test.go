package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

// A script is steps of one target, 10.64.1.1:80. Its checks come every 10 s, 3
// passes make it healthy, 2 failures unhealthy, draining takes 300 s.
//
//	reg dereg          the calls
//	attach detach      the listener forwards to the group, or is deleted
//	pass fail slow bad the next check passes, is refused, times out, gets a 503
//	wait               the next check begins and is not answered
//	late               the one that was begun is answered with a pass
//	+N                 N seconds go by without a check being answered
func (w *world) step(step string) {
	w.t.Helper()
	const id = "10.64.1.1"
	answers := map[string]state.Result{
		"pass": {Outcome: state.Passed, Code: 200}, "fail": {Outcome: state.Failed},
		"slow": {Outcome: state.TimedOut}, "bad": {Outcome: state.Mismatch, Code: 503},
	}
	if r, ok := answers[step]; ok {
		w.next()
		w.Observe(w.probes[state.Key{ID: id, Port: 80}], r, w.now, w.now)
		return
	}
	switch {
	case step == "reg":
		w.check(w.Register(scope, w.group, targets(id), w.now))
	case step == "dereg":
		w.check(w.Deregister(scope, w.group, targets(id), w.now))
	case step == "attach":
		w.attach(w.group)
	case step == "detach":
		w.detach()
	case step == "wait":
		w.next()
	case step == "late":
		w.Observe(w.probes[state.Key{ID: id, Port: 80}], answers["pass"], w.now, w.now)
	case strings.HasPrefix(step, "+"):
		d, err := time.ParseDuration(step[1:] + "s")
		w.check(err)
		w.pass(d, nil)
	default:
		w.t.Fatalf("step %q?", step)
	}
}

// next lets time go by until a check begins.
func (w *world) next() {
	w.t.Helper()
	for range 10 {
		due, next := w.Advance(w.now)
		for _, p := range due {
			w.probes[p.Target] = p
		}
		if len(due) > 0 {
			return
		}
		if next.IsZero() {
			break
		}
		w.now = next
	}
	w.t.Fatal("no check falls due")
}

func TestLife(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"from nothing to healthy": {
			"attach reg wait late pass pass",
			"- initial/RegistrationInProgress initial/InitialHealthChecking initial/InitialHealthChecking initial/InitialHealthChecking healthy"},
		"a failure begins the count anew": {
			"attach reg pass pass fail pass pass pass",
			"- initial/RegistrationInProgress initial/InitialHealthChecking initial/InitialHealthChecking initial/InitialHealthChecking initial/InitialHealthChecking initial/InitialHealthChecking healthy"},
		"never healthy": {
			"attach reg fail fail pass pass pass",
			"- initial/RegistrationInProgress initial/InitialHealthChecking unhealthy/FailedHealthChecks unhealthy/FailedHealthChecks unhealthy/FailedHealthChecks healthy"},
		"reasons follow the last failure": {
			"attach reg fail slow bad",
			"- initial/RegistrationInProgress initial/InitialHealthChecking unhealthy/Timeout unhealthy/ResponseCodeMismatch"},
		"one failure is not enough": {
			"attach reg pass pass pass bad pass bad bad",
			"- initial/RegistrationInProgress initial/InitialHealthChecking initial/InitialHealthChecking healthy healthy healthy healthy unhealthy/ResponseCodeMismatch"},
		"draining lasts as long as it is set, and then it is gone": {
			"attach reg pass pass pass dereg +299 +1",
			"- initial/RegistrationInProgress initial/InitialHealthChecking initial/InitialHealthChecking healthy draining/DeregistrationInProgress draining/DeregistrationInProgress -"},
		"I5 registered again while it drains, it begins anew and stays": {
			"attach reg pass pass pass dereg +100 reg +300",
			"- initial/RegistrationInProgress initial/InitialHealthChecking initial/InitialHealthChecking healthy draining/DeregistrationInProgress draining/DeregistrationInProgress initial/RegistrationInProgress initial/InitialHealthChecking"},
		"registered twice is registered once": {
			"attach reg pass reg pass pass",
			"- initial/RegistrationInProgress initial/InitialHealthChecking initial/InitialHealthChecking initial/InitialHealthChecking healthy"},
		"deregistered twice drains from the first time on": {
			"attach reg dereg +200 dereg +100",
			"- initial/RegistrationInProgress draining/DeregistrationInProgress draining/DeregistrationInProgress draining/DeregistrationInProgress -"},
		"deregistering what is not there": {"attach dereg", "- -"},
		"a result from before the deregistration counts for nothing": {
			"attach reg wait dereg reg late",
			"- initial/RegistrationInProgress initial/InitialHealthChecking draining/DeregistrationInProgress initial/RegistrationInProgress initial/RegistrationInProgress"},
		"no listener":                   {"reg +60", "unused/NotInUse unused/NotInUse"},
		"no listener, nothing to drain": {"reg dereg", "unused/NotInUse -"},
		"the listener comes and goes": {
			"reg attach pass detach attach",
			"unused/NotInUse initial/RegistrationInProgress initial/InitialHealthChecking unused/NotInUse initial/RegistrationInProgress"},
		"a draining target drains to its end without a listener": {
			"attach reg dereg detach +300",
			"- initial/RegistrationInProgress draining/DeregistrationInProgress draining/DeregistrationInProgress -"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var got []string
			for s := range strings.FieldsSeq(tt.script) {
				w.step(s)
				got = append(got, w.status("10.64.1.1"))
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.script, g, tt.want)
			}
		})
	}
}

func TestDelays(t *testing.T) {
	tests := map[string]struct{ value, after, want string }{
		"none":    {"0", "+0", "-"},
		"short":   {"5", "+4", "draining/DeregistrationInProgress"},
		"over":    {"5", "+5", "-"},
		"longest": {"3600", "+3599", "draining/DeregistrationInProgress"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.GroupAttributes(scope, w.group, []state.Attribute{{Key: "deregistration_delay.timeout_seconds", Value: tt.value}})
			w.check(err)
			for s := range strings.FieldsSeq("attach reg pass dereg " + tt.after) {
				w.step(s)
			}
			if got := w.status("10.64.1.1"); got != tt.want {
				t.Errorf("%s s after a delay of %s s: %s, want %s", tt.after, tt.value, got, tt.want)
			}
		})
	}
}

func TestChecksKeepTheirInterval(t *testing.T) {
	w := newWorld(t, func(c *state.Config) {
		c.CheckInterval = func(d time.Duration) time.Duration { return d / 10 }
	})
	w.attach(w.group)
	w.step("reg")
	w.next()
	p := w.probes[state.Key{ID: "10.64.1.1", Port: 80}]
	start := w.now
	w.now = w.now.Add(700 * time.Millisecond) // the check took so long
	w.Observe(p, state.Result{}, start, w.now)
	if _, next := w.Advance(w.now); next != start.Add(time.Second) {
		t.Errorf("the next check is planned %v after the last began, want 1s", next.Sub(start))
	}
	w.next()
	p, start = w.probes[state.Key{ID: "10.64.1.1", Port: 80}], w.now
	w.now = w.now.Add(3 * time.Second) // longer than the interval
	w.Observe(p, state.Result{}, start, w.now)
	if due, _ := w.Advance(w.now); len(due) != 1 {
		t.Errorf("%d checks after one that took longer than the interval, want 1", len(due))
	}
}

func TestZones(t *testing.T) { // the load balancer has the zones a and b
	w := newWorld(t)
	w.attach(w.group)
	w.check(w.Register(scope, w.group, targets("10.64.1.1 10.64.2.1 10.64.3.1 10.9.0.1@all 10.9.0.2@c"), w.now))
	want := "10.64.1.1:80=initial 10.64.2.1:80=initial 10.64.3.1:80=unused 10.9.0.1:80=initial 10.9.0.2:80=unused"
	if got := w.all(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := len(w.tables[len(w.tables)-1].Groups[w.group].Targets); n != 3 {
		t.Errorf("%d targets get traffic, want the 3 in enabled zones", n)
	}
}

func TestChangesTellTheWholeStory(t *testing.T) {
	w := newWorld(t)
	for s := range strings.FieldsSeq("attach reg pass pass pass fail fail dereg +300") {
		w.step(s)
	}
	var got []string
	for _, c := range w.changes {
		got = append(got, c.From.State+">"+c.To.State)
	}
	want := ">initial initial>initial initial>healthy healthy>unhealthy unhealthy>draining draining>"
	if g := strings.Join(got, " "); g != want {
		t.Errorf("got  %s\nwant %s", g, want)
	}
	if last := w.changes[len(w.changes)-1]; last.Since != 340*time.Second {
		t.Errorf("gone %v after its registration, want 5m40s", last.Since)
	}
}

// What an unused target is told apart by is its description: the reason is one.
func TestUnusedTargets(t *testing.T) {
	w := newWorld(t) // its load balancer is in the zones a and b
	w.check(w.Register(scope, w.group, targets("10.64.1.1 10.64.3.1 10.9.0.1@all 10.9.0.2@c"), w.now))
	describe := func(target string) string {
		all, err := w.Health(scope, w.group, targets(target))
		w.check(err)
		return strings.Join([]string{all[0].Status.State, all[0].Status.Reason, all[0].Status.Description, all[0].Zone}, "|")
	}
	const (
		notInUse = "unused|Target.NotInUse|Target group is not configured to receive traffic from the load balancer|"
		noZone   = "unused|Target.NotInUse|Target is in an Availability Zone that is not enabled for the load balancer|"
		initial  = "initial|Elb.RegistrationInProgress|Target registration is in progress|"
	)
	want := func(when string, all map[string]string) {
		t.Helper()
		for target, want := range all {
			if got := describe(target); got != want {
				t.Errorf("%s: %s is %s, want %s", when, target, got, want)
			}
		}
	}
	want("no listener", map[string]string{"10.64.1.1": notInUse + "a", "10.64.3.1": notInUse + "c", "10.9.0.1": notInUse + "all", "10.9.0.2": notInUse + "c",
		"10.64.1.9": "unused|Target.NotRegistered|Target is not registered to the target group|"})
	w.attach(w.group)
	want("a listener, and zone c is not enabled", map[string]string{"10.64.1.1": initial + "a", "10.64.3.1": noZone + "c", "10.9.0.1": initial + "all", "10.9.0.2": noZone + "c"})
	w.detach()
	want("no listener any more", map[string]string{"10.64.1.1": notInUse + "a", "10.64.3.1": notInUse + "c"})
}
