package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node"
)

// webPod is a pod with a readiness probe; ANNOTATIONS and SPEC are filled in.
func webPod(name, annotations, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: NS, labels: {app: web}, annotations: {%s}}
spec:
  %s
  containers:
  - name: web
    image: example.com/web:1
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 1}
`, name, annotations, spec)
}

func TestPodComesAndGoesAsOnAKubelet(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	seen := s.history(t, ns)
	s.apply(t, ns, webPod("web", "", ""))
	p := s.awaitPod(t, ns, "web", "ready", ready)

	a := who(t, "http://"+p.Status.PodIP+":8080/some/path?delay=1ms")
	if a.Pod != "web" || a.UID != string(p.UID) || a.Address != p.Status.PodIP || a.Path != "/some/path" {
		t.Errorf("the pod says it is %+v", a)
	}
	if len(p.Status.PodIPs) != 2 || who(t, "http://["+p.Status.PodIPs[1].IP+"]:8080/").Pod != "web" {
		t.Errorf("second family: %v", p.Status.PodIPs)
	}

	s.rest(t, http.MethodDelete, podPath(ns, "web"), "")
	s.awaitGone(t, ns, "web")
	await(t, "the deletion is seen", func() error {
		if all := seen("web"); all[len(all)-1] != "deleted" {
			return fmt.Errorf("%q", all)
		}
		return nil
	})
	want := []string{
		"Pending Initialized PodScheduled web=ContainerCreating",
		"Pending ip PodReadyToStartContainers Initialized PodScheduled web=ContainerCreating",
		"Running ip PodReadyToStartContainers Initialized PodScheduled web=running",
		"Running ip PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled web=running",
		"terminating Running ip PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled web=running",
		"terminating Running ip PodReadyToStartContainers Initialized PodScheduled web=ended(0)",
		"terminating Succeeded ip Initialized PodScheduled web=ended(0)",
		"deleted",
	}
	got := slices.DeleteFunc(seen("web"), func(line string) bool {
		return line == "Pending" || line == "Pending PodScheduled" // not yet the node's
	})
	if !slices.Equal(got, want) {
		t.Errorf("seen\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, _, err := get(t.Context(), "http://"+p.Status.PodIP+":8080/"); err == nil {
		t.Error("the address still answers")
	}
}

func TestPodEndsGracefully(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	tests := map[string]struct {
		annotations, spec string
		want              int32 // exit code
		inFlight          string
		wantAnswer        bool
	}{
		"request in flight is answered": {inFlight: "?delay=1500ms", want: 0, wantAnswer: true, spec: "terminationGracePeriodSeconds: 20"},
		"killed at the end of its time": {inFlight: "?delay=30s", want: 137, spec: "terminationGracePeriodSeconds: 2"},
		"SIGTERM is ignored":            {annotations: `elbridge.local/ignore-sigterm: "true"`, want: 137, spec: "terminationGracePeriodSeconds: 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
			s.apply(t, ns, webPod(pod, tt.annotations, "finalizers: []\n  "+tt.spec))
			p := s.awaitPod(t, ns, pod, "ready", ready)
			s.rest(t, http.MethodPatch, podPath(ns, pod), "")
			_ = p
		})
	}
}

var (
	_ = time.Second
	_ v1.Pod
	_ node.Answer
)
