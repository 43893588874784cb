package picture_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/resync/picture"
)

// api is an API server as far as lists and streams of pods go: revisions,
// selectors, streams that go on from a revision, and faults.
type api struct {
	mu   sync.Mutex
	rv   int
	pods map[string]*podevent.Pod // by UID
	log  []write
	// compacted is the oldest revision that a stream can go on from.
	compacted int
	// refuse is what lists and streams of a namespace are answered with.
	refuse map[string]error
	// page is called before a list hands on its n-th pod, without the lock.
	page func(n int) error
	mute bool          // streams say nothing, not that they were taken up either
	next chan struct{} // closed at the next write or cut
	cut  error         // ends the streams that are open; errEnd is the server's end
	cuts int

	asked []string // "list SCOPE", "watch SCOPE@RV"
}

// write is a change of one pod: made where old is nil, gone where now is.
type write struct {
	rv       int
	old, now *podevent.Pod
}

var errEnd = errors.New("ends")

func newAPI() *api {
	return &api{rv: 100, pods: map[string]*podevent.Pod{}, refuse: map[string]error{}, next: make(chan struct{})}
}

func admits(s cluster.Scope, p *podevent.Pod) bool {
	if p == nil {
		return false
	}
	sel, err := labels.Parse(s.LabelSelector)
	if err != nil {
		panic(err)
	}
	return (s.Namespace == "" || s.Namespace == p.Namespace) && sel.Matches(labels.Set(p.Labels))
}

func (a *api) Each(ctx context.Context, s cluster.Scope, each func(*podevent.Pod)) (string, error) {
	a.mu.Lock()
	a.asked = append(a.asked, "list "+s.String())
	err, page, rv := a.refuse[s.Namespace], a.page, a.rv
	var all []podevent.Pod
	for _, p := range a.pods {
		if admits(s, p) {
			all = append(all, *p)
		}
	}
	a.mu.Unlock()
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b podevent.Pod) int { return strings.Compare(a.UID, b.UID) })
	for i := range all {
		if page != nil {
			if err := page(i); err != nil {
				return "", err
			}
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		each(&all[i])
	}
	return strconv.Itoa(rv), nil
}

func (a *api) Watch(ctx context.Context, s cluster.Scope, resourceVersion string, on func(cluster.Change)) error {
	from, err := strconv.Atoi(resourceVersion)
	if err != nil {
		return fmt.Errorf("resourceVersion %q: %w", resourceVersion, err)
	}
	a.mu.Lock()
	a.asked = append(a.asked, "watch "+s.String()+"@"+resourceVersion)
	cuts := a.cuts
	if !a.mute && a.refuse[s.Namespace] == nil {
		a.mu.Unlock()
		on(cluster.Change{Kind: cluster.Opened, ResourceVersion: resourceVersion})
		a.mu.Lock()
	}
	for {
		switch {
		case a.refuse[s.Namespace] != nil:
			defer a.mu.Unlock()
			return a.refuse[s.Namespace]
		case from < a.compacted:
			defer a.mu.Unlock()
			return cluster.ErrExpired
		case a.cuts > cuts:
			defer a.mu.Unlock()
			if errors.Is(a.cut, errEnd) {
				return nil
			}
			return a.cut
		}
		changes := a.since(s, &from)
		next := a.next
		a.mu.Unlock()
		for _, c := range changes {
			on(c)
		}
		if len(changes) == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-next:
			}
		}
		a.mu.Lock()
	}
}

// since returns what a stream of the scope tells of the writes after from.
func (a *api) since(s cluster.Scope, from *int) []cluster.Change {
	if a.mute {
		return nil
	}
	var out []cluster.Change
	for _, w := range a.log {
		if w.rv <= *from {
			continue
		}
		*from = w.rv
		before, after := admits(s, w.old), admits(s, w.now)
		c := cluster.Change{Kind: cluster.Changed, ResourceVersion: strconv.Itoa(w.rv)}
		switch {
		case after:
			p := *w.now
			c.Pod = &p
		case before: // as it was, with the revision of the write
			p := *w.old
			p.ResourceVersion, c.Kind, c.Pod = c.ResourceVersion, cluster.Gone, &p
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

// set makes or changes a pod; a nil one goes.
func (a *api) set(uid string, p *podevent.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.pods[uid]
	if old == nil && p == nil {
		return
	}
	a.rv++
	delete(a.pods, uid)
	if p != nil {
		c := *p
		c.UID, c.ResourceVersion = uid, strconv.Itoa(a.rv)
		p = &c
		a.pods[uid] = p
	}
	a.log = append(a.log, write{a.rv, old, p})
	a.wake()
}

// change changes a pod that is there.
func (a *api) change(uid string, by func(*podevent.Pod)) {
	a.mu.Lock()
	old := a.pods[uid]
	a.mu.Unlock()
	if old == nil {
		return
	}
	p := *old
	by(&p)
	a.set(uid, &p)
}

func (a *api) wake() {
	close(a.next)
	a.next = make(chan struct{})
}

// end ends the open streams.
func (a *api) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = err
	a.cuts++
	a.wake()
}

// compact has every revision before now forgotten.
func (a *api) compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rv++
	a.compacted = a.rv
	a.log = nil
}

func (a *api) with(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	a.wake()
}

// told returns what was asked since the last call.
func (a *api) told() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := strings.Join(a.asked, "; ")
	a.asked = nil
	return out
}

// pod writes "NAMESPACE APP [ADDRESS]".
func pod(text string) *podevent.Pod {
	f := strings.Fields(text)
	p := &podevent.Pod{Namespace: f[0], Name: f[1] + "-x", Labels: map[string]string{"app": f[1]}, NodeName: "node-a", Phase: "Running", Ready: true,
		Ports: []podevent.Port{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}, {ContainerPort: 9090, Protocol: "TCP"}}}
	p.PodIPs = f[2:]
	return p
}

func parse(t testing.TB, detail string) *eventpattern.Pattern {
	t.Helper()
	p, err := eventpattern.Parse([]byte(`{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":` + detail + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bindings has one for each detail of a pattern. "web" is short for the label
// app, "ns/web" for that in a namespace.
func bindings(t testing.TB, details ...string) []binding.Binding {
	t.Helper()
	var out []binding.Binding
	for i, d := range details {
		if ns, app, ok := strings.Cut(d, "/"); ok && d[0] != '{' {
			d = fmt.Sprintf(`{"namespace":[%q],"labels":{"app":[%q]}}`, ns, app)
		} else if d[0] != '{' {
			d = fmt.Sprintf(`{"labels":{"app":[%q]}}`, d)
		}
		out = append(out, binding.Binding{Rule: fmt.Sprint("rule-", i), Pattern: parse(t, d)})
	}
	return out
}

// scene is a picture that is kept, in a bubble of its own time.
type scene struct {
	t *testing.T
	*api
	*picture.Picture
	stop func()
}

func newPicture(a *api) *picture.Picture {
	return picture.New(picture.Config{Cluster: "prod", Source: a, Now: time.Now, Log: slog.New(slog.DiscardHandler), Account: "123456789012", Region: "eu-west-1"})
}

func bubble(t *testing.T, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := &scene{t: t, api: a, Picture: newPicture(a)}
		s.run()
		f(s)
		s.stop()
	})
}

// run keeps the picture until stop.
func (s *scene) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.stop = func() {
		s.stop = func() {}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.t.Errorf("Run ended with %v", err)
		}
	}
}

// pass lets all be done that can be, and time pass.
func (s *scene) pass(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

// want compares the pods that the bindings select, as "UID:0,1 …".
func (s *scene) want(bs []binding.Binding, want string) {
	s.t.Helper()
	synctest.Wait()
	if got := selected(s.Picture, bs); got != want {
		s.t.Errorf("selected %q, want %q", got, want)
	}
}

func selected(p *picture.Picture, bs []binding.Binding) string {
	pods, of := p.Selected(bs)
	var out []string
	for i, pod := range pods {
		out = append(out, pod.UID+":"+strings.Trim(strings.ReplaceAll(fmt.Sprint(of[i]), " ", ","), "[]"))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// wantPast compares what is known of an address, as "UID Kind[!]": ! has ended.
func (s *scene) wantPast(address, want string) {
	s.t.Helper()
	synctest.Wait()
	var out []string
	for _, p := range s.Past(address) {
		text := p.Pod.UID + " " + string(p.Kind)
		if p.Ended {
			text += "!"
		}
		out = append(out, text)
	}
	if got := strings.Join(out, ", "); got != want {
		s.t.Errorf("the past of %s is %q, want %q", address, got, want)
	}
}

func (s *scene) wantComplete(want bool) {
	s.t.Helper()
	synctest.Wait()
	if st := s.State(); st.Complete != want {
		s.t.Errorf("complete: %v (%v), want %v", st.Complete, st.Err, want)
	}
}
