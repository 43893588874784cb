package resync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// TestRepair_I3_I5_I10: a difference between claims and targets is gone after one
// round, and is told of with its cause (P040, P041).
func TestRepair_I3_I5_I10(t *testing.T) {
	three := []string{"a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3"}
	tests := map[string]struct {
		pods  []string
		holds string
		want  string   // targets afterwards
		told  []string // lines
	}{
		"missing": {three, "10.0.0.1 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3",
			[]string{"changed web +10.0.0.2 pod=shop/b uid=b cluster=local rule=web kind=drift drift=missing run=run-1 round=1"}},
		"P041 added by hand, one of many": {three, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.9", "10.0.0.1 10.0.0.2 10.0.0.3",
			[]string{"changed web -10.0.0.9 kind=drift drift=extra run=run-1 round=1"}},
		"added by hand, unhealthy": {three, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.8=unhealthy 10.0.0.9=unhealthy", "10.0.0.1 10.0.0.2 10.0.0.3",
			[]string{"changed web -10.0.0.8 witness=load-balancer drift=unhealthy-unclaimed", "changed web -10.0.0.9 drift=unhealthy-unclaimed"}},
		"all of it removed by hand":   {three, "", "10.0.0.1 10.0.0.2 10.0.0.3", []string{"changed web +10.0.0.1", "changed web +10.0.0.2", "changed web +10.0.0.3"}},
		"I5 draining, but wanted":     {three, "10.0.0.1 10.0.0.2=draining 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3", []string{"changed web +10.0.0.2 drift=draining-wanted"}},
		"I4 ended, terminating, none": {[]string{"a ip=10.0.0.1", "b ip=10.0.0.2 ended", "c ip=10.0.0.3 terminating", "d"}, "", "10.0.0.1", nil},
		"malformed addresses":         {[]string{"a ip=10.0.0.1", "b ip=10.0.0.999", "c ip=fd00::1", "d ip=,"}, "", "10.0.0.1", nil},
		"the family's own address":    {[]string{"a ip=fd00::1,10.0.0.1"}, "", "10.0.0.1", nil},
		"of no pod, draining":         {three, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.9=draining", "10.0.0.1 10.0.0.2 10.0.0.3", nil},
		"P050 nothing":                {three, "10.0.0.1 10.0.0.2 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.local().pod(tt.pods...)
				w.web().hold(tt.holds)
				w.start()
				w.rounds(1)
				w.web().wantHolds(tt.want)
				for _, l := range tt.told {
					w.wantTold(1, l)
				}
				if len(tt.told) == 0 && tt.holds == tt.want {
					w.wantTold(0, "changed")
					w.wantTold(0, "held web")
				}
				w.rounds(3)
				w.web().wantHolds(tt.want)
				w.wantTold(0, "problem")
			})
		})
	}
}

// TestWrongPort_P034: the target with the right port comes first, the wrong one
// goes, and what is in doubt about the rest keeps nobody waiting.
func TestWrongPort_P034_I6(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3", "d ip=10.0.0.4", "e ip=10.0.0.5")
		w.web().hold("10.0.0.1:9090 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5")
		w.start()
		w.rounds(1)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5")
		w.wantTold(1, "changed web +10.0.0.1 drift=missing")
		w.wantTold(1, "changed web -10.0.0.1:9090 drift=wrong-port")
		var order []string
		for _, c := range w.calls {
			if c.operation == "register" || c.operation == "deregister" {
				order = append(order, c.operation)
			}
		}
		if got := strings.Join(order, " "); got != "register deregister" {
			t.Errorf("calls were %q, want the registration first", got)
		}
	})
}

// TestSticks_I5: a target that drains on though it was registered is registered
// again until it stays, and that is no flapping.
func TestSticks_I5(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2")
		w.web().hold("10.0.0.1 10.0.0.2=draining")
		w.web().slips = 4 * 6 // more often than anything flaps
		w.start()
		w.rounds(6)
		w.web().wantHolds("10.0.0.1 10.0.0.2")
		w.wantTold(0, "flapping")
	})
}

// TestHands_I3: what people do to the group by hand is undone in the next round.
func TestHands_I3_P041(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3", "d ip=10.0.0.4")
		w.start()
		w.rounds(2)
		w.web().drop("10.0.0.2")
		w.web().hold("10.0.0.9")
		w.rounds(1)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4")
		w.wantTold(1, "changed web +10.0.0.2 drift=missing run=run-1 round=3")
		w.wantTold(1, "changed web -10.0.0.9 drift=extra run=run-1 round=3")
	})
}

// TestReported_I3: what registering and deregistering don't mend is told of and
// left as it is.
func TestReported_I3(t *testing.T) {
	tests := map[string]struct {
		holds  string
		change func(w *world)
		want   string // a finding
	}{
		"its zone is off": {"10.0.0.1 10.0.0.2=unused", nil, "finding web zone-off reported 10.0.0.2"},
		"no listener":     {"10.0.0.1=unused 10.0.0.2=unused", nil, "finding web no-listener reported"},
		"wrong zone": {"10.0.0.1 10.0.0.2", func(w *world) {
			w.rebind(`"availabilityZone":"all"`)
			w.web().targets[key("10.0.0.2")].zone = "eu-west-1a"
		}, "finding web wrong-zone reported 10.0.0.2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2")
				w.web().hold(tt.holds)
				if tt.change != nil {
					tt.change(w)
				}
				w.start()
				w.rounds(5)
				w.web().wantHolds("10.0.0.1 10.0.0.2")
				w.wantTold(1, tt.want) // it is no news in the rounds after
				if n := w.callsOf("register", "") + w.callsOf("deregister", ""); n != 0 {
					t.Errorf("%d mutating calls, want none", n)
				}
			})
		})
	}
}

// TestGroupDeleted: a group that is gone is told of each round, with its rule;
// other groups go on, and one made anew under its name is filled.
func TestGroupDeleted_P053_P055(t *testing.T) {
	for name, ref := range map[string]string{"by ARN": `"` + arnOf("old") + `"`, "by name": `{"name":"old"}`, "by tags": `{"tags":{"app":"old"}}`} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.group("old").tags["app"] = "old"
				w.bind("old", "app=old", `{"targetGroup":`+ref+`,"port":8080}`)
				w.local().pod("o ip=10.0.0.7 app=old", "a ip=10.0.0.1")
				w.start()
				w.rounds(2)
				w.group("old").wantHolds("10.0.0.7")
				gone := w.group("old")
				w.do(func() { delete(w.groups, "old") })
				w.local().pod("b ip=10.0.0.2")
				w.rounds(2)
				w.web().wantHolds("10.0.0.1 10.0.0.2")
				if len(w.tells("finding", "group-deleted reported")) == 0 || len(w.tells("group-deleted", "rule=old")) == 0 {
					t.Errorf("the deleted group was not told of with its rule: %q", w.tells("group-deleted"))
				}
				if ref != `"`+arnOf("old")+`"` { // made anew, it has another ARN
					anew := w.group("old")
					w.do(func() { anew.arn += "f"; anew.tags["app"] = "old" })
				} else {
					w.do(func() { w.groups["old"] = gone; clear(gone.targets) })
				}
				w.rounds(4)
				w.group("old").wantHolds("10.0.0.7")
				w.wantTold(0, "finding web group-deleted")
				w.wantTold(0, "problem target group "+arnOf("web"))
			})
		})
	}
}

// TestInvalidBindings: what can't be understood is told of with rule and reason,
// and the rest goes on.
func TestInvalidBindings_I3_P055(t *testing.T) {
	story(t, func(w *world) {
		w.bind("typo", "app=web", `{"targetGroup":"`+arnOf("web")+`","prot":8080}`)
		w.bind("named", "app=web", constants("web")[:len(constants("web"))-5]+`"admin"}`)
		w.bind("nowhere", "app=web", `{"targetGroup":{"name":"nowhere"},"port":8080}`)
		w.bind("two", "app=web", `{"targetGroup":{"tags":{"team":"x"}},"port":8080}`)
		w.bind("machines", "app=web", constants("machines"))
		w.group("machines").kind = claim.Instance
		w.group("t1").tags["team"], w.group("t2").tags["team"] = "x", "x"
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2")
		w.start()
		w.rounds(3)
		w.web().wantHolds("10.0.0.1 10.0.0.2")
		for _, want := range []string{`invalid rule=typo $.binding.prot: unknown constant`, `invalid rule=named port "admin" declares no container port shop/a`, "invalid rule=nowhere not found",
			"invalid rule=two not exactly one", `invalid rule=machines "instance"`} {
			w.wantTold(1, want)
		}
		if n := w.metric("bindings_invalid"); n != 5*3 {
			t.Errorf("bindings_invalid = %v, want 5 in each of 3 rounds", n)
		}
	})
}

// TestClockJumps_I3: a wall clock that is turned by hours makes no removal and
// stops no repair.
func TestClockJumps_I3(t *testing.T) {
	for _, jump := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			story(t, func(w *world) {
				w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
				w.start()
				w.rounds(2)
				w.local().gone("c")
				w.pass(time.Second)
				w.jump(jump)
				w.pass(2 * time.Minute)
				w.local().pod("d ip=10.0.0.4")
				w.web().drop("10.0.0.1")
				w.pass(2 * time.Minute)
				if got := w.web().holds(); !strings.HasPrefix(got, "10.0.0.1 10.0.0.2") || !strings.HasSuffix(got, "10.0.0.4") {
					t.Errorf("web holds %q, want what pods claim", got)
				}
			})
		})
	}
}

// TestQuota_I6: where a group is full, what may go makes room, and the rest is
// told of.
func TestQuota_I6(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
		w.web().quota = 3
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.9=unhealthy")
		w.start()
		w.rounds(2)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3")
		w.wantSome("failed web register 10.0.0.3 quota")
	})
}

// TestFailedCalls_I6: a refused call is told of and made again in the next round;
// other groups don't notice.
func TestFailedCalls_I6_P092(t *testing.T) {
	story(t, func(w *world) {
		w.group("api")
		w.bind("api", "app=api", constants("api"))
		w.local().pod("a ip=10.0.0.1", "x ip=10.0.0.5 app=api")
		w.web().fail("register", targetgroup.ErrDenied)
		w.start()
		w.rounds(1)
		w.web().wantHolds("")
		w.group("api").wantHolds("10.0.0.5")
		w.wantSome("failed web register 10.0.0.1 access denied")
		w.wantSome("finding web missing failed 10.0.0.1")
		w.web().fail("", nil)
		w.rounds(1)
		w.web().wantHolds("10.0.0.1")
	})
}

// TestPointReads_I1: what changed between picture and call decides.
func TestPointReads_I1_I3(t *testing.T) {
	t.Run("a pod that ends meanwhile is not registered", func(t *testing.T) {
		story(t, func(w *world) {
			w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2")
			w.web().hold("10.0.0.2")
			w.local().onRead = func(what string) error {
				if what == "pod shop/a" {
					w.do(func() { w.local().onRead = nil })
					w.local().terminate("a")
				}
				return nil
			}
			w.start()
			w.rounds(2)
			w.web().wantHolds("10.0.0.2")
			w.wantTold(0, "changed")
		})
	})
	t.Run("a pod that is replaced meanwhile is not registered for what it was", func(t *testing.T) {
		story(t, func(w *world) {
			w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2")
			w.web().hold("10.0.0.2")
			w.local().onRead = func(what string) error {
				if what == "pod shop/a" {
					w.do(func() { w.local().onRead = nil })
					w.local().pod("a ip=10.0.0.7 uid=a2")
				}
				return nil
			}
			w.start()
			w.rounds(2)
			w.web().wantHolds("10.0.0.2 10.0.0.7")
			w.wantTold(0, "+10.0.0.1")
			w.wantTold(1, "changed web +10.0.0.7 uid=a2")
		})
	})
	t.Run("P049 a pod that takes the address meanwhile keeps its target", func(t *testing.T) {
		story(t, func(w *world) {
			w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
			w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.9")
			w.local().onRead = func(what string) error {
				if what == "ip 10.0.0.9" {
					w.do(func() { w.local().onRead = nil })
					w.local().pod("d ip=10.0.0.9")
				}
				return nil
			}
			w.start()
			w.rounds(2)
			w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.9")
			w.wantTold(0, "changed")
		})
	})
	t.Run("a pod that comes during the call is registered again at once", func(t *testing.T) {
		story(t, func(w *world) {
			w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
			w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.9")
			w.web().onCall = func(_ context.Context, operation string) error {
				if operation == "deregister" {
					w.local().pod("d ip=10.0.0.9")
				}
				return nil
			}
			w.start()
			w.rounds(1)
			w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.9")
		})
	})
}

// TestOldReading_I3: targets that were read more than two seconds ago are read
// again before one goes.
func TestOldReading_I3(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.8=unhealthy 10.0.0.9=unhealthy")
		w.local().onRead = func(what string) error {
			if what == "ip 10.0.0.8" {
				time.Sleep(3 * time.Second)
				w.web().hold("10.0.0.8 10.0.0.9") // healthy by now: no witness is left
			}
			return nil
		}
		w.start()
		w.rounds(1)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.8 10.0.0.9")
		w.wantTold(2, "held web")
	})
}

// TestNoCallWithoutReads_I1: before each mutating call the pods and addresses that
// it is about were read from the API server.
func TestNoCallWithoutReads_I1(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3", "d ip=10.0.0.4")
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.8=unhealthy 10.0.0.9=unhealthy")
		w.web().onCall = func(_ context.Context, operation string) error {
			reads := fmt.Sprint(w.local().reads)
			if operation == "register" && !strings.Contains(reads, "pod shop/d") {
				t.Error("registered, and the pod was not read")
			}
			if operation == "deregister" && (!strings.Contains(reads, "ip 10.0.0.8") || !strings.Contains(reads, "ip 10.0.0.9")) {
				t.Error("deregistered, and who has the addresses was not read")
			}
			return nil
		}
		w.start()
		w.rounds(1)
		if w.callsOf("register", "") != 1 || w.callsOf("deregister", "") != 1 {
			t.Errorf("calls: %v", w.calls)
		}
	})
}

// TestUnreadPod_I1: a pod that can't be read is not registered; others are.
func TestUnreadPod_I1(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2")
		w.local().onRead = func(what string) error {
			if what == "pod shop/a" {
				return errors.New("boom")
			}
			return nil
		}
		w.start()
		w.rounds(1)
		w.web().wantHolds("10.0.0.2")
		w.wantTold(1, `finding web missing failed 10.0.0.1 why="boom`)
		w.wantSome("round 1 found=2 repaired=1 failed=1")
	})
}
