package admission_test

import (
	"fmt"
	"net/http"
	"testing"
)

func TestDeletes(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "deletes")
	for _, name := range []string{"graceful", "forced", "dry"} {
		a.apply(t, pod(ns, name, ""))
	}
	a.apply(t, pod(ns, "held", ", finalizers: [example.com/hold]"))
	r := a.register(t)
	graceful, forced, dry, held := a.pod(ns, "graceful"), a.pod(ns, "forced"), a.pod(ns, "dry"), a.pod(ns, "held")
	tell(t, r, ns, []step{
		{what: "graceful", act: graceful.delete(""), want: "DELETE pods grace 30"},
		{what: "once more, as long", act: graceful.delete("")},
		{what: "longer", act: graceful.delete(`{"gracePeriodSeconds":60}`)},
		{what: "shorter", act: graceful.delete(`{"gracePeriodSeconds":5}`), want: "DELETE pods grace 5"},
		{what: "the kubelet's last word", act: graceful.delete(`{"gracePeriodSeconds":0}`), want: "DELETE pods grace 0"},
		{what: "gone", act: graceful.delete(""), code: 404},
		{what: "by force", act: forced.delete(`{"gracePeriodSeconds":0}`), want: "DELETE pods grace 0"},
		{what: "a dry run", act: dry.delete("", "dryRun", "All"), want: "DELETE pods grace 30 dry-run"},
		{what: "a dry run by force", act: dry.delete(`{"gracePeriodSeconds":0,"dryRun":["All"]}`), want: "DELETE pods grace 0 dry-run"},
		{what: "of another pod that had the name", act: dry.delete(`{"preconditions":{"uid":"other"}}`), code: 409},
		{what: "with a finalizer", act: held.delete(""), want: "DELETE pods grace 30"},
		{what: "with a finalizer, by force", act: held.delete(`{"gracePeriodSeconds":0}`), want: "DELETE pods grace 0"},
		{what: "the finalizer goes, and the pod", act: held.metadata(`{"finalizers":null}`), want: podUpdate},
		{what: "gone", act: held.delete(""), code: 404},
	})
}

// One request, one review for each pod: only its old object says which.
func TestDeleteCollection(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "collection")
	for i := range 5 {
		a.apply(t, pod(ns, fmt.Sprintf("web-%d", i), ", labels: {app: web}"))
	}
	a.apply(t, pod(ns, "other", ", labels: {app: other}"))
	r := a.register(t)
	if err := a.delete(t.Context(), "/api/v1/namespaces/"+ns+"/pods", "", "labelSelector", "app=web"); err != nil {
		t.Fatal(err)
	}
	if got, want := r.pods(ns, "DELETE pods grace unset"), "web-0 web-1 web-2 web-3 web-4"; got != want {
		t.Errorf("asked about %q, want %q", got, want)
	}
}

// The namespace controller deletes the pods as a collection.
func TestNamespaceThatGoes(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "goes")
	a.apply(t, pod(ns, "p", "")+pod(ns, "q", ""))
	r := a.register(t)
	if err := a.delete(t.Context(), "/api/v1/namespaces/"+ns, ""); err != nil {
		t.Fatal(err)
	}
	await(t, "deletes of both pods", func() bool { return r.pods(ns, "DELETE pods grace unset") == "p q" })
	for _, name := range []string{"p", "q"} { // or the controller tries again and again
		if err := a.pod(ns, name).delete(`{"gracePeriodSeconds":0}`)(t.Context()); err != nil {
			t.Error(err)
		}
	}
	await(t, "end of the namespace", func() bool {
		return code(a.admin.REST().Get().AbsPath("/api/v1/namespaces/"+ns).Do(t.Context()).Error()) == http.StatusNotFound
	})
}

// All that is seen of an eviction is that it was asked for: whether it took
// effect shows later, or never (P077).
func TestEvictions(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "evictions")
	for _, name := range []string{"kept", "goes", "now", "dry"} {
		a.apply(t, pod(ns, name, ", labels: {name: "+name+"}"))
	}
	a.apply(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: kept, namespace: "+ns+"}, spec: {minAvailable: 1, selector: {matchLabels: {name: kept}}}}")
	kept, goes, now, dry := a.pod(ns, "kept"), a.pod(ns, "goes"), a.pod(ns, "now"), a.pod(ns, "dry")
	const running = `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`
	for _, p := range []teller{kept, goes, now, dry} {
		if err := p.status(running)(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the budget counts its pod", func() bool {
		var b struct {
			Status struct{ CurrentHealthy, DisruptionsAllowed, ObservedGeneration int }
		}
		err := a.admin.Get(t.Context(), "/apis/policy/v1/namespaces/"+ns+"/poddisruptionbudgets/kept", &b)
		return err == nil && b.Status.ObservedGeneration == 1 && b.Status.CurrentHealthy == 1 && b.Status.DisruptionsAllowed == 0
	})
	r := a.register(t)
	const eviction = "CREATE pods/eviction"
	tell(t, r, ns, []step{
		{what: "refused by a budget", act: kept.evict(`{}`), want: eviction, code: 429},
		{what: "granted", act: goes.evict(`{}`), want: eviction},
		{what: "then the kubelet has seen it", act: goes.status(`{"observedGeneration":9}`), want: statusUpdate},
		{what: "then its last word", act: goes.delete(`{"gracePeriodSeconds":0}`), want: "DELETE pods grace 0"},
		{what: "with grace 0", act: now.evict(`{"gracePeriodSeconds":0}`), want: eviction},
		{what: "gone, and no DELETE was seen", act: now.delete(""), code: 404},
		{what: "a dry run that only the Eviction tells of", act: dry.evict(`{"dryRun":["All"]}`), want: eviction},
		{what: "of a pod that is not there", act: a.pod(ns, "none").evict(`{}`), want: eviction, code: 404},
	})
	var p struct {
		Metadata struct{ DeletionTimestamp string }
	}
	if err := a.admin.Get(t.Context(), dry.path, &p); err != nil || p.Metadata.DeletionTimestamp != "" {
		t.Errorf("after a dry run: %+v, %v", p, err)
	}
}
