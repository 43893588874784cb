package registrar_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/registrar"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// TestHints tells one story a row: what the group holds, what the pods are now,
// what the hint says, and what the group holds afterwards.
func TestHints(t *testing.T) {
	tests := map[string]struct {
		targets string
		arrange func(w *world) []queue.Message
		want    string
		again   bool // the message comes again
	}{
		"I1 a new address is registered": {
			arrange: func(w *world) []queue.Message {
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			},
			want: "10.0.0.1"},
		"P011 a pod without address is no error": {
			arrange: func(w *world) []queue.Message { return one(w.hint(*w.set("a"), podevent.NotReady, "web")) }},
		"I1 a forged event, no such pod": {targets: "10.0.0.9=healthy",
			arrange: func(w *world) []queue.Message {
				p := *w.set("ghost ip=10.66.6.6")
				w.remove("ghost")
				return one(w.hint(p, podevent.IPAssigned, "web"))
			}, want: "10.0.0.9"},
		"I1 a forged event with a live pod's address removes nothing": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.set("a ip=10.0.0.1")
				p := *w.set("ghost ip=10.0.0.1 uid=forged")
				w.remove("ghost")
				return one(w.hint(p, podevent.Deleted, "web"))
			}, want: "10.0.0.1"},
		"I4 P023 a terminating pod leaves": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.set("b ip=10.0.0.2")
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.2"},
		"I4 P046 a failed pod whose object stays leaves": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				return one(w.hint(*w.set("a ip=10.0.0.1 ended"), podevent.Finished, "web"))
			}},
		"I2 P049 an address reused by another pod stays": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				old := *w.set("a ip=10.0.0.1")
				w.remove("a")
				w.set("b ip=10.0.0.1")
				return one(w.hint(old, podevent.Deleted, "web"))
			}, want: "10.0.0.1"},
		"I2 a StatefulSet pod under the same name with another address": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				old := *w.set("db-0 ip=10.0.0.1 uid=old")
				now := *w.set("db-0 ip=10.0.0.2 uid=new")
				return []queue.Message{w.hint(old, podevent.Deleted, "web"), w.hint(now, podevent.IPAssigned, "web")}
			}, want: "10.0.0.2"},
		"I2 a late duplicate of an old event": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				p := *w.set("a ip=10.0.0.1")
				p.Terminating = true
				return one(w.hint(p, podevent.Terminating, "web"))
			}, want: "10.0.0.1"},
		"I9 labels changed: no longer selected": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				old := *w.set("a ip=10.0.0.1")
				w.set("a ip=10.0.0.1 app=other")
				return one(w.hint(old, podevent.Relabelled, "web"))
			}},
		"I9 a changed rule is no witness": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				m := w.hint(*w.set("a ip=10.0.0.1"), podevent.Ready, "web")
				w.bind("web", `{"app":["wbe"]}`, w.rules["web"].constants)
				return one(m)
			}, want: "10.0.0.1", again: true},
		"I2 relabelled from one rule to another of the same group": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web2", `{"app":["web2"]}`, w.rules["web"].constants)
				old := *w.set("a ip=10.0.0.1")
				w.set("a ip=10.0.0.1 app=web2")
				return one(w.hint(old, podevent.Relabelled, "web"))
			}, want: "10.0.0.1"},
		"I5 draining and wanted again": {targets: "10.0.0.1=draining",
			arrange: func(w *world) []queue.Message {
				return one(w.hint(*w.set("b ip=10.0.0.1"), podevent.IPAssigned, "web"))
			},
			want: "10.0.0.1"},
		"I9 P035 deleted on nodes that are not Ready: held, all but one": {targets: "10.0.0.1=healthy 10.0.0.2=healthy 10.0.0.3=healthy",
			arrange: func(w *world) []queue.Message {
				w.nodes["node-a"] = false
				var ms []queue.Message
				for i := range 3 {
					ms = append(ms, w.hint(*w.set(fmt.Sprintf("p%d ip=10.0.0.%d terminating", i, i+1)), podevent.Terminating, "web"))
				}
				return ms
			}, want: "10.0.0.1 10.0.0.2 10.0.0.3", again: true},
		"I9 one by one is held as well": {targets: "10.0.0.1=healthy 10.0.0.2=healthy 10.0.0.3=draining",
			arrange: func(w *world) []queue.Message {
				w.nodes["node-a"] = false
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.1 10.0.0.2", again: true},
		"I9 what no hint of this batch names counts as well": {targets: "10.0.0.1=healthy 10.0.0.2=healthy 10.0.0.3=healthy",
			arrange: func(w *world) []queue.Message {
				w.nodes["node-a"] = false
				w.set("b ip=10.0.0.2 terminating")
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.1 10.0.0.2 10.0.0.3", again: true},
		"I9 one alone is within the limit": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.nodes["node-a"] = false
				w.set("b ip=10.0.0.2")
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.2"},
		"I9 a pod on the host's network is no other owner": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.nodes["node-a"], w.nodes["node-b"] = false, false
				var ms []queue.Message
				for i, node := range []string{"node-a", "node-b"} {
					w.set(fmt.Sprintf("proxy-%s ip=10.0.0.%d app=proxy host node=%s", node, i+1, node))
					ms = append(ms, w.hint(*w.set(fmt.Sprintf("web-%s ip=10.0.0.%d host terminating node=%s", node, i+1, node)), podevent.Terminating, "web"))
				}
				return ms
			}, want: "10.0.0.1 10.0.0.2", again: true},
		"I9 a pod on the host's network that is gone": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.set("proxy ip=10.0.0.1 app=proxy host")
				p := *w.set("a ip=10.0.0.1 host")
				w.remove("a")
				return one(w.hint(p, podevent.Deleted, "web"))
			}},
		"I9 another pod's end is no witness": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.nodes["node-b"] = false
				w.set("long-dead ip=10.0.0.1 ended")
				p := *w.set("a ip=10.0.0.1 node=node-b")
				w.remove("a")
				return one(w.hint(p, podevent.Deleted, "web"))
			}, want: "10.0.0.1", again: true},
		"I9 gone, a young hint names UID and node": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				p := *w.set("a ip=10.0.0.1")
				w.remove("a")
				return one(w.hint(p, podevent.Deleted, "web"))
			}},
		"I9 gone, the hint is old": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				p := *w.set("a ip=10.0.0.1")
				w.remove("a")
				m := w.hint(p, podevent.Deleted, "web")
				w.pass(31 * time.Second)
				return one(m)
			}, want: "10.0.0.1", again: true},
		"I9 the load balancer says unhealthy": {targets: "10.0.0.1=unhealthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.nodes["node-a"] = false
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.2"},
		"P047 address only in the old object": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				ev := podevent.FromPod("local", w.set("a ended"), nil, w.now)
				ev.ResourceVersion, ev.Reason, ev.Previous = "before", podevent.Finished, &podevent.Previous{PodIP: "10.0.0.1", PodIPs: []string{"10.0.0.1"}}
				return one(w.message(ev, "web"))
			}, want: "10.0.0.1", again: true}, // its object shows no address: no witness, the last healthy one stays
		"I7 another port of the same address goes": {targets: "10.0.0.1:9090=unhealthy 10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			},
			want: "10.0.0.1"},
		"I8 a rule list that can't be read removes nothing": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.rulesErr = errors.New("page 2 failed")
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.1", again: true},
		"I8 a disabled rule holds what it had": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				m := w.hint(*w.set("a ip=10.0.0.1 app=other"), podevent.Relabelled, "web")
				w.rules["web"].state = "DISABLED"
				return one(m)
			}, want: "10.0.0.1"},
		"I8 a rule that is gone removes nothing": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				m := w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")
				delete(w.rules, "web")
				return one(m)
			}, want: "10.0.0.1"},
		"I18 P044 no owner tag: registers, removes nothing": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.groups[webARN].tags = nil
				return []queue.Message{w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"), w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web")}
			}, want: "10.0.0.1 10.0.0.2"},
		"I18 no owner tag, but shown within podCIDRs": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"podCIDRs":["10.0.0.0/16"]}`)
				w.groups[webARN].tags = map[string]string{"elbridge:owner": "another"}
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.2"},
		"I18 the bus's name is enough in its own account": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.groups[webARN].tags = map[string]string{"elbridge:owner": "elbridge"}
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}},
		"I19 observe: would do, changes nothing": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"mode":"observe"}`)
				return []queue.Message{w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"), w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web")}
			}, want: "10.0.0.1"},
		"frozen group": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.groups[webARN].tags["elbridge:freeze"] = "incident 7"
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.1", again: true},
		"frozen bus": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.bus["elbridge:freeze"] = "true"
				return one(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
			}, want: "10.0.0.1", again: true},
		"addresses outside podCIDRs are never registered": {
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"podCIDRs":["10.1.0.0/16"]}`)
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			}},
		"an emptied binding registers nothing": {
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"empty":true}`)
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			}},
		"I9 an emptied binding lets its pods go, one after the other": {targets: "10.0.0.1=healthy 10.0.0.2=healthy 10.0.0.3=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"empty":true}`)
				return []queue.Message{w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"), w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web")}
			}, want: "10.0.0.2 10.0.0.3"},
		"I9 emptied to the last one": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"empty":true}`)
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			}},
		"I9 a pod that only waits under another binding is not emptied": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("ready", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"registerWhen":"Ready"}`)
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"empty":true}`)
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			}, want: "10.0.0.1", again: true},
		"I18 emptied, no owner tag: only what podCIDRs show goes": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"empty":true,"podCIDRs":["10.0.0.1/32"]}`)
				w.groups[webARN].tags = nil
				return []queue.Message{w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"), w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web")}
			}, want: "10.0.0.2"},
		"I19 what only an observed rule knows of stays": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"mode":"observe"}`)
				w.bind("api", `{"app":[{"prefix":"api"}]}`, `{"targetGroup":"`+webARN+`","port":8080}`)
				w.set("a ip=10.0.0.1 app=web terminating") // read along, as prefixes can't be asked for
				b, c := *w.set("b ip=10.0.0.2 app=api"), *w.set("c ip=10.0.0.3 app=api")
				return []queue.Message{w.hint(b, podevent.IPAssigned, "api"), w.hint(c, podevent.IPAssigned, "api")}
			}, want: "10.0.0.1 10.0.0.2 10.0.0.3"},
		"I3 I19 what a managing rule knows of goes, whichever hint comes first": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web2", `{"app":["web2"]}`, `{"targetGroup":"`+webARN+`","port":8080,"mode":"observe"}`)
				w.set("b ip=10.0.0.2")
				before, after := *w.set("a ip=10.0.0.1"), *w.set("a ip=10.0.0.1 app=web2")
				w.remove("a")
				return []queue.Message{w.hint(after, podevent.Deleted, "web2"), w.hint(before, podevent.Relabelled, "web")}
			}, want: "10.0.0.2"},
		"I19 a key that is both observed and managed is registered": {
			arrange: func(w *world) []queue.Message {
				w.bind("all", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"mode":"observe"}`)
				p := *w.set("a ip=10.0.0.1")
				return []queue.Message{w.hint(p, podevent.IPAssigned, "web"), w.hint(p, podevent.IPAssigned, "all")}
			}, want: "10.0.0.1"},
		"I19 a pod that an observed rule selects by now": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web2", `{"app":["web2"]}`, `{"targetGroup":"`+webARN+`","port":8080,"mode":"observe"}`)
				w.set("b ip=10.0.0.2")
				before := *w.set("a ip=10.0.0.1")
				w.set("a ip=10.0.0.1 app=web2 terminating")
				return one(w.hint(before, podevent.Relabelled, "web"))
			}, want: "10.0.0.2"},
		"P026 a dead container ends a claim under ContainersReady": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080,"registerWhen":"ContainersReady"}`)
				w.set("b ip=10.0.0.2 ready")
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.NotReady, "web"))
			}, want: "10.0.0.2"},
		"P052 but not under HasIP": {targets: "10.0.0.1=healthy 10.0.0.2=healthy",
			arrange: func(w *world) []queue.Message {
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.NotReady, "web"))
			}, want: "10.0.0.1 10.0.0.2"},
		"P010 quota: witnessed removals make room": {targets: "10.0.0.1=healthy",
			arrange: func(w *world) []queue.Message {
				w.groups[webARN].quota = 1
				return []queue.Message{w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web"), w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")}
			}, want: "10.0.0.2"},
		"P062 throttled: later": {
			arrange: func(w *world) []queue.Message {
				w.groups[webARN].callErr = targetgroup.ErrThrottled
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			}, again: true},
		"API server out of reach: later": {
			arrange: func(w *world) []queue.Message {
				w.podReads = func(string) error { return cluster.ErrUnreachable }
				return one(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			}, again: true},
		"several hints, one reading: what was not announced yet is registered too": {
			arrange: func(w *world) []queue.Message {
				w.set("c ip=10.0.0.3")
				return []queue.Message{w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"), w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web")}
			}, want: "10.0.0.1 10.0.0.2 10.0.0.3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.targets(tt.targets)
			failed := w.process(tt.arrange(w)...)
			if got := w.holds(webARN); got != tt.want {
				t.Errorf("group holds %q, want %q\n%s", got, tt.want, w.log.String())
			}
			if again := len(failed) > 0; again != tt.again {
				t.Errorf("messages that come again: %v, want some: %t\n%s", failed, tt.again, w.log.String())
			}
			if len(w.buried) > 0 {
				t.Errorf("buried: %v", w.buried)
			}
		})
	}
}

// TestChangedRule_I9: an instance that remembers a rule as it was takes the change
// of another label for the loss of a selected one no more than a fresh one does.
func TestChangedRule_I9(t *testing.T) {
	w := newWorld(t)
	w.bind("web2", `{"app":["web2"]}`, w.rules["web"].constants)
	w.targets("10.0.0.1=healthy 10.0.0.9=healthy")
	old := *w.set("a ip=10.0.0.1")
	w.process(w.hint(old, podevent.Ready, "web")) // the rule is known now
	m := w.hint(old, podevent.Relabelled, "web")
	w.set("a ip=10.0.0.1").Labels["v"] = "2"
	w.bind("web", `{"app":["wbe"]}`, w.rules["web"].constants)
	if failed := w.process(m, w.hint(*w.set("z ip=10.0.0.9 app=web2 terminating"), podevent.Terminating, "web2")); len(failed) != 1 || w.holds(webARN) != "10.0.0.1" {
		t.Errorf("failed %v, group holds %q, want the last healthy target held\n%s", failed, w.holds(webARN), w.log.String())
	}
}

// TestAmbiguousTags_I8: a rule whose tags several groups carry covers nothing, and
// none of those groups loses what it may have meant.
func TestAmbiguousTags_I8(t *testing.T) {
	for _, several := range []bool{false, true} {
		w := newWorld(t)
		w.groups[webARN].tags["team"] = "a"
		if several {
			w.groups[apiARN].tags["team"] = "a"
		}
		w.bind("tagged", `{"app":["web2"]}`, `{"targetGroup":{"tags":{"team":"a"}},"port":8080}`)
		w.targets("10.0.0.1=healthy 10.0.0.2=healthy")
		w.set("b ip=10.0.0.2")
		old := *w.set("a ip=10.0.0.1")
		m := w.hint(old, podevent.Relabelled, "web")
		w.set("a ip=10.0.0.1 app=web2")
		if w.process(m); w.holds(webARN) != "10.0.0.1 10.0.0.2" {
			t.Errorf("several groups carry the tags: %v; group holds %q, want the pod's target kept\n%s", several, w.holds(webARN), w.log.String())
		}
	}
}

// TestRuleThatSentIt_I3: a message proves that its rule was enabled and selected
// the pod after the rule was read last.
func TestRuleThatSentIt_I3(t *testing.T) {
	tests := map[string]func(w *world, enabled string){
		"enabled since": func(w *world, enabled string) { w.rules["web"].state = "DISABLED" },
		"selects more since": func(w *world, enabled string) {
			w.rules["web"].pattern = strings.Replace(enabled, `"web"`, `"wbe"`, 1)
		},
	}
	for name, before := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web")
			enabled := w.rules["web"].pattern
			before(w, enabled)
			w.process(w.hint(*w.set("z ip=10.0.0.9 app=other"), podevent.IPAssigned, "web"))
			w.rules["web"].state, w.rules["web"].pattern = "ENABLED", enabled
			if w.process(m); w.holds(webARN) != "10.0.0.1" {
				t.Errorf("group holds %q, want the pod registered\n%s", w.holds(webARN), w.log.String())
			}
		})
	}
}

// TestConstants_I3 changes a rule's constants between messages.
func TestConstants_I3(t *testing.T) {
	constants := func(port int) string { return fmt.Sprintf(`{"targetGroup":%q,"port":%d}`, webARN, port) }
	change := func(w *world, port int) { w.bind("web", `{"app":["web"]}`, constants(port)) }
	t.Run("old and new ones in a batch", func(t *testing.T) {
		w := newWorld(t)
		p := *w.set("a ip=10.0.0.1")
		before := w.hint(p, podevent.IPAssigned, "web")
		change(w, 8081)
		w.process(before, w.hint(p, podevent.Ready, "web"))
		if got := w.holds(webARN); got != "10.0.0.1:8081" {
			t.Errorf("group holds %q, want the port that the rule has now\n%s", got, w.log.String())
		}
	})
	t.Run("new ones where the old are remembered", func(t *testing.T) {
		w := newWorld(t)
		w.targets("10.0.0.9=healthy 10.0.0.8=healthy")
		w.process(w.hint(*w.set("z ip=10.0.0.9 terminating"), podevent.Terminating, "web")) // reads the targets
		change(w, 8081)
		w.process(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
		if got := w.holds(webARN); got != "10.0.0.1:8081 10.0.0.8" {
			t.Errorf("group holds %q, want the port that the rule has now\n%s", got, w.log.String())
		}
	})
	t.Run("the target is gone or can't be understood any more", func(t *testing.T) {
		w := newWorld(t)
		w.bind("late", `{"app":["late"]}`, constants(8080))
		m := w.hint(*w.set("a ip=10.0.0.1 app=late"), podevent.IPAssigned, "late")
		w.bind("late", `{"app":["late"]}`, `{"targetGroup":1}`)
		w.targets("10.0.0.9=healthy 10.0.0.8=healthy")
		w.process(w.hint(*w.set("z ip=10.0.0.9 terminating"), podevent.Terminating, "web")) // reads the targets
		if failed := w.process(m); len(failed) != 0 || len(w.buried) != 0 || w.holds(webARN) != "10.0.0.8" {
			t.Errorf("failed %v, buried %v, group holds %q, want nothing done", failed, w.buried, w.holds(webARN))
		}
	})
}

// TestForgottenRules_I3: what a warm instance remembers of other rules serves no
// additions for longer than half a minute.
func TestForgottenRules_I3(t *testing.T) {
	w := newWorld(t)
	w.bind("web2", `{"app":["web2"]}`, w.rules["web"].constants)
	w.targets("10.0.0.9=healthy 10.0.0.8=healthy")
	w.process(w.hint(*w.set("z ip=10.0.0.9 terminating"), podevent.Terminating, "web")) // reads all rules
	old := *w.set("a ip=10.0.0.8")
	delete(w.rules, "web2")
	w.pass(31 * time.Second)
	m := w.hint(old, podevent.Relabelled, "web")
	w.set("a ip=10.0.0.8 app=web2")
	if w.process(m); w.holds(webARN) != "" {
		t.Errorf("group holds %q, want the pod that no rule selects gone\n%s", w.holds(webARN), w.log.String())
	}
}

// TestRedelivered_I2: a registrar that died after its removal, before it looked
// again, leaves the question about the key to whoever gets the message next.
func TestRedelivered_I2(t *testing.T) {
	for _, left := range []string{"10.0.0.1=draining", ""} {
		w := newWorld(t)
		w.targets(left)
		old := *w.set("a ip=10.0.0.1")
		w.remove("a")
		w.set("b ip=10.0.0.1") // its own hint found the target in place
		m := w.hint(old, podevent.Deleted, "web")
		m.Receives = 2
		if w.process(m); w.holds(webARN) != "10.0.0.1" {
			t.Errorf("left %q: group holds %q, want what b claims\n%s", left, w.holds(webARN), w.log.String())
		}
	}
}

// TestReadAlong_I3: a pod without a hint in the batch is registered, and gone when
// the registrar looks again.
func TestReadAlong_I3(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"gone":      func(w *world) { w.remove("c") },
		"replaced":  func(w *world) { w.set("c ip=10.0.0.4 uid=c2") },
		"unlabeled": func(w *world) { w.set("c ip=10.0.0.3 app=other") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set("c ip=10.0.0.3")
			ms := []queue.Message{w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"), w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web")}
			w.groups[webARN].onCall = func(string) { end(w); w.groups[webARN].onCall = nil }
			w.process(ms...)
			if got := w.holds(webARN); strings.Contains(got, "10.0.0.3") || !strings.HasPrefix(got, "10.0.0.1 10.0.0.2") {
				t.Errorf("group holds %q, want 10.0.0.3 out again\n%s", got, w.log.String())
			}
		})
	}
}

// TestOldReading_I3: what was read more than 2 s before the call is read again.
func TestOldReading_I3(t *testing.T) {
	t.Run("registration", func(t *testing.T) {
		w := newWorld(t)
		m := w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web")
		w.groups[webARN].onHealth = func() { w.pass(3 * time.Second); w.remove("a") }
		if w.process(m); len(w.groups[webARN].calls) != 0 {
			t.Errorf("calls %q, want none for a pod that is gone", w.groups[webARN].calls)
		}
	})
	t.Run("removal", func(t *testing.T) {
		w := newWorld(t)
		w.targets("10.0.0.1=healthy 10.0.0.2=healthy")
		m := w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")
		w.nodeReads = func() { w.nodeReads = nil; w.pass(3 * time.Second); w.remove("a"); w.set("b ip=10.0.0.1") }
		if w.process(m); len(w.groups[webARN].calls) != 0 {
			t.Errorf("calls %q, want none for an address that is claimed again", w.groups[webARN].calls)
		}
	})
}

// TestOthersMeanwhile_I9: another registrar takes a target out between this one's
// reading of the group and its removal without a witness.
func TestOthersMeanwhile_I9(t *testing.T) {
	w := newWorld(t)
	w.nodes["node-a"] = false
	w.targets("10.0.0.1=healthy 10.0.0.2=healthy")
	w.set("b ip=10.0.0.2")
	m := w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")
	w.nodeReads = func() { w.targets("10.0.0.2=draining") }
	if failed := w.process(m); len(failed) != 1 || !strings.Contains(w.holds(webARN), "10.0.0.1") {
		t.Errorf("failed %v, group holds %q, want the last healthy target held\n%s", failed, w.holds(webARN), w.log.String())
	}
}

// TestSticks_I5: a key that keeps draining is not called done.
func TestSticks_I5(t *testing.T) {
	w := newWorld(t)
	w.targets("10.0.0.1=draining")
	m := w.hint(*w.set("b ip=10.0.0.1"), podevent.IPAssigned, "web")
	w.groups[webARN].onCall = func(string) { w.targets("10.0.0.1=draining") }
	if failed := w.process(m); len(failed) != 1 {
		t.Errorf("failed %v, want the hint again: its target does not stick", failed)
	}
}

func one(m queue.Message) []queue.Message { return []queue.Message{m} }

// TestUnsettled_I1 keeps a change from being stored: the hint is read again, then
// comes again, and after a minute it counts as refused. Nothing leaves.
func TestUnsettled_I1(t *testing.T) {
	w := newWorld(t)
	w.targets("10.0.0.1=healthy")
	p := w.set("a ip=10.0.0.1")
	ev := podevent.FromPod("local", p, nil, w.now) // resourceVersion as stored: nothing has changed yet
	ev.Reason, ev.Terminating = podevent.Terminating, true
	m := w.message(ev, "web")
	if failed := w.process(m); len(failed) != 1 || w.visibility[m.ID] < time.Second || w.visibility[m.ID] > 2*time.Second {
		t.Fatalf("unsettled hint: failed %v after %v, want it again in 1 to 2 s", failed, w.visibility[m.ID])
	}
	w.pass(time.Minute)
	if failed := w.process(m); len(failed) != 0 {
		t.Fatalf("after a minute: failed %v, want it acknowledged as refused", failed)
	}
	if got := w.holds(webARN); got != "10.0.0.1" {
		t.Errorf("group holds %q, want the target kept", got)
	}
}

// TestSettlesWithinTheInvocation_I1 stores the change after the first readings,
// as happens when the event is faster than etcd.
func TestSettlesWithinTheInvocation_I1(t *testing.T) {
	w := newWorld(t)
	w.targets("10.0.0.1=healthy")
	ev := podevent.FromPod("local", w.set("a ip=10.0.0.1"), nil, w.now)
	ev.Reason, ev.Terminating = podevent.Terminating, true
	reads := 0
	w.podReads = func(name string) error {
		if reads++; reads == 3 {
			w.mu.Lock()
			w.pods["shop/a"].Terminating = true
			w.mu.Unlock()
		}
		return nil
	}
	if failed := w.process(w.message(ev, "web")); len(failed) != 0 {
		t.Fatalf("failed %v, want it done\n%s", failed, w.log.String())
	}
	if got := w.holds(webARN); got != "" {
		t.Errorf("group holds %q, want it empty", got)
	}
}

// TestLooksAgainAfterActing_I3 lets the truth move between reading and call.
func TestLooksAgainAfterActing_I3(t *testing.T) {
	t.Run("the pod ends while it is registered", func(t *testing.T) {
		w := newWorld(t)
		m := w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web")
		w.groups[webARN].onCall = func(verb string) {
			if verb == "register" {
				w.set("a ip=10.0.0.1 terminating")
			}
		}
		w.process(m)
		if got := w.holds(webARN); got != "" {
			t.Errorf("group holds %q, want it empty\n%s", got, w.log.String())
		}
	})
	t.Run("the address is claimed again while it is deregistered", func(t *testing.T) {
		w := newWorld(t)
		w.targets("10.0.0.1=healthy 10.0.0.2=healthy")
		m := w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")
		w.groups[webARN].onCall = func(verb string) {
			if verb == "deregister" {
				w.remove("a")
				w.set("b ip=10.0.0.1")
			}
		}
		w.process(m)
		if got := w.holds(webARN); got != "10.0.0.1 10.0.0.2" {
			t.Errorf("group holds %q, want 10.0.0.1 back\n%s", got, w.log.String())
		}
	})
}

// TestNeighbours_I6 mixes what can't succeed with what can.
func TestNeighbours_I6_P089_P091(t *testing.T) {
	w := newWorld(t)
	w.bind("wrong", `{"app":["web"]}`, `{"targetGroup":"`+strings.Replace(webARN, "0123456789abcdef", "0000000000000000", 1)+`","port":8080}`)
	w.bind("api", `{"app":["web"]}`, `{"targetGroup":"`+apiARN+`","port":8080}`)
	p := *w.set("a ip=10.0.0.1")
	foreign := podevent.FromPod("elsewhere", &p, nil, w.now)
	foreign.ResourceVersion = "before"
	good, wrong, api, other := w.hint(p, podevent.IPAssigned, "web"), w.hint(p, podevent.IPAssigned, "wrong"), w.hint(p, podevent.IPAssigned, "api"), w.message(foreign, "web")
	nonsense := queue.Message{ID: "nonsense", Body: "{", Sent: w.now}
	notOurs := queue.Message{ID: "not-ours", Body: strings.Replace(good.Body, `"source":"elbridge"`, `"source":"aws.ec2"`, 1), Sent: w.now}
	w.groups[apiARN].callErr = targetgroup.ErrThrottled
	failed := w.process(nonsense, wrong, good, api, other, notOurs)
	if got := w.holds(webARN); got != "10.0.0.1" {
		t.Errorf("group holds %q, want the good message done\n%s", got, w.log.String())
	}
	if len(failed) != 1 || failed[0] != api.ID {
		t.Errorf("come again: %v, want only the throttled %s", failed, api.ID)
	}
	for id, reason := range map[string]string{"nonsense": "", wrong.ID: "target group not found", other.ID: "elsewhere", "not-ours": ""} {
		if got, ok := w.buried[id]; !ok || !strings.Contains(got, reason) {
			t.Errorf("message %s: buried %q (%t), want it buried with %q", id, got, ok, reason)
		}
	}
	if n := len(w.eventsOf("Binding Invalid")); n != 1 {
		t.Errorf("%d Binding Invalid events, want 1", n)
	}
}

// TestCause_I10 follows a mutation to its event.
func TestCause_I10(t *testing.T) {
	w := newWorld(t)
	w.targets("10.0.0.9=healthy")
	m := w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web")
	w.process(m, w.hint(*w.set("z ip=10.0.0.9 terminating"), podevent.Terminating, "web"))
	var in, out map[string]any
	for _, e := range w.eventsOf("Targets Changed") {
		for _, k := range e["registered"].([]any) {
			in = k.(map[string]any)
		}
		for _, k := range e["deregistered"].([]any) {
			out = k.(map[string]any)
		}
	}
	if in["eventId"] != "event-a" || in["podUID"] != "a" || in["rule"] != ruleARN("web") || in["messageId"] != m.ID {
		t.Errorf("registration told as %v", in)
	}
	if out["eventId"] != "event-z" || out["witness"] != string(plan.PodEnded) || out["pod"] != "shop/z" {
		t.Errorf("deregistration told as %v", out)
	}
	if !strings.Contains(w.log.String(), `"cause":"hint"`) {
		t.Errorf("no log line with a cause:\n%s", w.log.String())
	}
	if w.busErr = errors.New("bus gone"); len(w.process(w.hint(*w.set("b ip=10.0.0.2"), podevent.IPAssigned, "web"))) != 0 {
		t.Error("an event that could not be sent brought its message back")
	}
}

// TestHeld_I9 checks the event of a held removal and that it is told once.
func TestHeld_I9(t *testing.T) {
	w := newWorld(t)
	w.nodes["node-a"] = false
	w.targets("10.0.0.1=healthy 10.0.0.2=healthy 10.0.0.3=draining")
	m := w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")
	w.process(m)
	w.process(m)
	held := w.eventsOf("Removal Held")
	if len(held) != 1 || held[0]["hash"] != nil || len(held[0]["held"].([]any)) != 1 {
		t.Fatalf("Removal Held events: %v, want one with one key, and no hash: the rest of the group was not looked at", held)
	}
	w.nodes["node-a"] = true // the witness appears
	if failed := w.process(m); len(failed) != 0 || w.holds(webARN) != "10.0.0.2" {
		t.Errorf("after the witness: failed %v, group holds %q", failed, w.holds(webARN))
	}
}

// TestHeldWhole_I9: where all of the group was looked at, the plan has the name by
// which it can be approved.
func TestHeldWhole_I9(t *testing.T) {
	w := newWorld(t)
	w.nodes["node-a"] = false
	w.targets("10.0.0.1=healthy 10.0.0.2=healthy 10.0.0.3=healthy")
	w.set("b ip=10.0.0.2 terminating")
	w.set("c ip=10.0.0.3 terminating")
	w.process(w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web"))
	held := w.eventsOf("Removal Held")
	var whole plan.Changes
	for _, id := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		whole.Held = append(whole.Held, plan.Change{Key: claim.Key{ID: id, Port: 8080}})
	}
	if len(held) != 1 || held[0]["hash"] != whole.Hash(webARN) {
		t.Errorf("Removal Held events: %v, want one of the plan %s", held, whole.Hash(webARN))
	}
}

// TestRuleInDoubt_I8: while a rule that speaks of the group can't be understood,
// nothing goes: the pods that it claims can't be told from others.
func TestRuleInDoubt_I8(t *testing.T) {
	w := newWorld(t)
	w.targets("10.0.0.1=healthy 10.0.0.2=healthy")
	w.set("b ip=10.0.0.2")
	w.bind("other", `{"app":["other"]}`, `{"targetGroup":"`+webARN+`","prot":8080}`)
	m := w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")
	if failed := w.process(m); len(failed) != 1 || w.holds(webARN) != "10.0.0.1 10.0.0.2" {
		t.Errorf("failed %v, group holds %q, want the hint to come again", failed, w.holds(webARN))
	}
	w.bind("other", `{"app":["other"]}`, `{"targetGroup":"`+webARN+`","port":8080}`)
	w.pass(2 * time.Minute)
	if failed := w.process(m); len(failed) != 0 || w.holds(webARN) != "10.0.0.2" {
		t.Errorf("after it is mended: failed %v, group holds %q", failed, w.holds(webARN))
	}
}

// TestHeldOverdue_I9: a plan that outlasts the witness window is told of once
// more, and one that was away for that long is new.
func TestHeldOverdue_I9(t *testing.T) {
	w := newWorld(t)
	w.nodes["node-a"] = false
	w.targets("10.0.0.1=healthy 10.0.0.2=healthy 10.0.0.3=draining")
	m := w.hint(*w.set("a ip=10.0.0.1 terminating"), podevent.Terminating, "web")
	for range 5 { // 0, 1, 2, 3 and 4 minutes
		w.process(m)
		w.pass(time.Minute)
	}
	held := w.eventsOf("Removal Held")
	if len(held) != 2 || held[0]["overdue"] != nil || held[1]["overdue"] != true || held[0]["since"] != held[1]["since"] || held[0]["hash"] != held[1]["hash"] {
		t.Fatalf("Removal Held events: %v, want one at first and one that is overdue", held)
	}
	if !strings.Contains(w.log.String(), `"targets_held_overdue":1`) {
		t.Errorf("no metric says that it is overdue:\n%s", w.log.String())
	}
	w.pass(3 * time.Minute)
	w.process(m)
	if held = w.eventsOf("Removal Held"); len(held) != 3 || held[2]["overdue"] != nil || held[2]["since"] == held[1]["since"] {
		t.Errorf("after a while without it: %v, want a new one", held)
	}
}

// TestBindingInvalid tells of what makes a binding cover nothing, once for each
// rule and problem, whatever number of pods meet it.
func TestBindingInvalid_I6(t *testing.T) {
	tests := map[string]struct{ constants, want string }{
		"a constant that can't be":        {`{"targetGroup":"` + webARN + `","port":70000}`, "port"},
		"a port that no container has":    {`{"targetGroup":"` + webARN + `","port":"htpp"}`, "no container port of that name"},
		"a group that is not there":       {`{"targetGroup":"` + strings.Replace(webARN, "0123", "ffff", 1) + `","port":8080}`, "not found"},
		"a constant that nobody knows":    {`{"targetGroup":"` + webARN + `","prot":8080}`, "prot"},
		"two constants that exclude each": {`{"targetGroup":"` + webARN + `","readinessGate":"a/b","registerWhen":"Ready"}`, "readinessGate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bind("web", `{"app":["web"]}`, tt.constants)
			w.process(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			w.process(w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"))
			told := w.eventsOf("Binding Invalid")
			if len(told) != 1 || !strings.Contains(told[0]["problem"].(string), tt.want) || told[0]["rule"] != ruleARN("web") {
				t.Errorf("Binding Invalid: %v, want one of rule web with %q\n%s", told, tt.want, w.log.String())
			}
			if w.holds(webARN) != "" {
				t.Errorf("group holds %q", w.holds(webARN))
			}
		})
	}
}

// TestEndToldAgain_I1 loses the first word of an eviction: what tells of the end
// again is put off while the account's rate is used up, and looked at then.
func TestEndToldAgain_I1_P077(t *testing.T) {
	w := newWorld(t)
	w.r.Config.DescribeSpare = 0.0001
	w.targets("10.0.0.1=healthy 10.0.0.2=healthy")
	w.set("b ip=10.0.0.2")
	ev := podevent.FromPod("local", w.set("a ip=10.0.0.1 terminating"), nil, w.now)
	ev.ResourceVersion, ev.Previous = "before", &podevent.Previous{Terminating: true}
	w.process(w.hint(*w.set("b ip=10.0.0.2 ready"), podevent.Ready, "web")) // takes what is spare
	m := w.message(ev, "web")
	if failed := w.process(m); len(failed) != 1 || w.holds(webARN) != "10.0.0.1 10.0.0.2" {
		t.Fatalf("at first: failed %v, group holds %q, want it put off", failed, w.holds(webARN))
	}
	w.pass(5 * time.Second)
	if failed := w.process(m); len(failed) != 0 || w.holds(webARN) != "10.0.0.2" {
		t.Errorf("the second time: failed %v, group holds %q\n%s", failed, w.holds(webARN), w.log.String())
	}
}

// TestExpired hands an old hint to resync.
func TestExpired_P091(t *testing.T) {
	w := newWorld(t)
	m := w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web")
	w.pass(registrar.DefaultHintMaxAge + time.Second)
	if failed := w.process(m); len(failed) != 0 || w.holds(webARN) != "" {
		t.Errorf("failed %v, group holds %q, want the hint acknowledged and nothing done", failed, w.holds(webARN))
	}
}

// asked is a resync that is asked for groups.
type asked struct {
	batches [][]string
	err     error
}

func (a *asked) Ask(_ context.Context, groups []string) error {
	a.batches = append(a.batches, groups)
	return a.err
}

// TestHandover_I12: one batch, one request, for the groups of its expired hints
// alone. A request that fails brings no message back.
func TestHandover_I12_P091(t *testing.T) {
	for name, err := range map[string]error{"": nil, "resync can't be asked": errors.New("queue gone")} {
		t.Run(name, func(t *testing.T) {
			w, resync := newWorld(t), &asked{err: err}
			w.r.Handover = resync
			w.bind("api", `{"app":["web"]}`, `{"targetGroup":"`+apiARN+`","port":8080}`)
			w.bind("named", `{"app":["web"]}`, `{"targetGroup":{"name":"web"},"port":8080}`)
			p := *w.set("a ip=10.0.0.1")
			old := []queue.Message{w.hint(p, podevent.IPAssigned, "web"), w.hint(p, podevent.IPAssigned, "api"), w.hint(p, podevent.Ready, "web"), w.hint(p, podevent.Ready, "named")}
			w.pass(registrar.DefaultHintMaxAge + time.Second)
			if failed := w.process(append(old, w.hint(p, podevent.IPAssigned, "web"))...); len(failed) != 0 || w.holds(webARN) != "10.0.0.1" {
				t.Errorf("failed %v, group holds %q, want the young hint done and the others acknowledged", failed, w.holds(webARN))
			}
			if len(resync.batches) != 1 || !slices.Equal(resync.batches[0], []string{apiARN, webARN}) {
				t.Errorf("asked for %q, want both groups once", resync.batches)
			}
			if w.process(w.hint(p, podevent.Ready, "web")); len(resync.batches) != 1 {
				t.Errorf("asked for %q without an expired hint", resync.batches[1:])
			}
			if told := strings.Contains(w.log.String(), "resync was not asked"); told != (err != nil) {
				t.Errorf("told of a failure: %t\n%s", told, w.log.String())
			}
		})
	}
}

// TestVerifyPrefer registers on the event's word while the API server is out of
// reach, within limits, and removes nothing.
func TestVerifyPrefer(t *testing.T) {
	tests := map[string]struct {
		cidrs string
		age   time.Duration
		err   error
		want  string
	}{
		"young, within podCIDRs":       {cidrs: `,"podCIDRs":["10.0.0.0/16"]`, err: cluster.ErrUnreachable, want: "10.0.0.1 10.0.0.9"},
		"outside podCIDRs":             {cidrs: `,"podCIDRs":["10.1.0.0/16"]`, err: cluster.ErrUnreachable, want: "10.0.0.9"},
		"no podCIDRs":                  {err: cluster.ErrUnreachable, want: "10.0.0.9"},
		"older than 30 s":              {cidrs: `,"podCIDRs":["10.0.0.0/16"]`, age: 31 * time.Second, err: cluster.ErrUnreachable, want: "10.0.0.9"},
		"P103 401 is not out of reach": {cidrs: `,"podCIDRs":["10.0.0.0/16"]`, err: cluster.ErrUnauthorized, want: "10.0.0.9"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.r.Config.Verify = registrar.VerifyPrefer
			w.targets("10.0.0.9=healthy")
			w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080`+tt.cidrs+`}`)
			ms := []queue.Message{w.hint(*w.set("a ip=10.0.0.1"), podevent.IPAssigned, "web"), w.hint(*w.set("z ip=10.0.0.9 terminating"), podevent.Terminating, "web")}
			w.podReads = func(string) error { return tt.err }
			w.pass(tt.age)
			failed := w.process(ms...)
			if got := w.holds(webARN); got != tt.want {
				t.Errorf("group holds %q, want %q\n%s", got, tt.want, w.log.String())
			}
			if tt.age == 0 && len(failed) != 2 {
				t.Errorf("failed %v, want both again: neither was verified", failed)
			}
		})
	}
}

// TestManyAtOnce_P001 registers 200 pods that 20 batches announce with one call.
func TestManyAtOnce_P001(t *testing.T) {
	w := newWorld(t)
	var ms []queue.Message
	for i := range 200 {
		ms = append(ms, w.hint(*w.set(fmt.Sprintf("p%d ip=10.0.1.%d", i, i)), podevent.IPAssigned, "web"))
	}
	for i := 0; i < len(ms); i += 10 {
		if failed := w.process(ms[i : i+10]...); len(failed) != 0 {
			t.Fatalf("failed %v", failed)
		}
	}
	if n := len(w.groups[webARN].targets); n != 200 {
		t.Errorf("%d targets, want 200", n)
	}
	if n := len(w.groups[webARN].calls); n != 1 {
		t.Errorf("%d mutating calls, want 1: %.200s", n, strings.Join(w.groups[webARN].calls, "; "))
	}
}

// TestMoot spends no call on readiness that changes no claim once the spare rate
// is used up (P061): the hint comes again a few times, to be looked at together
// with others, and is let go then.
func TestMoot_P061(t *testing.T) {
	w := newWorld(t)
	w.r.Config.DescribeSpare = 0.001
	w.groups[webARN].healthErr = errors.New("asked")
	p := *w.set("a ip=10.0.0.1 ready")
	first := w.process(w.hint(p, podevent.Ready, "web"))
	w.groups[webARN].healthErr = nil
	m := w.hint(p, podevent.Ready, "web")
	if second := w.process(m); len(first) != 1 || len(second) != 1 || w.holds(webARN) != "" {
		t.Fatalf("first hint failed %v, second %v, group holds %q: want a look for the first only", first, second, w.holds(webARN))
	}
	w.pass(11 * time.Second)
	if third := w.process(m); len(third) != 0 {
		t.Errorf("after 11 s it comes again: %v", third)
	}
	if again := w.process(m, w.hint(p, podevent.IPAssigned, "web")); len(again) != 0 || w.holds(webARN) != "10.0.0.1" {
		t.Errorf("beside a hint that may change a claim: failed %v, group holds %q", again, w.holds(webARN))
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	_, err := registrar.ConfigFromEnv(func(name string) (string, bool) {
		return map[string]string{"ELBRIDGE_BUS": "elbridge", "ELBRIDGE_VERIFY": "maybe", "ELBRIDGE_CLUSTERS": `[{"name":"a"},{"name":"a","eks":{}}]`, "ELBRIDGE_HINT_MAX_AGE": "ten"}[name], true
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"ELBRIDGE_BUS", "ARN", "ELBRIDGE_QUEUE_URL: missing", "ELBRIDGE_VERIFY", "always or prefer", "exactly one of eks", "named twice", "ELBRIDGE_HINT_MAX_AGE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}
