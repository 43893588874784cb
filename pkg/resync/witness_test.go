package resync_test

import (
	"errors"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// TestWitnesses_I9: two of three targets lose their claims, which is more than may
// go without a witness. Each witness alone lets them go; what is none holds them.
func TestWitnesses_I9(t *testing.T) {
	other := func(w *world) { // pods that no rule of the group selects are watched too
		w.group("other")
		w.bind("other", "app=other", constants("other"))
	}
	notReady := func(w *world) { w.do(func() { w.local().nodes["node-a"] = false }) }
	wait := func(w *world) { w.pass(40 * time.Second) }
	tests := map[string]struct {
		prepare func(w *world)
		lose    func(w *world)
		want    string // the witness, "" if they are held
	}{
		"load balancer": {nil, func(w *world) {
			w.local().gone("b", "c")
			notReady(w)
			w.web().hold("10.0.0.2=unhealthy 10.0.0.3=unhealthy")
		}, "load-balancer"},
		"the load balancer says it of all": {nil, func(w *world) {
			w.local().gone("b", "c")
			notReady(w)
			w.web().hold("10.0.0.1=unhealthy 10.0.0.2=unhealthy 10.0.0.3=unhealthy")
		}, ""},
		"P046 other owner": {notReady, func(w *world) {
			w.local().gone("b", "c")
			w.local().pod("x ip=10.0.0.2 app=x", "y ip=10.0.0.3 app=x node=node-b")
		}, "other-owner"},
		"P046 other owner, in another namespace, the ended pods still exist": {notReady, func(w *world) {
			w.local().edit(func(p *podevent.Pod) { p.Phase = "Failed" }, "b", "c")
			w.pass(time.Second)
			w.local().edit(func(p *podevent.Pod) { p.PodIPs = nil }, "b", "c")
			w.local().pod("x ip=10.0.0.2 ns=x", "y ip=10.0.0.3 ns=x")
		}, "other-owner"},
		"P046 pod ended": {nil, func(w *world) {
			w.local().edit(func(p *podevent.Pod) { p.Phase, p.Ready = "Failed", false }, "b", "c")
		}, "pod-ended"},
		"P047 pod ended, its address taken from it": {nil, func(w *world) {
			w.local().edit(func(p *podevent.Pod) { p.Phase, p.PodIPs = "Failed", nil }, "b", "c")
		}, ""},
		"pod ended, the node is NotReady": {notReady, func(w *world) { w.local().terminate("b", "c") }, ""},
		"pod terminating":                 {nil, func(w *world) { w.local().terminate("b", "c") }, "pod-ended"},
		"pod terminating, then gone":      {nil, func(w *world) { w.local().terminate("b", "c"); w.local().gone("b", "c") }, "pod-ended"},
		"pod terminating, then gone, node gone": {nil, func(w *world) {
			w.local().terminate("b", "c")
			w.local().gone("b", "c")
			w.do(func() { clear(w.local().nodes) })
		}, ""},
		"pod gone within 30 s":                     {nil, func(w *world) { w.local().gone("b", "c") }, "pod-gone"},
		"pod gone, the node is NotReady":           {notReady, func(w *world) { w.local().gone("b", "c") }, ""},
		"pod gone, and the node is Ready too late": {notReady, func(w *world) { w.local().gone("b", "c"); wait(w); w.do(func() { w.local().nodes["node-a"] = true }) }, ""},
		"pod terminating, then gone, and the node is Ready later": {notReady, func(w *world) {
			w.local().terminate("b", "c")
			w.local().gone("b", "c")
			wait(w)
			w.do(func() { w.local().nodes["node-a"] = true })
		}, "pod-ended"},
		"deselected, out of the watched scope":                       {nil, func(w *world) { w.local().relabel("x", "b", "c") }, "pod-deselected"},
		"deselected, out of the watched scope, the node is NotReady": {notReady, func(w *world) { w.local().relabel("x", "b", "c") }, "pod-deselected"},
		"deselected, still watched":                                  {other, func(w *world) { w.local().relabel("other", "b", "c") }, "pod-deselected"},
		"deselected, still watched, then gone, the node is NotReady": {func(w *world) { other(w); notReady(w) },
			func(w *world) { w.local().relabel("other", "b", "c"); w.pass(time.Second); w.local().gone("b", "c") }, "pod-deselected"},
		"a changed rule": {other, func(w *world) { w.bind("web", "app=x", constants("web")) }, ""},
		"a changed rule whose pods others select": {func(w *world) { w.group("all"); w.bind("all", "app=web", constants("all")) },
			func(w *world) { w.bind("web", "app=x", constants("web")) }, ""},
		"a changed rule, and then the pods go": {nil, func(w *world) { w.bind("web", "app=x", constants("web")); w.rounds(1); w.local().gone("b", "c") }, ""},
		"lost in a relist": {nil, func(w *world) {
			w.do(func() { delete(w.local().pods, "shop/b"); delete(w.local().pods, "shop/c") })
			w.local().end(cluster.ErrExpired)
		}, ""},
		"scaled to fewer: terminating on many": {nil, func(w *world) { w.local().terminate("a", "b", "c"); w.local().pod("d ip=10.0.0.1") }, "pod-ended"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.local().pod("a ip=10.0.0.1 node=node-b", "b ip=10.0.0.2", "c ip=10.0.0.3")
				w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3")
				if tt.prepare != nil {
					tt.prepare(w)
				}
				w.start()
				w.rounds(2)
				tt.lose(w)
				w.rounds(3)
				if tt.want == "" {
					w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3")
					w.wantSome("held web 10.0.0.2")
					w.wantTold(0, "changed web -")
					return
				}
				w.web().wantHolds("10.0.0.1")
				w.wantTold(2, "changed web - pod=shop/ uid= cluster=local rule=web witness="+tt.want+" kind=drift drift=")
			})
		})
	}
}

// TestReuse_P049: an address that went from one pod of ours to another is never
// taken out for the first one's sake.
func TestReuse_P049_I2(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3")
		w.start()
		w.rounds(2)
		w.local().edit(func(p *podevent.Pod) { p.Phase = "Failed" }, "b")
		w.local().pod("d ip=10.0.0.2")
		w.rounds(3)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3")
		w.local().gone("b")
		w.rounds(3)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3")
		w.wantTold(0, "changed")
	})
}

// TestUnreadWitness_I9: a pod that could not be read is not "gone".
func TestUnreadWitness_I8_I9(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("a ip=10.0.0.1", "b ip=10.0.0.2", "c ip=10.0.0.3")
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3")
		w.start()
		w.rounds(2)
		w.do(func() {
			w.local().onRead = func(what string) error {
				if what == "pod shop/b" || what == "pod shop/c" {
					return errors.New("boom")
				}
				return nil
			}
		})
		w.local().gone("b", "c")
		w.rounds(5)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3")
		w.wantTold(0, "changed")
		w.wantSome("problem target group boom")
	})
}

// TestApprove_I9: an operator lets a held plan go by its hash; nothing else is.
func TestApprove_I9_I10(t *testing.T) {
	request := func(hash string) string {
		return `"request":{"id":"req-1","approve":"` + hash + `","by":"arn:aws:iam::111122223333:user/kim","reason":"moved away"}`
	}
	lost := func(w *world) {
		w.serve(10)
		w.start()
		w.rounds(2)
		w.bind("web", "app=wbe", constants("web"))
		w.rounds(2)
	}
	t.Run("that very plan", func(t *testing.T) {
		story(t, func(w *world) {
			lost(w)
			w.request(request(w.hash()))
			w.web().wantHolds("")
			w.wantTold(10, "changed web -10.0.1. witness=approved kind=drift drift=extra run=run-1 request=req-1")
			w.wantTold(1, `round request run=run-1 repaired=10 request=req-1 by=arn:aws:iam::111122223333:user/kim sender=AROAEXAMPLE:kim approve=`+w.hash()+` reason="moved`)
		})
	})
	t.Run("another hash", func(t *testing.T) {
		story(t, func(w *world) {
			lost(w)
			all := w.web().holds()
			w.request(request("0123456789ab"))
			w.web().wantHolds(all)
			w.wantTold(0, "changed web -")
			w.wantTold(1, "round request held=10")
		})
	})
	t.Run("a plan that changed meanwhile", func(t *testing.T) {
		story(t, func(w *world) {
			lost(w)
			hash := w.hash()
			w.web().hold("10.0.7.7")
			w.request(request(hash))
			w.wantTold(0, "changed web -")
			w.request(request(w.hash()))
			w.web().wantHolds("")
		})
	})
	t.Run("while frozen, nothing", func(t *testing.T) {
		story(t, func(w *world) {
			lost(w)
			hash := w.hash()
			w.do(func() { w.busTags[binding.FreezeTag] = "incident" })
			w.pass(3 * time.Second) // tags are kept for as long as a decision is acted on
			w.request(request(hash))
			w.wantTold(0, "changed web -")
		})
	})
	t.Run("without a reason it is not understood", func(t *testing.T) {
		story(t, func(w *world) {
			lost(w)
			id := w.send(`{"schema":1,"trigger":"request","request":{"id":"req-1","approve":"` + w.hash() + `"}}`)
			w.rounds(2)
			w.wantTold(0, "changed web -")
			if w.buried[id] == "" {
				t.Error("it was not buried")
			}
		})
	})
	t.Run("an approval is for one round", func(t *testing.T) {
		story(t, func(w *world) {
			lost(w)
			w.request(request(w.hash()))
			w.web().hold("10.0.1.1", "10.0.1.2", "10.0.1.3")
			w.rounds(4)
			w.web().wantHolds("10.0.1.1 10.0.1.2 10.0.1.3")
		})
	})
}

// TestFreeze_I9: removals stop in the round after the bus or the group is frozen,
// and go on in the round after that ends.
func TestFreeze_I9(t *testing.T) {
	tests := map[string]func(w *world) map[string]string{
		"bus":   func(w *world) map[string]string { return w.busTags },
		"group": func(w *world) map[string]string { return w.web().tags },
	}
	for name, tags := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.serve(10)
				tags := tags(w)
				w.start()
				w.rounds(2)
				w.do(func() { tags[binding.FreezeTag] = "incident 7" })
				w.local().terminate("p0")
				w.local().pod("n ip=10.2.0.1")
				w.rounds(1)
				if w.web().holds() == "" || w.tells("changed web -") != nil {
					t.Error("a target was removed while frozen")
				}
				w.wantTold(1, `held web 10.0.1.1 witness=pod-ended why="removals are frozen`)
				w.wantTold(1, "changed web +10.2.0.1")
				w.do(func() { delete(tags, binding.FreezeTag) })
				w.rounds(1)
				w.wantTold(1, "changed web -10.0.1.1 witness=pod-ended")
			})
		})
	}
}

// TestOldObjects_P046: the object of a pod that ended long ago, and still shows
// its address, says nothing about the pod that had the address since.
func TestOldObjects_P046_I9(t *testing.T) {
	story(t, func(w *world) {
		w.local().pod("old-b ip=10.0.0.2 ended", "old-c ip=10.0.0.3 ended", "a ip=10.0.0.1", "b ip=10.0.0.2 node=node-b", "c ip=10.0.0.3 node=node-b")
		w.web().hold("10.0.0.1 10.0.0.2 10.0.0.3")
		w.start()
		w.rounds(2)
		w.do(func() { w.local().nodes["node-b"] = false })
		w.local().gone("b", "c")
		w.rounds(5)
		w.web().wantHolds("10.0.0.1 10.0.0.2 10.0.0.3")
		w.wantSome("held web 10.0.0.2")
	})
}
