package admission_test

import (
	"context"
	"testing"

	certutil "k8s.io/client-go/util/cert"

	"github.com/elbridge/elbridge/pkg/webhook/configuration"
)

// The webhook is never asked about pods of its own namespace: it would wait for
// itself.
func TestOwnNamespaceIsLeftOut(t *testing.T) {
	a := start(t)
	a.apply(t, pod(own, "p", ""))
	r := a.register(t)
	p := a.pod(own, "p")
	tell(t, r, own, []step{
		{what: "a label", act: p.metadata(`{"labels":{"app":"web"}}`)},
		{what: "Ready", act: p.status(`{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`)},
		{what: "an eviction", act: p.evict(`{}`)},
		{what: "its end", act: p.delete(`{"gracePeriodSeconds":0}`)},
	})
}

// The selector goes by a label that nobody can take away.
func TestNamespaceWithoutLabels(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "unlabelled")
	a.apply(t, pod(ns, "p", ""))
	r := a.register(t)
	for _, namespace := range []string{ns, own} {
		if err := a.patch(t.Context(), "/api/v1/namespaces/"+namespace, `{"metadata":{"labels":null}}`); err != nil {
			t.Fatal(err)
		}
	}
	tell(t, r, ns, []step{
		{what: "a label", act: a.pod(ns, "p").metadata(`{"labels":{"app":"web"}}`), want: podUpdate},
	})
	a.apply(t, pod(own, "q", ""))
	tell(t, r, own, []step{
		{what: "still left out", act: a.pod(own, "q").metadata(`{"labels":{"app":"web"}}`)},
	})
}

// acts are one of each kind that the webhook is asked about.
func acts(a *api, ns string) []step {
	p, q := a.pod(ns, "p"), a.pod(ns, "q")
	return []step{
		{what: "an address", act: p.status(`{"podIP":"10.64.9.1","podIPs":[{"ip":"10.64.9.1"}]}`), want: statusUpdate},
		{what: "a label", act: p.metadata(`{"labels":{"app":"web"}}`), want: podUpdate},
		{what: "an eviction", act: q.evict(`{}`), want: "CREATE pods/eviction"},
		{what: "a delete", act: p.delete(""), want: "DELETE pods grace 30"},
	}
}

// Whatever is wrong with the webhook, every request passes, and the API server
// counts what it let through unasked.
func TestBrokenWebhook_I11_RefusesNothing(t *testing.T) {
	a := start(t)
	tests := map[string]struct {
		options func(t *testing.T, r *recorder) configuration.Options
		reached bool // the webhook hears of it before it fails
	}{
		"P071 gone": {options: func(_ *testing.T, r *recorder) configuration.Options {
			o := optionsFor(r)
			r.Close()
			return o
		}},
		"P080 does not answer": {reached: true, options: func(t *testing.T, r *recorder) configuration.Options {
			r.hang = make(chan struct{})
			t.Cleanup(func() { close(r.hang) })
			return optionsFor(r)
		}},
		"P076 another CA": {options: func(t *testing.T, r *recorder) configuration.Options {
			o := optionsFor(r)
			o.CABundle = anotherCA(t)
			return o
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := a.namespace(t, "broken")
			a.apply(t, pod(namespace, "p", "")+pod(namespace, "q", ""))
			r := newRecorder(t)
			a.configure(t, generated(t, tt.options(t, r)), func() int { return a.counter(t, failOpen) })
			before := a.counter(t, failOpen)
			steps := acts(a, namespace)
			if !tt.reached {
				for i := range steps {
					steps[i].want = ""
				}
			}
			tell(t, r, namespace, steps)
			// A delete may ask more than once: admission sits inside the store's retries.
			if n := a.counter(t, failOpen) - before; n < len(steps) {
				t.Errorf("%s counts %d, want %d at least", failOpen, n, len(steps))
			}
			for _, w := range r.timeouts() {
				if w != "1s" {
					t.Errorf("P070: the API server waits %s, want 1s", w)
				}
			}
			// Creation is not even asked about, so nothing can delay it.
			before, heard := a.counter(t, failOpen), r.count()
			if err := a.admin.Apply(context.Background(), []byte(pod(namespace, "new", ", labels: {app: web}"))); err != nil {
				t.Errorf("a new pod: %v", err)
			}
			if n := a.counter(t, failOpen) - before; n != 0 || r.count() != heard {
				t.Errorf("a new pod: let through unasked %d times, asked about %d times; want neither", n, r.count()-heard)
			}
		})
	}
}

// anotherCA vouches for nobody here.
func anotherCA(t *testing.T) []byte {
	t.Helper()
	cert, _, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
