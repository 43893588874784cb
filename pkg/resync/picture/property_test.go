package picture_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/resync/picture"
)

// step is one thing that happens to a cluster or to who watches it.
type step struct {
	kind   string
	uid    string
	text   string // of a pod
	labels map[string]string
	follow []int // indices of patterns
	n      int
	fault  error
}

func drawSteps(t *rapid.T, n int, kinds ...string) []step {
	var out []step
	for range n {
		s := step{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), uid: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "uid")}
		switch s.kind {
		case "set", "relabel":
			s.labels = drawLabels(t)
			s.text = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace") + " x 10.64.1." + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "address")
		case "follow":
			s.follow = rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 0, 4, rapid.ID).Draw(t, "follow")
		case "break":
			s.n = rapid.IntRange(0, 3).Draw(t, "n")
			s.fault = drawFault(t)
		case "end", "refuse":
			s.fault = drawFault(t)
		case "pass":
			s.n = rapid.SampledFrom([]int{1, 5, 31, 200}).Draw(t, "seconds")
		}
		out = append(out, s)
	}
	return out
}

func drawFault(t *rapid.T) error {
	return rapid.SampledFrom([]error{cluster.ErrExpired, cluster.ErrSilent, cluster.ErrUnreachable, cluster.ErrUnauthorized, errEnd}).Draw(t, "fault")
}

func (h *history) do(s step) {
	a := h.api
	switch s.kind {
	case "follow":
		h.followed = nil
		for _, i := range s.follow {
			h.followed = append(h.followed, h.all[i])
		}
		h.shown = map[string]bool{} // by other bindings
		h.Follow(h.followed)
	case "set":
		p := pod(s.text)
		p.Labels = s.labels
		if old := a.pods[s.uid]; old != nil { // a pod keeps its namespace
			p.Namespace = old.Namespace
		}
		a.set(s.uid, p)
	case "relabel":
		a.change(s.uid, func(p *podevent.Pod) { p.Labels = s.labels })
	case "state":
		a.change(s.uid, func(p *podevent.Pod) { p.Ready = !p.Ready })
	case "terminate":
		a.change(s.uid, func(p *podevent.Pod) { p.Terminating = true })
	case "delete":
		a.set(s.uid, nil)
	case "compact":
		a.compact()
	case "end":
		a.end(s.fault)
	case "refuse":
		a.with(func() {
			if a.refuse[""], a.refuse["a"] = s.fault, s.fault; s.fault == errEnd { //nolint:errorlint // drawn
				a.refuse = map[string]error{}
			}
		})
	}
}

var ofPods = []string{"set", "set", "relabel", "state", "terminate", "delete", "compact"}

// history is a world with a picture, and what must hold of it at any time.
type history struct {
	*scene
	all      []binding.Binding
	followed []binding.Binding
	midlist  []step // happen to pods, or are asked for, while lists are under way
	shown    map[string]bool
	wrong    []string
	turn     sync.Mutex // what is done while a list is under way is done by another goroutine
}

// oracle matches every pod, one by one, with each binding's own pattern.
func (h *history) oracle(bs []binding.Binding) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for uid, p := range h.pods {
		ev := podevent.FromPod("prod", p, nil, time.Now())
		e, err := podmatch.Event(&ev, podmatch.Envelope{Account: "123456789012", Region: "eu-west-1"})
		if err != nil {
			panic(err)
		}
		var of []string
		for i := range bs {
			if bs[i].Pattern.Matches(e) {
				of = append(of, fmt.Sprint(i))
			}
		}
		if len(of) > 0 {
			out = append(out, uid+":"+strings.Join(of, ","))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// check holds what is known against what is so: at rest a complete picture is
// the truth as its streams tell it, and a live selected pod that was shown once
// is shown as long as it is one (I8).
func (h *history) check(after string) {
	synctest.Wait()
	h.turn.Lock()
	defer h.turn.Unlock()
	got, want := selected(h.Picture, h.followed), h.oracle(h.followed)
	shows := map[string]bool{}
	for s := range strings.FieldsSeq(got) {
		uid, _, _ := strings.Cut(s, ":")
		shows[uid] = true
	}
	claims := map[string]bool{}
	for s := range strings.FieldsSeq(want) {
		uid, _, _ := strings.Cut(s, ":")
		claims[uid] = true
		if h.shown[uid] && !shows[uid] {
			h.wrong = append(h.wrong, fmt.Sprintf("after %s: pod %s is selected and was shown, and is so no more", after, uid))
		}
	}
	for uid := range h.shown {
		if !claims[uid] {
			delete(h.shown, uid)
		}
	}
	for uid := range shows {
		if claims[uid] {
			h.shown[uid] = true
		}
	}
	h.checkPast(after)
}

// checkPast: what is past is not so now (I9).
func (h *history) checkPast(after string) {
	for _, address := range []string{"10.64.1.1", "10.64.1.2", "10.64.1.3"} {
		for _, p := range h.Past(address) {
			for i := range h.followed {
				if !p.Had(&h.followed[i]) {
					continue
				}
				pods, _ := h.Selected(h.followed[i : i+1])
				for _, now := range pods {
					if now.UID == p.Pod.UID && slices.Contains(now.PodIPs, address) {
						h.wrong = append(h.wrong, fmt.Sprintf("after %s: %s of pod %s at %s by %s, which selects it there", after, p.Kind, p.Pod.UID, address, h.followed[i].Pattern))
					}
				}
			}
		}
	}
}

func (h *history) run(steps []step) {
	h.with(func() {
		h.page = func(int) error {
			h.turn.Lock()
			defer h.turn.Unlock()
			if len(h.midlist) > 0 {
				h.do(h.midlist[0])
				h.midlist = h.midlist[1:]
			}
			return nil
		}
	})
	for _, s := range steps {
		switch s.kind {
		case "break":
			plain := h.page
			h.with(func() {
				h.page = func(n int) error {
					if n == s.n {
						h.with(func() { h.page = plain })
						return s.fault
					}
					return plain(n)
				}
			})
		case "pass":
			h.pass(time.Duration(s.n) * time.Second)
		case "restart":
			h.stop()
			h.scene.run()
		default:
			h.turn.Lock()
			h.do(s)
			h.turn.Unlock()
		}
		h.check(s.kind)
	}
	h.with(func() { h.page, h.refuse, h.midlist = nil, map[string]error{}, nil })
	h.pass(2 * time.Minute)
	if st := h.State(); !st.Complete {
		h.wrong = append(h.wrong, fmt.Sprintf("not complete with all well: %+v", st))
	}
	if got, want := selected(h.Picture, h.followed), h.oracle(h.followed); got != want {
		h.wrong = append(h.wrong, fmt.Sprintf("in the end: selected %q, want %q", got, want))
	}
}

// Whatever happens to pods, streams and lists: once a list ended whole and a
// stream goes on from it, the picture is what matching every pod says.
func TestHistories_I8_I9(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var details []string
		for range 5 {
			details = append(details, drawDetail(rt, 1))
		}
		all := bindings(t, details...)
		steps := drawSteps(rt, rapid.IntRange(3, 25).Draw(rt, "steps"), append(slices.Clone(ofPods), "follow", "follow", "end", "refuse", "break", "pass", "restart")...)
		steps = append([]step{{kind: "follow", follow: []int{0, 1, 2}}}, steps...)
		midlist := drawSteps(rt, rapid.IntRange(0, 10).Draw(rt, "midlist"), append(slices.Clone(ofPods), "follow")...)
		var wrong []string
		bubble(t, func(s *scene) {
			h := &history{scene: s, all: all, midlist: midlist, shown: map[string]bool{}}
			h.run(steps)
			wrong = h.wrong
		})
		if len(wrong) > 0 {
			rt.Fatalf("%s\n%v\n%+v", strings.Join(wrong, "\n"), details, steps)
		}
	})
}

var _ picture.Source = (*api)(nil)
