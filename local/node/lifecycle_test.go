package node_test

import (
	"context"
	"errors"
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

// answerLater sends a request that takes its time; the channel gets its result.
func answerLater(t *testing.T, url string) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		status, _, err := get(context.Background(), url)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		result <- err
	}()
	return result
}

func TestPodEndsGracefully(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	tests := map[string]struct {
		annotations string
		spec        string // terminationGracePeriodSeconds, hooks
		inFlight    string // query of a request under way when the pod is deleted
		answered    bool   // that request is
		atLeast     time.Duration
		code        int32
	}{
		"request-in-flight-is-answered": {
			spec: "terminationGracePeriodSeconds: 30", inFlight: "?delay=1500ms", answered: true, atLeast: time.Second,
		},
		"killed-when-its-time-is-up": {
			spec: "terminationGracePeriodSeconds: 2", inFlight: "?delay=60s", code: 137, atLeast: 2 * time.Second,
		},
		"ignored-sigterm": {
			annotations: `elbridge.local/ignore-sigterm: "true"`, spec: "terminationGracePeriodSeconds: 2", code: 137, atLeast: 2 * time.Second,
		},
		"term-delay": {annotations: "elbridge.local/term-delay: 1s", spec: "terminationGracePeriodSeconds: 30", atLeast: time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s.apply(t, ns, webPod(name, tt.annotations, tt.spec))
			p := s.awaitPod(t, ns, name, "ready", ready)
			// A finalizer keeps the last status to look at.
			s.merge(t, podPath(ns, name), `{"metadata":{"finalizers":["elbridge.local/look"]}}`)
			var inFlight <-chan error
			if tt.inFlight != "" {
				inFlight = answerLater(t, "http://"+p.Status.PodIP+":8080/"+tt.inFlight)
				awaitConnected(t, "127.64"+strings.TrimPrefix(p.Status.PodIP, "10.64")+":8080")
			}
			began := time.Now()
			s.rest(t, http.MethodDelete, podPath(ns, name), "")
			p = s.awaitPod(t, ns, name, "finished", finished)
			if took := time.Since(began); took < tt.atLeast {
				t.Errorf("it ended after %s, want at least %s", took, tt.atLeast)
			}
			if inFlight != nil {
				if err := <-inFlight; (err == nil) != tt.answered {
					t.Errorf("request in flight: %v", err)
				}
			}
			if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != tt.code {
				t.Errorf("status is %s, want exit code %d", brief(p), tt.code)
			}
			s.merge(t, podPath(ns, name), `{"metadata":{"finalizers":null}}`)
			s.awaitGone(t, ns, name)
		})
	}
}

func TestPreStopSleepServesOn(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, strings.Replace(webPod("web", "", ""), "    ports:", "    lifecycle: {preStop: {exec: {command: [sh, -c, sleep 3]}}}\n    ports:", 1))
	p := s.awaitPod(t, ns, "web", "ready", ready)
	s.rest(t, http.MethodDelete, podPath(ns, "web"), "")
	s.awaitPod(t, ns, "web", "terminating", func(p *v1.Pod) bool { return p.DeletionTimestamp != nil })
	if a := who(t, "http://"+p.Status.PodIP+":8080/"); a.Terminating {
		t.Error("it has been asked to end before its hook was over")
	}
	s.awaitGone(t, ns, "web")
}

func TestForceDeleteEndsThePodToo(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, webPod("web", `elbridge.local/ignore-sigterm: "true"`, ""))
	p := s.awaitPod(t, ns, "web", "ready", ready)
	s.rest(t, http.MethodDelete, podPath(ns, "web"), `{"gracePeriodSeconds":0}`)
	await(t, "nothing answers any more", func() error {
		if _, _, err := get(t.Context(), "http://"+p.Status.PodIP+":8080/"); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	await(t, "the node has forgotten it", func() error {
		pods, err := s.control.Pods(t.Context())
		if slices.ContainsFunc(pods, func(i node.PodInfo) bool { return i.UID == string(p.UID) }) {
			return fmt.Errorf("it knows %v", pods)
		}
		return err
	})
}

func TestFinishedPodsStayUntilTheyAreDeleted(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	for code, phase := range map[string]v1.PodPhase{"0": v1.PodSucceeded, "3": v1.PodFailed} {
		name := "exit-" + code
		s.apply(t, ns, webPod(name, fmt.Sprintf(`elbridge.local/exit-after: 1s, elbridge.local/exit-code: "%s"`, code), "restartPolicy: Never"))
		p := s.awaitPod(t, ns, name, "finished", finished)
		if p.Status.Phase != phase || p.Status.PodIP == "" {
			t.Errorf("P046 exit code %s: %s", code, brief(p))
		}
		s.rest(t, http.MethodDelete, podPath(ns, name), "")
		s.awaitGone(t, ns, name)
	}
}

func TestInitContainersAndSidecars(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	seen := s.history(t, ns)
	s.apply(t, ns, webPod("web", "", `initContainers:
  - {name: first, image: tool, command: [sleep, "0.3"]}
  - {name: side, image: proxy, restartPolicy: Always, ports: [{containerPort: 9090}]}`))
	p := s.awaitPod(t, ns, "web", "ready", ready)
	if who(t, "http://"+p.Status.PodIP+":9090/").Container != "side" {
		t.Error("the sidecar does not answer")
	}
	if all := strings.Join(seen("web"), "\n"); !strings.Contains(all, "web=PodInitializing") {
		t.Errorf("the main container did not wait:\n%s", all)
	}
	s.rest(t, http.MethodDelete, podPath(ns, "web"), "")
	s.awaitGone(t, ns, "web")
}

func finished(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}
