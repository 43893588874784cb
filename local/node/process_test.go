package node_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node"
)

func TestProcessPods(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, `
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: NS}
stringData: {tls.crt: first}
---
apiVersion: v1
kind: Pod
metadata: {name: helper, namespace: NS, labels: {app: helper}}
spec:
  nodeName: node-a
  containers:
  - name: helper
    image: elbridge.local/helper:dev
    command: [/helper]
    args: ["$(POD_IP):8080", --cert=/tls/tls.crt, "--not=/tlsx", "$$(POD_IP)"]
    env:
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {name: CERT, value: /tls/tls.crt}
    - {name: FROM_SECRET, valueFrom: {secretKeyRef: {name: tls, key: tls.crt}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    resources: {limits: {memory: 64Mi}}
    ports: [{containerPort: 8080}]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: tls, mountPath: /tls}]
  volumes: [{name: tls, secret: {secretName: tls}}]
`)
	p := s.awaitPod(t, ns, "helper", "ready", ready)
	base := "http://" + p.Status.PodIP + ":8080"
	env := environment(t, base)
	loopback := "127.64" + strings.TrimPrefix(p.Status.PodIP, "10.64")
	for name, want := range map[string]string{
		"NAME": "helper", "APP": "helper", "FROM_SECRET": "first", "MEMORY": "64",
		"POD_IP": p.Status.PodIP, "ELBRIDGE_LOCAL_PUBLISHED": p.Status.PodIP, "ELBRIDGE_LOCAL_LISTEN": loopback, "LISTEN_HOST": loopback,
	} {
		if env[name] != want {
			t.Errorf("%s=%q, want %q", name, env[name], want)
		}
	}
	if env["KUBERNETES_SERVICE_HOST"] != "127.0.0.1" || env["KUBERNETES_SERVICE_PORT"] == "" {
		t.Errorf("API server is %s:%s", env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"])
	}
	var args []string
	if err := json.Unmarshal([]byte(mustGet(t, base+"/args")), &args); err != nil {
		t.Fatal(err)
	}
	if want := []string{loopback + ":8080", "--cert=" + env["CERT"], "--not=/tlsx", "$(POD_IP)"}; !slices.Equal(args, want) {
		t.Errorf("arguments %q, want %q", args, want)
	}

	t.Run("secrets are refreshed", func(t *testing.T) {
		s.merge(t, "/api/v1/namespaces/"+ns+"/secrets/tls", fmt.Sprintf(`{"data":{"tls.crt":"%s"}}`, base64.StdEncoding.EncodeToString([]byte("second"))))
		await(t, "the file has the new content", func() error {
			if got := mustGet(t, base+"/file?path="+url.QueryEscape(env["CERT"])); got != "second" {
				return fmt.Errorf("it has %q", got)
			}
			return nil
		})
	})
	t.Run("the token is the service account's", func(t *testing.T) {
		var mounts map[string]string
		if err := json.Unmarshal([]byte(env["ELBRIDGE_LOCAL_MOUNTS"]), &mounts); err != nil {
			t.Fatal(err)
		}
		dir := mounts["/var/run/secrets/kubernetes.io/serviceaccount"]
		token := mustGet(t, base+"/file?path="+url.QueryEscape(dir+"/token"))
		var review struct {
			Status struct {
				Authenticated bool
				User          struct {
					Username string
					Extra    map[string][]string
				}
			} `json:"status"`
		}
		question := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": token}}
		if err := s.kube.Post(t.Context(), "/apis/authentication.k8s.io/v1/tokenreviews", question, &review); err != nil {
			t.Fatal(err)
		}
		user := review.Status.User
		if user.Username != "system:serviceaccount:"+ns+":default" || !slices.Equal(user.Extra["authentication.kubernetes.io/pod-name"], []string{"helper"}) {
			t.Errorf("the token is %+v", review.Status)
		}
		if ca := mustGet(t, base+"/file?path="+url.QueryEscape(dir+"/ca.crt")); !strings.Contains(ca, "BEGIN CERTIFICATE") {
			t.Errorf("ca.crt is %q", ca)
		}
	})
	t.Run("a killed process is started again", func(t *testing.T) {
		if err := syscall.Kill(s.process(t, ns, "helper").PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p := s.awaitPod(t, ns, "helper", "restarted", func(p *v1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 && ready(p) })
		if end := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.ExitCode != 137 {
			t.Errorf("last state %+v", p.Status.ContainerStatuses[0].LastTerminationState)
		}
	})
	t.Run("SIGTERM ends it", func(t *testing.T) {
		info := s.process(t, ns, "helper")
		s.rest(t, http.MethodDelete, podPath(ns, "helper"), "")
		s.awaitGone(t, ns, "helper")
		if err := syscall.Kill(info.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v", info.PID, err)
		}
		if log, err := os.ReadFile(info.Log); err != nil || !strings.Contains(string(log), "helper was asked to end") {
			t.Errorf("its log is %q, %v", log, err)
		}
	})
}

func TestPodWaitsForItsSecret(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: NS}
spec:
  containers: [{name: web, image: web, volumeMounts: [{name: late, mountPath: /late}]}]
  volumes: [{name: late, secret: {secretName: late}}]
`)
	p := s.awaitPod(t, ns, "web", "seen by its node", func(p *v1.Pod) bool { return p.Status.StartTime != nil })
	if p.Status.PodIP != "" {
		t.Errorf("status is %s", brief(p))
	}
	s.apply(t, ns, "{apiVersion: v1, kind: Secret, metadata: {name: late, namespace: NS}}")
	s.awaitPod(t, ns, "web", "ready", ready)
}

func (s *stack) process(t *testing.T, namespace, name string) node.ContainerInfo {
	t.Helper()
	pods, err := s.control.Pods(t.Context())
	i := slices.IndexFunc(pods, func(p node.PodInfo) bool { return p.Namespace == namespace && p.Name == name })
	if err != nil || i < 0 || pods[i].Containers[0].PID == 0 {
		t.Fatalf("no process for %s/%s: %v %v", namespace, name, pods, err)
	}
	return pods[i].Containers[0]
}

func environment(t *testing.T, base string) map[string]string {
	t.Helper()
	var list []string
	if err := json.Unmarshal([]byte(mustGet(t, base+"/env")), &list); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, e := range list {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return env
}
