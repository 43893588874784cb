package admission_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elbridge/elbridge/local/cluster"
	"github.com/elbridge/elbridge/pkg/webhook/configuration"
)

const (
	patience = time.Minute // bounds each wait for a condition; a busy machine may need it
	own      = "own"       // the webhook's namespace
)

// api is a control plane that all tests of this package share. No node runs: the
// tests write what kubelets would.
type api struct {
	*cluster.Cluster
	admin      *cluster.Client
	namespaces int // made so far
	touches    int // changes of the canary, a pod that shows whether a configuration has its effect
}

var shared struct {
	once sync.Once
	api  *api
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.api != nil {
		shared.api.Stop(context.Background())
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: own}
---
apiVersion: v1
kind: Namespace
metadata: {name: canaries}
---
apiVersion: v1
kind: Node
metadata: {name: node-a}
---
apiVersion: v1
kind: Pod
metadata: {name: canary, namespace: canaries}
spec: {nodeName: node-a, containers: [{name: c, image: i}]}
`

func start(t testing.TB) *api {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	shared.once.Do(func() { shared.api, shared.err = startShared() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.api
}

func startShared() (_ *api, err error) {
	if shared.dir, err = os.MkdirTemp("", "elbridge-admission-"); err != nil { // it outlives a test
		return nil, err
	}
	c, err := cluster.Start(context.Background(), cluster.Config{
		Name: "admission", Dir: shared.dir, Progress: os.Stderr,
		// Nothing but the tests changes pods: no node is ever declared dead.
		Nodes: cluster.NodeMonitor{GracePeriod: time.Hour, StartupGrace: time.Hour},
	})
	if err != nil {
		return nil, err
	}
	a := &api{Cluster: c}
	if a.admin, err = c.Client(cluster.Admin); err == nil {
		err = a.admin.Apply(context.Background(), []byte(objects))
	}
	if err != nil {
		c.Stop(context.Background())
		return nil, err
	}
	return a, nil
}

// apply creates objects for a test.
func (a *api) apply(t testing.TB, manifests string) {
	t.Helper()
	if err := a.admin.Apply(t.Context(), []byte(manifests)); err != nil {
		t.Fatal(err)
	}
}

// namespace makes one of a name that begins so: a test may run several times.
func (a *api) namespace(t testing.TB, begin string) string {
	t.Helper()
	a.namespaces++
	name := fmt.Sprintf("%s-%d", begin, a.namespaces)
	a.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	return name
}

func (a *api) pod(namespace, name string) teller {
	return teller{a, "/api/v1/namespaces/" + namespace + "/pods/" + name}
}

// pod is a manifest; metadata may add to the flow mapping, such as ", labels: {app: web}".
func pod(namespace, name, metadata string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s%s}\nspec: {nodeName: node-a, containers: [{name: c, image: i}]}\n", name, namespace, metadata)
}

// patch patches, and waits until the API server's watch cache has the change: it
// tries the next write on the object that it has there, and asks admission about
// that one, before it finds that it is old.
func (a *api) patch(ctx context.Context, path, body string) error {
	if err := a.admin.Patch(ctx, path, types.MergePatchType, body); err != nil {
		return err
	}
	object := strings.TrimSuffix(path, "/status")
	var now struct{ Metadata metav1.ObjectMeta }
	if err := a.admin.Get(ctx, object, &now); apierrors.IsNotFound(err) {
		return nil // the change was the last one
	} else if err != nil {
		return err
	}
	return a.admin.REST().Get().AbsPath(object).Param("resourceVersion", now.Metadata.ResourceVersion).Do(ctx).Error()
}

// delete deletes with the given DeleteOptions, "" for none.
func (a *api) delete(ctx context.Context, path, options string, params ...string) error {
	r := a.admin.REST().Delete().AbsPath(path)
	for i := 0; i+1 < len(params); i += 2 {
		r = r.Param(params[i], params[i+1])
	}
	if options != "" {
		r = r.SetHeader("Content-Type", "application/json").Body([]byte(options))
	}
	return r.Do(ctx).Error()
}

// evict asks for an eviction with the given DeleteOptions.
func (a *api) evict(ctx context.Context, path, options string) error {
	parts := strings.Split(path, "/") // "", api, v1, namespaces, NS, pods, NAME
	body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":%q,"name":%q},"deleteOptions":%s}`, parts[4], parts[6], options)
	return a.admin.REST().Post().AbsPath(path+"/eviction").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
}

// counter sums the API server's counters of that name whose labels contain all
// of the given texts, such as `name="status.webhook.elbridge.internal"`.
func (a *api) counter(t testing.TB, name string, labels ...string) (sum int) {
	t.Helper()
	text, err := a.admin.REST().Get().AbsPath("/metrics").DoRaw(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
lines:
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.HasPrefix(series, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(series, l) {
				continue lines
			}
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric %q: %v", line, err)
		}
		sum += int(n)
	}
	return sum
}

// Metrics of the API server.
const (
	failOpen        = "apiserver_admission_webhook_fail_open_count"
	conditionErrors = "apiserver_admission_match_condition_evaluation_errors_total"
)

// register applies the generated configuration for a recorder of its own and
// returns when the API server asks it; the test's end takes it out again.
func (a *api) register(t testing.TB, annotations ...string) *recorder {
	t.Helper()
	r := newRecorder(t)
	o := optionsFor(r)
	o.Annotations = annotations
	a.configure(t, generated(t, o), r.count)
	errors := a.counter(t, conditionErrors)
	t.Cleanup(func() {
		if n := a.counter(t, conditionErrors) - errors; n != 0 {
			t.Errorf("%d match conditions erred, want none", n)
		}
	})
	return r
}

func optionsFor(r *recorder) configuration.Options {
	return configuration.Options{Namespace: own, URL: r.URL, CABundle: r.ca()}
}

// generated is the configuration that is deployed, for a webhook at a URL.
func generated(t testing.TB, o configuration.Options) string {
	t.Helper()
	manifest, err := configuration.YAML(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(manifest)
}

// configure applies a configuration and waits until changes of a pod take
// effect: seen counts effects. The test's end removes it and waits likewise.
func (a *api) configure(t testing.TB, manifest string, seen func() int) {
	t.Helper()
	a.apply(t, manifest)
	t.Cleanup(func() {
		if err := a.admin.Delete(context.Background(), []byte(manifest)); err != nil {
			t.Error(err)
		}
		await(t, "end of the configuration", func() bool { return !a.touched(t, seen) })
	})
	await(t, "effect of the configuration", func() bool { return a.touched(t, seen) })
}

// touched changes the canary's labels and tells whether that was seen.
func (a *api) touched(t testing.TB, seen func() int) bool {
	t.Helper()
	before := seen()
	a.touches++
	err := a.patch(context.Background(), "/api/v1/namespaces/canaries/pods/canary", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, a.touches))
	if err != nil {
		t.Fatal(err)
	}
	return seen() > before
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
