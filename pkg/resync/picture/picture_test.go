package picture_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/resync/picture"
)

func TestKept(t *testing.T) {
	bubble(t, func(s *scene) {
		s.set("a", pod("shop web 10.64.1.1"))
		s.set("b", pod("shop api 10.64.1.2"))
		s.set("c", pod("shop job 10.64.1.3"))
		bs := bindings(t, "web", `{"namespace":["shop"],"labels":{"app":["web","api"]}}`, "web", `{"cluster":["other"]}`)
		s.wantComplete(false) // nobody said what to follow
		s.Follow(bs)
		s.want(bs, "a:0,1,2 b:1")
		s.wantComplete(true)
		if got := s.told(); got != "list pods with app in (api,web); watch pods with app in (api,web)@103" {
			t.Errorf("asked: %s", got)
		}
		if st := s.State(); st.Pods != 2 || st.Lists != 1 || st.Err != nil || !st.ListedAt.Equal(time.Now()) {
			t.Errorf("state %+v, want two pods by one list", st)
		}

		s.set("d", pod("else web 10.64.1.4"))
		s.change("b", func(p *podevent.Pod) { p.Ready = false })
		s.set("a", nil)
		s.want(bs, "b:1 d:0,2")
		pods, _ := s.Selected(bs[1:2])
		b := pods[0]
		if b.Cluster != "prod" || b.Ready || b.Namespace != "shop" || b.Name != "api-x" || b.NodeName != "node-a" || b.PodIP() != "10.64.1.2" || b.Phase != "Running" {
			t.Errorf("pod %+v", b.Pod)
		}
		if fmt.Sprint(b.Ports) != "[{http 8080 0 }]" || b.Labels != nil {
			t.Errorf("kept ports %v and labels %v, want named ports alone", b.Ports, b.Labels)
		}
		if got := s.told(); got != "" {
			t.Errorf("a round asked the API server: %s", got)
		}
	})
}

func TestFollow(t *testing.T) {
	bubble(t, func(s *scene) {
		s.set("a", pod("shop web 10.64.1.1"))
		s.set("b", pod("shop api 10.64.1.2"))
		s.set("c", pod("else web 10.64.1.3"))
		web := bindings(t, "shop/web")
		s.Follow(web)
		s.want(web, "a:0")
		s.told()

		same := bindings(t, "shop/web", "shop/web")
		same[0].MinTargets, same[1].Enabled = 7, true
		s.Follow(same)
		s.want(same, "a:0,1")
		both := bindings(t, "shop/web", "shop/api")
		if got := s.told(); got != "" {
			t.Errorf("other constants: %s", got)
		}

		s.Follow(both)
		s.want(both, "a:0 b:1")
		if got := s.told(); got != "list pods of namespace shop with app in (api,web); watch pods of namespace shop with app in (api,web)@103" {
			t.Errorf("another pattern: %s", got)
		}
		s.Follow(bindings(t, "shop/api")) // a rule went
		s.Follow(both)                    // and is back
		if got := s.told(); got != "" {
			t.Errorf("a rule that went: %s", got)
		}

		s.Follow(bindings(t, "else/web"))
		s.want(bindings(t, "shop/web", "else/web"), "c:1")
		s.wantPast("10.64.1.1", "") // a changed rule is no witness (I9)
		if got := s.told(); got != "list pods of namespace else with app=web; watch pods of namespace else with app=web@103" {
			t.Errorf("another namespace: %s", got)
		}
		s.Follow(nil)
		s.wantComplete(true)
	})
}

// A pattern that is followed no more was not lost by the pod's doing, whatever
// its labels are meanwhile.
func TestRuleGoesAsLabelsChange_I9(t *testing.T) {
	bubble(t, func(s *scene) {
		s.set("a", pod("shop web 10.64.1.1"))
		s.Follow(bindings(t, "web"))
		s.wantComplete(true)
		s.with(func() { s.mute = true })
		s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "api"} })
		s.Follow(bindings(t, "api"))
		s.want(bindings(t, "web", "api"), "a:1")
		s.wantPast("10.64.1.1", "")
	})
}

// As long as a new pattern's pods were not all seen, the picture isn't complete,
// and says what it knows.
func TestNewPattern_I8(t *testing.T) {
	bubble(t, func(s *scene) {
		s.set("a", pod("shop web 10.64.1.1"))
		s.set("b", pod("shop api 10.64.1.2"))
		s.Follow(bindings(t, "web"))
		s.wantComplete(true)
		s.with(func() { s.refuse[""] = cluster.ErrUnauthorized })
		both := bindings(t, "web", "api")
		s.Follow(both)
		s.wantComplete(false)
		s.want(both, "a:0")
		if err := s.State().Err; !errors.Is(err, cluster.ErrUnauthorized) {
			t.Errorf("state's error %v, want that of the list", err)
		}
		s.with(func() { s.refuse[""] = nil })
		s.pass(time.Minute)
		s.wantComplete(true)
		s.want(both, "a:0 b:1")
	})
}

func TestPast_I9(t *testing.T) {
	tests := map[string]struct {
		what  func(s *scene)
		want  string // of 10.64.1.1
		later string // of 10.64.1.9
	}{
		"deleted": {func(s *scene) { s.set("a", nil) }, "a Gone", ""},
		"terminated": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.Terminating = true })
			s.set("a", nil)
		}, "a Gone!", ""},
		"finished, then deleted": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.Phase = "Succeeded" })
			s.set("a", nil)
		}, "a Finished!", ""},
		"P046 finished long ago, then deleted": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.Phase = "Failed" })
			s.pass(time.Hour)
			s.change("a", func(p *podevent.Pod) { p.Annotations = map[string]string{"seen": "yes"} })
			s.set("a", nil)
		}, "", ""},
		"P047 finished and without its address in one write": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.Phase, p.PodIPs = "Failed", nil })
		}, "a Finished!", ""},
		"left the selector": {func(s *scene) { s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "job"} }) }, "a Gone", ""},
		"lost one pattern of two": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "web", "v": "2"} })
		}, "a Deselected", ""},
		"and got it back": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "web", "v": "2"} })
			s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "web", "v": "1"} })
		}, "", ""},
		"left the selector and came back": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "job"} })
			s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "web", "v": "1"} })
		}, "", ""},
		"another address":   {func(s *scene) { s.change("a", func(p *podevent.Pod) { p.PodIPs = []string{"10.64.1.9"} }) }, "a Moved", ""},
		"no address (P047)": {func(s *scene) { s.change("a", func(p *podevent.Pod) { p.PodIPs = nil }) }, "a Moved", ""},
		"another address, and back": {func(s *scene) {
			s.change("a", func(p *podevent.Pod) { p.PodIPs = []string{"10.64.1.9"} })
			s.change("a", func(p *podevent.Pod) { p.PodIPs = []string{"10.64.1.1"} })
		}, "", "a Moved"},
		"two pods one after the other": {func(s *scene) {
			s.set("a", nil)
			s.set("b", pod("shop web 10.64.1.1"))
			s.change("b", func(p *podevent.Pod) { p.Terminating = true })
			s.set("b", nil)
		}, "b Gone!, a Gone", ""},
		"state is not selection": {func(s *scene) { s.change("a", func(p *podevent.Pod) { p.Ready = false }) }, "", ""},
		"too long ago": {func(s *scene) {
			s.set("a", nil)
			s.pass(3*time.Minute + time.Second)
		}, "", ""},
		"a pod of nobody's": {func(s *scene) {
			s.set("n", pod("shop job 10.64.1.1"))
			s.set("n", nil)
		}, "", ""},
		"a list without it": {func(s *scene) {
			s.with(func() { s.mute = true })
			s.set("a", nil)
			s.compact()
			s.with(func() { s.mute = false })
			s.end(cluster.ErrExpired)
			s.pass(time.Minute)
			s.want(bindings(s.t, "web"), "")
		}, "", ""},
		"a list that shows it with other labels": {func(s *scene) {
			s.with(func() { s.mute = true })
			s.change("a", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "web", "v": "2"} })
			s.compact()
			s.with(func() { s.mute = false })
			s.end(cluster.ErrExpired)
			s.pass(time.Minute)
			s.want(bindings(s.t, "web"), "a:0")
		}, "a Deselected", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *scene) {
				a := pod("shop web 10.64.1.1")
				a.Labels["v"] = "1"
				s.set("a", a)
				bs := bindings(t, "web", `{"labels":{"app":["web"],"v":["1"]}}`, `{"labels":{"app":["web"]},"ready":[true]}`)
				s.Follow(bs)
				s.want(bs, "a:0,1,2")
				tt.what(s)
				s.wantPast("10.64.1.1", tt.want)
				s.wantPast("10.64.1.9", tt.later)
				for _, p := range s.Past("10.64.1.1") {
					if of := fmt.Sprint(p.Had(&bs[0]), p.Had(&bs[1])); p.Kind == picture.Deselected && of != "false true" || p.Kind == picture.Gone && !strings.HasPrefix(of, "true") {
						t.Errorf("%s was selected by the bindings: %s", p.Pod.UID, of)
					}
				}
			})
		})
	}
}

// However many pods go, what is remembered is bounded.
func TestPastIsBounded(t *testing.T) {
	bubble(t, func(s *scene) {
		const n = 10_100
		for i := range n {
			s.set(fmt.Sprint(i), pod(fmt.Sprintf("shop web 10.64.%d.%d", i/250, i%250)))
		}
		s.Follow(bindings(t, "web"))
		s.wantComplete(true)
		for i := range n {
			s.set(fmt.Sprint(i), nil)
		}
		s.wantPast("10.64.0.0", "")
		s.wantPast("10.64.0.99", "")
		s.wantPast("10.64.0.100", "100 Gone")
		s.wantPast("10.64.40.99", "10099 Gone")
	})
}

func TestStreams(t *testing.T) {
	web := "pods with app=web"
	tests := map[string]struct {
		end  error
		want string // is asked within a minute
	}{
		"the server ends it": {errEnd, "watch " + web + "@102"},
		"the network does":   {cluster.ErrUnreachable, "watch " + web + "@102"},
		"rights are lost":    {cluster.ErrUnauthorized, "watch " + web + "@102"},
		"too old a revision": {cluster.ErrExpired, "list " + web + "; watch " + web + "@103"},
		"it says nothing":    {cluster.ErrSilent, "list " + web + "; watch " + web + "@103"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *scene) {
				bs := bindings(t, "web")
				s.set("a", pod("shop web 10.64.1.1"))
				s.Follow(bs)
				s.want(bs, "a:0")
				s.set("b", pod("shop web 10.64.1.2"))
				s.want(bs, "a:0 b:0")
				s.told()
				s.end(tt.end)
				s.wantComplete(true) // for the moment
				s.set("b", nil)
				s.pass(2 * time.Second)
				if got := s.told(); got != tt.want {
					t.Errorf("asked: %s, want %s", got, tt.want)
				}
				s.want(bs, "a:0")
				s.wantComplete(true)
				if err := s.State().Err; err != nil {
					t.Errorf("an error that is over: %v", err)
				}
			})
		})
	}
}

// A picture that nothing keeps up is complete for 30 s.
func TestDown_I8(t *testing.T) {
	bubble(t, func(s *scene) {
		bs := bindings(t, "web")
		s.set("a", pod("shop web 10.64.1.1"))
		s.Follow(bs)
		s.wantComplete(true)
		s.pass(time.Hour) // nothing happens, nothing is wrong
		s.wantComplete(true)
		s.with(func() { s.refuse[""] = cluster.ErrUnreachable })
		s.pass(0)
		s.told()
		s.pass(30 * time.Second)
		s.wantComplete(true)
		s.pass(time.Second)
		s.wantComplete(false)
		s.want(bs, "a:0")
		if err := s.State().Err; !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("state's error %v", err)
		}
		s.pass(10 * time.Minute)
		if n := strings.Count(s.told(), "watch"); n < 75 || n > 125 {
			t.Errorf("%d attempts in ten minutes, want one each 5 to 7.5 s", n)
		}
		s.with(func() { s.refuse[""] = nil })
		s.pass(30 * time.Second)
		s.wantComplete(true)
	})
}

// A list that fails leaves the picture as it was, and not complete.
func TestFailedList_I8(t *testing.T) {
	for name, err := range map[string]error{"unreachable": cluster.ErrUnreachable, "grew too old": cluster.ErrExpired, "not authorised": cluster.ErrUnauthorized} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *scene) {
				bs := bindings(t, "web")
				for _, uid := range []string{"a", "b", "c"} {
					s.set(uid, pod("shop web"))
				}
				s.Follow(bs)
				s.want(bs, "a:0 b:0 c:0")
				s.with(func() {
					s.page = func(n int) error {
						if n == 1 {
							return err
						}
						return nil
					}
					s.mute = true
				})
				s.set("b", nil)
				s.compact()
				s.end(cluster.ErrExpired) // the stream may have been past what was compacted
				s.pass(10 * time.Second)
				s.want(bs, "a:0 b:0 c:0")
				s.wantComplete(false)
				if got := s.State().Err; !errors.Is(got, err) {
					t.Errorf("state's error %v, want %v", got, err)
				}
				s.with(func() { s.page, s.mute = nil, false })
				s.pass(time.Minute)
				s.want(bs, "a:0 c:0")
				s.wantComplete(true)
			})
		})
	}
}

// A list that takes its time is told of; until it ended the picture isn't complete.
func TestSlowList_I8(t *testing.T) {
	bubble(t, func(s *scene) {
		for _, uid := range []string{"a", "b", "c"} {
			s.set(uid, pod("shop web"))
		}
		s.with(func() {
			s.page = func(int) error { time.Sleep(5 * time.Second); return nil } // of the bubble
		})
		bs := bindings(t, "web")
		s.Follow(bs)
		s.pass(6 * time.Second)
		s.want(bs, "a:0")
		s.wantComplete(false)
		s.pass(10 * time.Second)
		s.want(bs, "a:0 b:0 c:0")
		s.wantComplete(true)
		if took := s.State().ListTook; took != 15*time.Second {
			t.Errorf("the list took %s, want 15 s", took)
		}
	})
}

// One namespace that may not be read makes the picture incomplete, and keeps
// nobody from the others.
func TestHiddenNamespace_P103(t *testing.T) {
	bubble(t, func(s *scene) {
		s.set("a", pod("shop web 10.64.1.1"))
		s.set("b", pod("else web 10.64.1.2"))
		s.with(func() { s.refuse["else"] = cluster.ErrUnauthorized })
		bs := bindings(t, "shop/web", "else/web")
		s.Follow(bs)
		s.want(bs, "a:0")
		s.wantComplete(false)
		s.set("c", pod("shop web 10.64.1.3"))
		s.want(bs, "a:0 c:0")
		if st := s.State(); !errors.Is(st.Err, cluster.ErrUnauthorized) || !st.ListedAt.IsZero() || st.Lists != 1 {
			t.Errorf("state %+v, want one list, and the error of the other", st)
		}
		s.with(func() { s.refuse["else"] = nil })
		s.pass(time.Minute)
		s.want(bs, "a:0 b:1 c:0")
		s.wantComplete(true)
	})
}

func TestTouchedAt(t *testing.T) {
	bubble(t, func(s *scene) {
		s.set("a", pod("shop web 10.64.1.1"))
		s.set("b", pod("shop api 10.64.1.2"))
		bs := bindings(t, "web", "api")
		s.Follow(bs)
		s.wantComplete(true)
		want := func(what string, web, api bool) {
			t.Helper()
			ofWeb, ofAPI := s.TouchedAt(bs[:1]).Equal(time.Now()), s.TouchedAt(bs[1:]).Equal(time.Now())
			if any := s.TouchedAt(bs).Equal(time.Now()); ofWeb != web || ofAPI != api || any != (web || api) {
				t.Errorf("%s: now touched: web %v, api %v, any %v; want %v, %v", what, ofWeb, ofAPI, any, web, api)
			}
			s.pass(time.Second)
		}
		want("all are new", true, true)
		want("nothing since", false, false)
		s.change("b", func(p *podevent.Pod) { p.Ready = false })
		s.wantComplete(true)
		want("not ready", false, true)
		s.change("b", func(p *podevent.Pod) { p.Annotations = map[string]string{"seen": "yes"} })
		s.wantComplete(true)
		want("what no claim asks for", false, false)
		s.change("b", func(p *podevent.Pod) { p.Labels = map[string]string{"app": "web"} })
		s.wantComplete(true)
		want("from one to the other", true, true)
		s.set("b", nil)
		s.wantComplete(true)
		want("gone", true, false)
		s.end(cluster.ErrExpired)
		s.pass(time.Minute)
		want("a list that shows the same", false, false)
	})
}

// What was kept by an earlier run is not relied on before it is listed anew.
func TestRunAgain(t *testing.T) {
	bubble(t, func(s *scene) {
		bs := bindings(t, "web")
		s.set("a", pod("shop web 10.64.1.1"))
		s.Follow(bs)
		s.want(bs, "a:0")
		if err := s.Run(s.t.Context()); !errors.Is(err, picture.ErrRunning) {
			t.Errorf("a second Run at the same time: %v", err)
		}
		s.stop()
		s.set("a", nil)
		s.set("b", pod("shop web 10.64.1.2"))
		s.pass(time.Minute)
		s.wantComplete(false)
		s.run()
		s.want(bs, "b:0")
		s.wantComplete(true)
	})
}

// Of a list under way, nothing is done any more once its context ended.
func TestEndsWithinAList(t *testing.T) {
	bubble(t, func(s *scene) {
		for _, uid := range []string{"a", "b", "c"} {
			s.set(uid, pod("shop web"))
		}
		ctx, cancel := context.WithCancel(s.t.Context())
		s.stop()
		s.with(func() {
			s.page = func(n int) error {
				if n == 1 {
					cancel()
				}
				return nil
			}
		})
		bs := bindings(t, "web")
		s.Follow(bs)
		if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		s.want(bs, "a:0")
		s.wantComplete(false)
	})
}
