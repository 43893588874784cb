package resync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// serve has n pods p0, p1, … and as many healthy targets; it returns what the
// group holds.
func (w *world) serve(n int) string {
	ips := many(n)
	for i, ip := range ips {
		w.local().pod(fmt.Sprintf("p%d ip=%s node=node-%c", i, ip, 'a'+i%2))
	}
	w.web().hold(ips...)
	return w.web().holds()
}

func names(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("p%d", i))
	}
	return out
}

// TestUnread_I8: what could not be read to the end makes no removal; what is
// known is registered all the same.
func TestUnread_I8(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		fault, mend func(w *world)
		registers   bool
		told        string
	}{
		"a list fails on its third page": {
			func(w *world) { w.local().onList = failFrom(20, cluster.ErrUnreachable) },
			func(w *world) { w.do(func() { w.local().onList = nil }) }, true, "problem cluster local is not read to the end out of reach"},
		"410 in the middle of a list": {
			func(w *world) { w.local().onList = failFrom(20, cluster.ErrExpired) },
			func(w *world) { w.do(func() { w.local().onList = nil }) }, true, "problem cluster local is not read to the end"},
		"the API server is out of reach": {
			func(w *world) { w.local().down(cluster.ErrUnreachable) }, func(w *world) { w.local().up() }, false, "problem cluster local out of reach"},
		"403": {
			func(w *world) { w.local().down(cluster.ErrUnauthorized) }, func(w *world) { w.local().up() }, false, "problem cluster local not authorised"},
		"who has an address is not answered": {
			func(w *world) {
				w.local().onRead = func(what string) error {
					if strings.HasPrefix(what, "ip ") {
						return boom
					}
					return nil
				}
			}, func(w *world) { w.local().up() }, true, "problem target group boom"},
		"ListRules fails":                 {func(w *world) { w.rulesErr = boom }, func(w *world) { w.do(func() { w.rulesErr = nil }) }, false, "problem the rules were not read boom"},
		"ListTargetsByRule fails for one": {func(w *world) { w.targetsErr["web"] = boom }, func(w *world) { w.do(func() { clear(w.targetsErr) }) }, false, "problem the rules were not read boom"},
		"HealthUnavailable":               {func(w *world) { w.web().fail("health", targetgroup.ErrUnavailable) }, func(w *world) { w.web().fail("", nil) }, false, "problem target group service unavailable"},
		"tags are not read":               {func(w *world) { w.web().fail("tags", targetgroup.ErrThrottled) }, func(w *world) { w.web().fail("", nil) }, true, "problem target group throttled"},
		"the group of a rule is not found": {func(w *world) {
			w.bind("x", "app=x", `{"targetGroup":{"tags":{"a":"b"}},"port":80}`)
			w.describeErr = targetgroup.ErrThrottled
		}, func(w *world) { w.do(func() { w.describeErr = nil }) }, true, "problem what rule throttled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				all := w.serve(30)
				w.web().hold("10.0.9.9=unhealthy")
				w.web().drop("10.0.1.1")
				tt.fault(w)
				w.start()
				w.rounds(6)
				before := strings.TrimPrefix(all, "10.0.1.1 ") + " 10.0.9.9"
				if tt.registers {
					before = all + " 10.0.9.9"
				}
				w.web().wantHolds(before)
				w.wantTold(0, "changed web -")
				w.wantSome(tt.told)
				if n := w.metric("resync_rounds_total", "result", "partial"); n < 5 {
					t.Errorf("%v partial rounds, want each", n)
				}
				tt.mend(w)
				w.rounds(4)
				w.web().wantHolds(all)
			})
		})
	}
}

func failFrom(n int, err error) func(int) error {
	return func(i int) error {
		if i >= n {
			return err
		}
		return nil
	}
}

// TestListAgain_I8: a picture that was whole once is not whole while the list
// after a 410 fails; nothing that it knew goes.
func TestListAgain_I8(t *testing.T) {
	story(t, func(w *world) {
		all := w.serve(10)
		w.start()
		w.rounds(2)
		w.do(func() { w.local().onList = failFrom(3, cluster.ErrUnreachable) })
		w.local().end(cluster.ErrExpired)
		w.local().gone(names(0, 5)...)
		w.rounds(10)
		w.web().wantHolds(all)
		w.wantTold(0, "changed web -")
	})
}

// TestMassLoss_I8_I9: claims that vanish at once, with no word of why, take no
// target out, not in a hundred rounds. The hold is told of once, with the plan's
// hash, and once more when it is overdue.
func TestMassLoss_I8_I9_P035(t *testing.T) {
	tests := map[string]struct {
		before func(w *world)
		lose   func(w *world)
		n      int // of ten
	}{
		"an empty list of a freshly restored etcd": {nil, func(w *world) { w.local().restored() }, 10},
		"a restored etcd knows one pod of ten": {nil, func(w *world) {
			w.local().restored()
			w.local().pod("p0 ip=10.0.1.1")
		}, 9},
		"a typo in the rule":    {nil, func(w *world) { w.bind("web", "app=wbe", constants("web")) }, 10},
		"the pods got no rule":  {nil, func(w *world) { w.bindIn("local", "web", "tier=web", constants("web")) }, 10},
		"podCIDRs of elsewhere": {nil, func(w *world) { w.rebind(`"podCIDRs":["10.9.0.0/16"]`) }, 10},
		"another port": {func(w *world) { w.web().sick = true }, func(w *world) {
			w.do(func() { w.rules["web"].constants[0] = strings.Replace(constants("web"), "8080", "9090", 1) })
		}, 10},
		"P035 all pods are NotReady": {func(w *world) { w.rebind(`"registerWhen":"Ready"`) },
			func(w *world) {
				w.local().edit(func(p *podevent.Pod) { p.Ready, p.ContainersReady = false, false }, names(0, 10)...)
			}, 10},
		"nodes partitioned, pods deleted while they serve": {nil, func(w *world) {
			w.do(func() { w.local().nodes["node-a"], w.local().nodes["node-b"] = false, false })
			w.local().terminate(names(0, 9)...)
			w.local().gone(names(0, 9)...)
		}, 9},
		"nodes gone with their pods": {nil, func(w *world) {
			w.do(func() { clear(w.local().nodes) })
			w.local().gone(names(0, 10)...)
		}, 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				all := w.serve(10)
				if tt.before != nil {
					tt.before(w)
				}
				w.start()
				w.rounds(2)
				tt.lose(w)
				w.rounds(100)
				for _, ip := range strings.Fields(all) {
					if !strings.Contains(w.web().holds()+" ", ip+" ") {
						t.Errorf("%s was removed", ip)
					}
				}
				w.wantTold(0, "changed web -")
				w.wantTold(tt.n, "held web overdue=false hash= kind=drift run=run-1 mode=manage")
				w.wantTold(tt.n, "held web overdue=true")
				if n := w.metric("targets_held"); n < float64(90*tt.n) {
					t.Errorf("targets_held = %v, want it counted in each round", n)
				}
				if w.metric("targets_held_overdue") == 0 {
					t.Error("no alarm of the overdue hold")
				}
			})
		})
	}
}

// TestNodesNotReady_P035: nodes that are NotReady alone change nothing.
func TestNodesNotReady_P035_P038(t *testing.T) {
	story(t, func(w *world) {
		all := w.serve(10)
		w.start()
		w.rounds(2)
		w.do(func() { w.local().nodes["node-a"], w.local().nodes["node-b"] = false, false })
		w.rounds(10)
		w.web().wantHolds(all)
		w.wantTold(0, "held web")
	})
}

// TestHoldEnds_I9: a hold ends by itself when the claims return, or a witness does.
func TestHoldEnds_I9(t *testing.T) {
	story(t, func(w *world) {
		all := w.serve(10)
		w.start()
		w.rounds(2)
		w.bind("web", "app=wbe", constants("web"))
		w.rounds(3)
		w.wantTold(10, "held web")
		w.bind("web", "app=web", constants("web"))
		w.rounds(3)
		w.web().wantHolds(all)
		w.wantSome("round held=0")
		w.bind("web", "app=wbe", constants("web"))
		w.rounds(1)
		w.web().hold("10.0.1.3=unhealthy")
		w.rounds(1)
		w.wantTold(1, "changed web -10.0.1.3 witness=load-balancer")
		w.rounds(3)
		w.web().wantHolds(strings.Replace(all, " 10.0.1.3", "", 1))
	})
}

// TestRuleDeleted_P043: absent configuration means "not ours": the group is told
// of each round while it has targets, and keeps them.
func TestRuleDeleted_I8_P043(t *testing.T) {
	story(t, func(w *world) {
		all := w.serve(10)
		w.group("other") // ours too, but it has no targets
		w.group("strange").tags = nil
		w.group("strange").hold("10.9.9.9")
		w.start()
		w.rounds(2)
		w.do(func() { delete(w.rules, "web") })
		w.rounds(1)
		w.wantTold(1, "rule web [removed] web gain=0 lose=0 hold=0")
		w.wantTold(1, "finding web unbound reported")
		n := w.metric("groups_unbound")
		w.rounds(20)
		w.web().wantHolds(all)
		if got := w.metric("groups_unbound") - n; got != 20 {
			t.Errorf("groups_unbound grew by %v in 20 rounds, want 1 each", got)
		}
		w.wantTold(0, "finding other")
		w.wantTold(0, "finding strange")
		w.wantTold(0, "changed")
	})
}

// TestUnfound_I8: a group is not "unbound" while what a rule names can't be found
// out.
func TestUnfound_I8(t *testing.T) {
	story(t, func(w *world) {
		w.serve(3)
		w.web().tags["app"] = "web"
		w.rules["web"].constants[0] = `{"targetGroup":{"tags":{"app":"web"}},"port":8080}`
		w.describeErr = targetgroup.ErrThrottled
		w.start()
		w.rounds(3)
		w.wantTold(0, "finding web unbound")
		w.do(func() { w.describeErr = nil })
		w.rounds(3)
		w.wantTold(0, "finding web")
	})
}

// TestAnothersGroupGoes_P055: a group of somebody else that is deleted is none of
// our business.
func TestAnothersGroupGoes_P055(t *testing.T) {
	story(t, func(w *world) {
		w.serve(3)
		w.group("strange").tags = nil
		w.start()
		w.rounds(2)
		w.do(func() { delete(w.groups, "strange"); delete(w.rules, "web") })
		w.rounds(40)
		if n := len(w.tells("problem")); n > 1 {
			t.Errorf("it was a problem %d times: %q", n, w.tells("problem"))
		}
		w.wantSome("finding web unbound") // its tags could not be read at first
		if n := w.metric("resync_rounds_total", "result", "partial"); n > 1 {
			t.Errorf("%v partial rounds, want one at most", n)
		}
	})
}

// TestDisabled_I8: a group of which every rule is disabled is left alone; one
// with another rule that is not keeps the targets of both.
func TestDisabled_I8(t *testing.T) {
	story(t, func(w *world) {
		w.serve(3)
		w.bind("api", "app=api", constants("api"))
		w.bind("api2", "app=api2", constants("api"))
		w.group("api").hold("10.1.0.1 10.1.0.2 10.1.0.3")
		w.local().pod("x ip=10.1.0.1 app=api", "y ip=10.1.0.2 app=api2", "z ip=10.1.0.4 app=api2")
		w.rules["web"].state, w.rules["api2"].state = "DISABLED", "DISABLED"
		w.local().gone("p1")
		w.web().drop("10.0.1.1")
		w.web().hold("10.7.7.7=unhealthy")
		w.start()
		w.rounds(4)
		w.web().wantHolds("10.0.1.2 10.0.1.3 10.7.7.7")
		w.group("api").wantHolds("10.1.0.1 10.1.0.2")
		w.wantTold(0, "changed web")
		w.wantTold(1, "changed api -10.1.0.3")
		w.wantTold(0, "finding web unbound")
	})
}

// TestEmpty_I8_I9: a binding that says empty: true is emptied in steps, to the
// last target, each drained before the next.
func TestEmpty_I8_I9(t *testing.T) {
	tests := map[string]struct {
		prepare func(w *world)
		stays   bool
	}{
		"in steps":              {nil, false},
		"frozen: nothing":       {func(w *world) { w.web().tags[binding.FreezeTag] = "true" }, true},
		"not ours: nothing":     {func(w *world) { w.web().tags = nil }, true},
		"I8 not read: nothing":  {func(w *world) { w.local().down(cluster.ErrUnreachable) }, true},
		"another rule: nothing": {func(w *world) { w.bind("web2", "app=web", constants("web")) }, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				all := w.serve(10)
				w.rebind(`"empty":true`)
				if tt.prepare != nil {
					tt.prepare(w)
				}
				w.start()
				for range 40 {
					w.rounds(1)
					draining := 0
					w.do(func() {
						for _, target := range w.groups["web"].targets {
							if target.health == plan.Draining {
								draining++
							}
						}
					})
					if draining > 2 {
						t.Fatalf("%d targets drain at once, want at most 2 of 10", draining)
					}
				}
				if tt.stays {
					w.web().wantHolds(all)
				} else {
					w.web().wantHolds("")
					w.wantTold(10, "changed web - witness=binding-empty drift=emptied")
				}
				w.wantTold(0, "overdue=true witness=binding-empty")
			})
		})
	}
	t.Run("what gets no requests, at once", func(t *testing.T) {
		story(t, func(w *world) {
			w.rebind(`"empty":true`)
			w.web().hold("10.0.0.1=unused 10.0.0.2=unused 10.0.0.3=unused")
			w.start()
			w.rounds(1)
			w.web().wantHolds("")
		})
	})
}

// TestLimits_I9: minTargets and maxRemovalPercent bound what goes unwitnessed.
func TestLimits_I9(t *testing.T) {
	tests := map[string]struct{ constants, want string }{
		"one of five":       {``, "10.0.1.1 10.0.1.2 10.0.1.3 10.0.1.4"},
		"none at 0 but one": {`"maxRemovalPercent":0`, "10.0.1.1 10.0.1.2 10.0.1.3 10.0.1.4"},
		"minTargets 5":      {`"minTargets":5`, "10.0.1.1 10.0.1.2 10.0.1.3 10.0.1.4 10.9.0.1"},
		"minTargets 4":      {`"minTargets":4`, "10.0.1.1 10.0.1.2 10.0.1.3 10.0.1.4"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.serve(4)
				w.web().hold("10.9.0.1")
				if tt.constants != "" {
					w.rebind(tt.constants)
				}
				w.start()
				w.rounds(3)
				w.web().wantHolds(tt.want)
			})
		})
	}
}

// TestThousandUnknown_I9: a thousand targets that the cluster knows nothing of are
// held, alarmed of and explained, and the API server is not asked for each.
func TestThousandUnknown_I9(t *testing.T) {
	story(t, func(w *world) {
		all := strings.Join(many(1000), " ")
		w.web().hold(all)
		w.start()
		w.rounds(15)
		if got := len(strings.Fields(w.web().holds())); got != 1000 {
			t.Errorf("%d targets left of 1000", got)
		}
		w.wantTold(1000, `held web overdue=false`)
		w.wantTold(1000, `held web overdue=true`)
		w.wantSome(`held web 10.0.1.1 why="no second witness`)
		w.wantSome("finding web extra held 10.0.1.1")
		w.wantSome("round found=1000 held=1000")
		if n := w.local().readsOf("ip") + w.local().readsOf("pod") + w.local().readsOf("pods"); n > 10 {
			t.Errorf("the API server was asked %d times", n)
		}
	})
}

// fail has the calls of an operation on the group fail; of none if it is "".
func (g *group) fail(operation string, err error) {
	g.w.do(func() {
		g.onCall = func(_ context.Context, op string) error {
			if op == operation {
				return err
			}
			return nil
		}
	})
}
