package node_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/cluster"
	"github.com/elbridge/elbridge/local/node"
)

// A second agent has a node of its own; when it stops, nothing of it is left.
func TestStopLeavesNothingBehind(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	as, err := s.cluster.RESTConfig(cluster.Node("node-x"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	control, ended := make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		ended <- node.Run(ctx, node.Config{
			REST: as, StateDir: t.TempDir(),
			Nodes: []node.Spec{{
				Name: "node-x", Zone: "eu-west-1a", ProviderID: "aws:///eu-west-1a/i-00000000000000001",
				Address: netip.MustParseAddr("10.64.110.1"), PodRange: netip.MustParsePrefix("10.64.111.0/24"),
			}},
			Images:  map[string]node.Image{"elbridge.local/helper": {Path: self, Env: map[string]string{helperVariable: "1", "DEAF": "1"}}},
			Started: func(address string) { control <- address },
		})
	}()
	var client *node.Client
	select {
	case address := <-control:
		client = node.NewClient(address)
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("the second agent does not start")
	}
	t.Cleanup(func() { s.rest(t, http.MethodDelete, "/api/v1/nodes/node-x", "") })

	s.apply(t, ns, webPod("web", `elbridge.local/ignore-sigterm: "true"`, "nodeName: node-x")+`
---
apiVersion: v1
kind: Pod
metadata: {name: process, namespace: NS}
spec:
  nodeName: node-x
  containers: [{name: helper, image: elbridge.local/helper, args: ["$(LISTEN_HOST):8080"], ports: [{containerPort: 8080}], readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}}]
`)
	web := s.awaitPod(t, ns, "web", "ready", ready)
	s.awaitPod(t, ns, "process", "ready", ready)
	pods, err := client.Pods(t.Context())
	if err != nil || len(pods) != 2 || pods[0].Name != "process" || pods[0].Containers[0].PID == 0 {
		t.Fatalf("pods are %+v, %v", pods, err)
	}

	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the agent does not stop")
	}
	if err := syscall.Kill(pods[0].Containers[0].PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is left: %v", err)
	}
	if _, _, err := get(t.Context(), "http://"+web.Status.PodIP+":8080/"); err == nil {
		t.Error("the pod still answers")
	}
	if now, err := s.pod(ns, "web"); err != nil || !ready(now) {
		t.Errorf("a machine without power has written %v %v", now.Status, err)
	}
}

func TestLivenessAndStartupProbes(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: NS, annotations: {elbridge.local/ready-after: 1s}}
spec:
  containers:
  - name: web
    image: web
    ports: [{containerPort: 8080}]
    startupProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1, failureThreshold: 30}
    livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, failureThreshold: 1}
`)
	p := s.awaitPod(t, ns, "web", "running", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
	if *p.Status.ContainerStatuses[0].Started || ready(p) {
		t.Errorf("it has started before its probe passed: %s", brief(p))
	}
	s.awaitPod(t, ns, "web", "ready", ready)
	if err := s.control.SetHealth(t.Context(), ns, "web", http.StatusInternalServerError); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, ns, "web", "restarted", func(p *v1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount > 0 })
	if err := s.control.SetHealth(t.Context(), ns, "web", 0); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, ns, "web", "ready again", ready)
}
