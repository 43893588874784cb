package admission_test

import (
	"context"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/elbridge/elbridge/pkg/webhook/configuration"
)

const (
	statusUpdate = "UPDATE pods/status"
	podUpdate    = "UPDATE pods"
)

// A pod has neither status nor labels nor conditions at first, and every field
// may go again: no expression may err on that, for it would lose the event.
func TestBarePods(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "bare")
	a.apply(t, pod(ns, "p", ""))
	r := a.register(t, "example.com/*")
	p := a.pod(ns, "p")
	tell(t, r, ns, []step{
		{what: "a message", act: p.status(`{"message":"x"}`)},
		{what: "the node's address", act: p.status(`{"hostIP":"10.64.0.11","hostIPs":[{"ip":"10.64.0.11"}]}`)},
		{what: "a condition that no claim looks at", act: p.status(`{"conditions":[{"type":"Initialized","status":"True"}]}`)},
		{what: "ContainersReady", act: p.status(`{"conditions":[{"type":"ContainersReady","status":"True"}]}`), want: statusUpdate},
		{what: "its heartbeat", act: p.status(`{"conditions":[{"type":"ContainersReady","status":"True","lastProbeTime":"2026-11-30T10:00:00Z"}]}`)},
		{what: "Ready", act: p.status(`{"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}]}`), want: statusUpdate},
		{what: "conditions go", act: p.status(`{"conditions":null}`), want: statusUpdate},
		{what: "not Ready, as before", act: p.status(`{"conditions":[{"type":"Ready","status":"False"}]}`)},
		{what: "the first label", act: p.metadata(`{"labels":{"app":"web"}}`), want: podUpdate},
		{what: "labels go", act: p.metadata(`{"labels":null}`), want: podUpdate},
		{what: "the first annotation, allowed by a prefix", act: p.metadata(`{"annotations":{"example.com/a":"1"}}`), want: podUpdate},
		{what: "annotations go", act: p.metadata(`{"annotations":null}`), want: podUpdate},
		{what: "status goes, and the phase with it", act: p.status(`null`), want: statusUpdate},
	})
}

func TestConditions(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "conditions")
	a.apply(t, pod(ns, "p", ", labels: {app: web}, finalizers: [example.com/hold]"))
	r := a.register(t, "a.b/c", `q"x`)
	p := a.pod(ns, "p")
	tell(t, r, ns, []step{
		{what: "an address", act: p.status(`{"podIP":"10.64.9.1","podIPs":[{"ip":"10.64.9.1"}]}`), want: statusUpdate},
		{what: "one of the other family", act: p.status(`{"podIPs":[{"ip":"10.64.9.1"},{"ip":"fd00::9"}]}`), want: statusUpdate},
		{what: "phase", act: p.status(`{"phase":"Running"}`), want: statusUpdate},
		{what: "Ready", act: p.status(`{"conditions":[{"type":"Ready","status":"True"}]}`), want: statusUpdate},
		{what: "the same again", act: p.status(`{"conditions":[{"type":"Ready","status":"True"}]}`)},
		{what: "heartbeat: times and reasons", act: p.status(`{"conditions":[{"type":"Ready","status":"True","lastProbeTime":"2026-11-30T10:00:00Z","reason":"R","message":"m"}]}`)},
		{what: "a container starts again", act: p.status(`{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,"restartCount":3,"state":{"running":{}}}]}`)},
		{what: "a readiness gate", act: p.status(`{"conditions":[{"type":"Ready","status":"True"},{"type":"example.com/gate","status":"True"}]}`)},
		{what: "Ready unknown: the node is lost", act: p.status(`{"conditions":[{"type":"Ready","status":"Unknown"}]}`), want: statusUpdate},
		{what: "not Ready, after unknown", act: p.status(`{"conditions":[{"type":"Ready","status":"False"}]}`)},
		{what: "a label", act: p.metadata(`{"labels":{"app":"api"}}`), want: podUpdate},
		{what: "a label, written with the status", act: func(ctx context.Context) error {
			return a.patch(ctx, p.path+"/status", `{"metadata":{"labels":{"app":"web"}}}`)
		}, want: statusUpdate},
		{what: "an annotation that is not allowed", act: p.metadata(`{"annotations":{"o":"1"}}`)},
		{what: "one that is", act: p.metadata(`{"annotations":{"a.b/c":"1"}}`), want: podUpdate},
		{what: "the same value", act: p.metadata(`{"annotations":{"a.b/c":"1"}}`)},
		{what: "another value", act: p.metadata(`{"annotations":{"a.b/c":"2"}}`), want: podUpdate},
		{what: "it goes", act: p.metadata(`{"annotations":{"a.b/c":null}}`), want: podUpdate},
		{what: "a dry run", act: func(ctx context.Context) error {
			return a.admin.REST().Patch("application/merge-patch+json").AbsPath(p.path).Param("dryRun", "All").Body([]byte(`{"metadata":{"labels":{"app":"dry"}}}`)).Do(ctx).Error()
		}, want: podUpdate + " dry-run"},
		{what: "deletionTimestamp, by a delete", act: p.delete(""), want: "DELETE pods grace 30"},
		{what: "terminating: noise", act: p.status(`{"message":"z"}`)},
		{what: "terminating: the kubelet has seen it", act: p.status(`{"observedGeneration":9}`), want: statusUpdate},
		{what: "terminating: any change of metadata", act: p.metadata(`{"annotations":{"o":"2"}}`), want: podUpdate},
		{what: "finished", act: p.status(`{"phase":"Succeeded"}`), want: statusUpdate},
	})
}

// The metric that the other tests rely on, and what it stands for: an event that
// nobody hears of.
func TestConditionThatErrsIsSkippedSilently(t *testing.T) {
	a := start(t)
	ns := a.namespace(t, "errs")
	a.apply(t, pod(ns, "p", ""))
	r := newRecorder(t)
	c, err := configuration.New(optionsFor(r))
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Webhooks {
		c.Webhooks[i].MatchConditions = []admissionregistration.MatchCondition{{Name: "careless", Expression: `object.metadata.labels["n"] != ""`}}
	}
	manifest, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	a.configure(t, string(manifest), r.count)
	errs := a.counter(t, conditionErrors)
	p := a.pod(ns, "p")
	tell(t, r, ns, []step{
		{what: "a label that the expression misses", act: p.metadata(`{"labels":{"other":"1"}}`)},
	})
	if n := a.counter(t, conditionErrors) - errs; n != 1 {
		t.Errorf("%d errors counted, want 1", n)
	}
}
