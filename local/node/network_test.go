package node_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node"
)

func TestAddressesCanBeChosenAndReused(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	const chosen = "10.64.200.7"
	choose := func(a node.Address) {
		t.Helper()
		a.Namespace, a.Address = ns, chosen
		if err := s.control.ChooseAddress(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	choose(node.Address{Name: "one"})
	s.apply(t, ns, webPod("one", "", ""))
	one := s.awaitPod(t, ns, "one", "ready", ready)
	if one.Status.PodIP != chosen || one.Status.PodIPs[1].IP != "fd00::c807" {
		t.Fatalf("addresses are %v", one.Status.PodIPs)
	}
	// P049: the next pod waits for the address, then has it while the first object still exists.
	s.merge(t, podPath(ns, "one"), `{"metadata":{"finalizers":["elbridge.local/look"]}}`)
	choose(node.Address{Selector: "app=web"})
	s.apply(t, ns, webPod("two", "", ""))
	s.rest(t, http.MethodDelete, podPath(ns, "one"), "")
	two := s.awaitPod(t, ns, "two", "ready", ready)
	if two.Status.PodIP != chosen || who(t, "http://"+chosen+":8080/").Pod != "two" {
		t.Errorf("address is %s", two.Status.PodIP)
	}
	if one, err := s.pod(ns, "one"); err != nil || one.Status.PodIP != chosen {
		t.Errorf("the first pod: %v %v", brief(one), err)
	}
	s.merge(t, podPath(ns, "one"), `{"metadata":{"finalizers":null}}`)
	s.awaitGone(t, ns, "one")

	for _, bad := range []node.Address{{Name: "x", Address: "10.64.0.11"}, {Name: "x", Address: "192.0.2.1"}, {Address: "10.64.9.9"}, {Name: "x", Address: "10.64.9.9", Selector: "=="}} {
		bad.Namespace = ns
		if err := s.control.ChooseAddress(t.Context(), bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestNewSandboxChangesTheAddress(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, webPod("web", "", ""))
	old := s.awaitPod(t, ns, "web", "ready", ready).Status.PodIP
	if err := s.control.NewSandbox(t.Context(), ns, "web"); err != nil {
		t.Fatal(err)
	}
	p := s.awaitPod(t, ns, "web", "at another address", func(p *v1.Pod) bool { return p.Status.PodIP != old && ready(p) })
	if len(p.Status.PodIPs) != 2 || p.Status.PodIPs[0].IP != p.Status.PodIP {
		t.Errorf("podIPs are %v", p.Status.PodIPs)
	}
	who(t, "http://"+p.Status.PodIP+":8080/")
}

func TestHostNetworkAndHostPorts(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: host, namespace: NS}
spec:
  nodeName: node-a
  hostNetwork: true
  containers: [{name: web, image: web, ports: [{containerPort: 18080, hostPort: 18080}], readinessProbe: {tcpSocket: {port: 18080}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Pod
metadata: {name: port, namespace: NS}
spec:
  nodeName: node-a
  containers: [{name: web, image: web, ports: [{containerPort: 8080, hostPort: 18081}]}]
`)
	host := s.awaitPod(t, ns, "host", "ready", ready)
	if host.Status.PodIP != "10.64.0.11" || host.Status.HostIP != host.Status.PodIP {
		t.Errorf("podIP %s, hostIP %s", host.Status.PodIP, host.Status.HostIP)
	}
	if who(t, "http://10.64.0.11:18080/").Pod != "host" {
		t.Error("the node's address is not the pod's")
	}
	s.awaitPod(t, ns, "port", "ready", ready)
	if who(t, "http://10.64.0.11:18081/").Pod != "port" {
		t.Error("the host port does not lead to the pod")
	}
	s.rest(t, http.MethodDelete, podPath(ns, "port"), "")
	s.awaitGone(t, ns, "port")
	if _, _, err := get(t.Context(), "http://10.64.0.11:18081/"); err == nil {
		t.Error("the host port outlives its pod")
	}
}

func TestServicesAreProxied(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS}
spec: {selector: {app: web}, ports: [{name: http, port: 8080, targetPort: http}]}
---`+webPod("one", "", "")+"---"+webPod("two", "", ""))
	var svc v1.Service
	if err := s.kube.Get(t.Context(), "/api/v1/namespaces/"+ns+"/services/web", &svc); err != nil {
		t.Fatal(err)
	}
	url := "http://" + svc.Spec.ClusterIP + ":8080/"
	answers := func(want ...string) {
		t.Helper()
		await(t, fmt.Sprintf("%s is answered by %v", url, want), func() error {
			got := map[string]bool{}
			for range 4 {
				_, body, err := get(t.Context(), url)
				if err != nil {
					return err
				}
				for _, name := range []string{"one", "two"} {
					if slices.Contains([]string{body[:min(len(body), len(`{"pod":"`+name))]}, `{"pod":"`+name) {
						got[name] = true
					}
				}
			}
			if len(got) != len(want) || !got[want[0]] {
				return fmt.Errorf("answered by %v", got)
			}
			return nil
		})
	}
	answers("one", "two")
	s.rest(t, http.MethodDelete, podPath(ns, "one"), "")
	answers("two")
	s.rest(t, http.MethodDelete, podPath(ns, "two"), "")
	await(t, "the Service refuses connections", func() error {
		if _, _, err := get(t.Context(), url); err == nil {
			return errors.New("it answers")
		}
		return nil
	})
}
