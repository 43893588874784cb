package resync_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/cluster"
)

// two adds the cluster "blue" whose pods the group web has too, and the group
// api, which is of the cluster local alone.
func (w *world) two() *kube {
	blue := w.cluster("blue")
	w.bindIn("blue", "web-blue", "app=web", constants("web"))
	w.group("api")
	w.bind("api", "app=api", constants("api"))
	w.local().pod("a ip=10.0.0.1", "x ip=10.0.0.5 app=api")
	blue.pod("a ip=10.1.0.1", "b ip=10.1.0.2")
	w.r = w.instance()
	return blue
}

// TestClusters_I8: the claims of all clusters are united; one that can't be read
// holds the removals of its own groups, and of no other.
func TestClusters_I2_I8(t *testing.T) {
	story(t, func(w *world) {
		blue := w.two()
		w.web().hold("10.9.9.9=unhealthy")
		w.group("api").hold("10.9.9.8=unhealthy")
		blue.down(cluster.ErrUnreachable)
		w.start()
		w.rounds(4)
		w.web().wantHolds("10.0.0.1 10.9.9.9")
		w.group("api").wantHolds("10.0.0.5")
		w.wantSome("problem cluster blue is not read to the end")
		if n := w.metric("resync_cluster_rounds_total", "cluster", "blue"); n != 0 {
			t.Errorf("%v rounds of a cluster that is out of reach", n)
		}
		blue.up()
		w.rounds(4)
		w.web().wantHolds("10.0.0.1 10.1.0.1 10.1.0.2")
		if w.metric("resync_cluster_rounds_total", "cluster", "blue") == 0 || w.metric("resync_cluster_rounds_total", "cluster", "local") != 8 {
			t.Error("rounds of clusters are not counted")
		}
	})
	t.Run("one that goes away later", func(t *testing.T) {
		story(t, func(w *world) {
			blue := w.two()
			w.start()
			w.rounds(2)
			blue.down(cluster.ErrUnreachable)
			w.local().pod("n ip=10.0.0.9")
			w.local().terminate("a")
			w.rounds(20)
			w.web().wantHolds("10.0.0.1 10.0.0.9 10.1.0.1 10.1.0.2")
			blue.up()
			w.rounds(4)
			w.web().wantHolds("10.0.0.9 10.1.0.1 10.1.0.2")
		})
	})
	t.Run("a rule that pins a cluster that nobody reads", func(t *testing.T) {
		story(t, func(w *world) {
			w.two()
			w.bindIn("green", "web-green", "app=web", constants("web"))
			w.web().hold("10.9.9.9=unhealthy")
			w.group("api").hold("10.9.9.8=unhealthy")
			w.start()
			w.rounds(3)
			w.web().wantHolds("10.0.0.1 10.1.0.1 10.1.0.2 10.9.9.9")
			w.group("api").wantHolds("10.0.0.5")
			w.wantSome("problem a rule of target group covers cluster green, not among")
		})
	})
	t.Run("a rule that pins none covers all", func(t *testing.T) {
		story(t, func(w *world) {
			w.two()
			delete(w.rules, "web-blue")
			w.bindIn("", "web", "app=web", constants("web"))
			w.web().hold("10.9.9.9=unhealthy")
			w.start()
			w.rounds(3)
			w.web().wantHolds("10.0.0.1 10.1.0.1 10.1.0.2")
		})
	})
	t.Run("an address that a pod of the other cluster took is kept", func(t *testing.T) {
		story(t, func(w *world) {
			blue := w.two()
			w.start()
			w.rounds(2)
			w.local().terminate("a")
			blue.pod("c ip=10.0.0.1")
			w.rounds(3)
			w.web().wantHolds("10.0.0.1 10.1.0.1 10.1.0.2")
			w.wantTold(0, "changed web -")
		})
	})
}

// TestOwners_I18: of two buses that claim one group, the owner removes; the other
// registers at most.
func TestOwners_I18_P044(t *testing.T) {
	tests := map[string]struct {
		tags      map[string]string
		constants string
		want      string
	}{
		"ours":                         {map[string]string{binding.OwnerTag: busARN}, ``, "10.0.0.1"},
		"another bus's":                {map[string]string{binding.OwnerTag: busARN + "-2"}, ``, "10.0.0.1 10.0.0.2 10.0.0.8 10.0.0.9"},
		"nobody's":                     {nil, ``, "10.0.0.1 10.0.0.2 10.0.0.8 10.0.0.9"},
		"ours, foreignTargets: keep":   {map[string]string{binding.OwnerTag: busARN}, `"foreignTargets":"keep"`, "10.0.0.1 10.0.0.2 10.0.0.8 10.0.0.9"},
		"nobody's, but within":         {nil, `"podCIDRs":["10.0.0.0/16"]`, "10.0.0.1 10.0.0.8 10.0.0.9"},
		"keep, but within":             {map[string]string{binding.OwnerTag: busARN}, `"foreignTargets":"keep","podCIDRs":["10.0.0.0/16"]`, "10.0.0.1 10.0.0.8 10.0.0.9"},
		"nobody's, within another one": {nil, `"podCIDRs":["10.0.0.1/32"]`, "10.0.0.1 10.0.0.2 10.0.0.8 10.0.0.9"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.web().tags = tt.tags
				if tt.constants != "" {
					w.rebind(tt.constants)
				}
				w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2")
				w.web().hold("10.0.0.2 10.0.0.8=unhealthy 10.0.0.9=unhealthy")
				w.start()
				w.rounds(2)
				w.local().terminate("b")
				w.rounds(15)
				w.web().wantHolds(tt.want)
				w.wantTold(0, "held web") // what is not ours to remove is no alarm
			})
		})
	}
}

// TestFlapping_P037: two who undo each other's repairs stop after a few, and say
// so; the target stays as the other one leaves it.
func TestFlapping_P037(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3", "d ip=10.0.0.4")
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4")
		w.start()
		w.rounds(1)
		for range 28 { // within ten minutes
			w.web().hold("10.0.0.9=unhealthy")
			w.web().drop("10.0.0.2")
			w.rounds(1)
		}
		w.wantTold(6, "changed web +10.0.0.2")
		w.wantTold(6, "changed web -10.0.0.9")
		w.wantSome("finding web flapping held 10.0.0.2")
		w.wantSome("finding web flapping held 10.0.0.9")
		if w.metric("targets_flapping") == 0 {
			t.Error("flapping is not counted")
		}
		w.rounds(30) // nobody undoes it any more
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4")
	})
}

// TestTwoInstances_I3: two runs at the same time, as when one is invoked by hand,
// come to the same targets and do no harm.
func TestTwoInstances_I3(t *testing.T) {
	story(t, func(w *world) {
		all := w.serve(8)
		w.run(w.instance(), "one")
		w.run(w.instance(), "two")
		for i := range 6 {
			w.web().hold("10.9.0.1")
			w.web().drop("10.0.1." + string(rune('1'+i)))
			w.rounds(2)
		}
		w.rounds(4)
		w.web().wantHolds(all)
		w.wantTold(0, "held web")
	})
}

// TestHungCall_P092: a group whose calls hang keeps no other from its turn, in
// that round or the next.
func TestHungCall_P092(t *testing.T) {
	story(t, func(w *world) {
		w.two()
		w.web().onCall = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.start()
		w.pass(time.Minute)
		w.group("api").wantHolds("10.0.0.5")
		w.local().pod("y ip=10.0.0.6 app=api")
		w.pass(time.Minute)
		w.group("api").wantHolds("10.0.0.5 10.0.0.6")
		w.wantSome("problem target group " + arnOf("web"))
	})
}

// TestHungRules_P092: rules that are not answered delay a round, and end no run.
func TestHungRules_P092(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1")
		w.onRules = func(ctx context.Context) error {
			w.do(func() { w.onRules = nil })
			<-ctx.Done()
			return ctx.Err()
		}
		w.start()
		w.pass(time.Minute)
		w.web().wantHolds("10.0.0.1")
	})
}

// TestObserve_I19: what is only observed is told once, and found in each round;
// nothing is changed.
func TestObserve_I19(t *testing.T) {
	tests := map[string]func(w *world){
		"the binding": func(w *world) { w.rebind(`"mode":"observe"`) },
		"the cluster": func(w *world) { w.observed["local"] = true },
		"the account": func(w *world) { w.config.Observe = true },
	}
	for name, observe := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				observe(w)
				w.r = w.instance()
				w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2 terminating")
				w.web().hold("10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6")
				w.start()
				w.rounds(10)
				w.web().wantHolds("10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6")
				if n := w.callsOf("register", "") + w.callsOf("deregister", ""); n != 0 {
					t.Errorf("%d mutating calls", n)
				}
				w.wantTold(1, "would web +10.0.0.1 uid=a kind=drift drift=missing run=run-1 round=1")
				w.wantTold(1, "would web -10.0.0.2 uid=b witness=pod-ended kind=drift drift=extra run=run-1 round=1")
				w.wantSome("finding web missing would-register 10.0.0.1")
				w.wantSome("finding web extra would-deregister 10.0.0.2")
				w.wantTold(0, "changed")
				w.request(`"request":{"id":"r"}`)
				round := w.tells("round 11 request")
				if len(round) != 1 || !strings.Contains(round[0], "repaired=0") {
					t.Errorf("the round that was asked for says %q", round)
				}
				w.wantTold(1, "would web +10.0.0.1")
			})
		})
	}
}

// TestObserve_unknown: a target of which nothing is known is not removed either
// where everything that could have put it there is only observed.
func TestObserve_unknown_I19(t *testing.T) {
	tests := map[string]func(w *world){
		"the binding": func(w *world) { w.rebind(`"mode":"observe"`) },
		"the cluster": func(w *world) { w.observed["local"] = true },
		"emptied":     func(w *world) { w.rebind(`"mode":"observe","empty":true`) },
		"the cluster, emptied": func(w *world) {
			w.observed["local"] = true
			w.rebind(`"empty":true`)
		},
	}
	for name, observe := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				all := w.serve(6)
				observe(w)
				w.r = w.instance()
				w.web().hold("10.9.9.8=unhealthy", "10.9.9.9")
				w.start()
				w.rounds(4)
				w.web().wantHolds(all + " 10.9.9.8 10.9.9.9")
				w.wantTold(0, "changed")
				w.wantTold(1, "would web -10.9.9.8")
			})
		})
	}
}

// TestTwoBuses_I18: two buses whose rules mean other pods for one group. The owner
// removes what the other registers, until both see that it leads nowhere.
func TestTwoBuses_I18_P037(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "x ip=10.0.0.7 app=x")
		w.web().hold("10.0.0.1 10.0.0.2")
		other := w.instance()
		other.Rules = rulesOf{&world{t: w.t, rules: map[string]*rule{"x": {name: "x", pattern: patternOf("local", "app=x"), state: "ENABLED",
			constants: []string{constants("web")}}}}}
		other.Config.BusARN = busARN + "-2"
		w.run(w.r, "owner")
		w.pass(7 * time.Second) // rounds take turns
		w.run(other, "other")
		w.pass(9 * time.Minute)
		w.wantTold(6, "changed web +10.0.0.7 run=other-1")
		removed := len(w.tells("changed web -10.0.0.7 run=owner-1"))
		if removed < 5 || removed > 6 {
			t.Errorf("the owner removed it %d times, want as often as it came, at most 6", removed)
		}
		w.wantTold(0, "changed web - run=other-1")
		w.wantTold(0, "changed web + run=owner-1")
		w.wantSome("finding web flapping held 10.0.0.7")
	})
}
