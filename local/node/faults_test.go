package node_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node"
)

func TestCrashedContainersComeBack(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	seen := s.history(t, ns)
	s.apply(t, ns, webPod("web", "", "nodeName: node-a"))
	p := s.awaitPod(t, ns, "web", "ready", ready)
	url := "http://" + p.Status.PodIP + ":8080/"

	if err := s.control.OOMKill(t.Context(), ns, "web", ""); err != nil {
		t.Fatal(err)
	}
	p = s.awaitPod(t, ns, "web", "restarted", func(p *v1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 && ready(p) })
	if end := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("P026 last state is %+v", p.Status.ContainerStatuses[0].LastTerminationState)
	}
	who(t, url)
	await(t, "the dead container was seen", func() error {
		if all := seen("web"); !slices.Contains(all, "Running ip PodReadyToStartContainers Initialized PodScheduled web=ended(137)") {
			return fmt.Errorf("%q", all)
		}
		return nil
	})

	if err := s.control.Crash(t.Context(), ns, "web", node.Crash{ExitCode: 3}); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, ns, "web", "restarted again", func(p *v1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 2 && ready(p) })
	if all := seen("web"); !slices.Contains(all, "Running ip PodReadyToStartContainers Initialized PodScheduled web=CrashLoopBackOff") {
		t.Errorf("no back-off was seen: %q", all)
	}
}

func TestReadinessFollowsProbeAndControl(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, webPod("web", "elbridge.local/ready-after: 1s", "nodeName: node-a"))
	p := s.awaitPod(t, ns, "web", "running", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
	if ready(p) {
		t.Error("it is ready too early")
	}
	s.awaitPod(t, ns, "web", "ready", ready)
	url := "http://" + p.Status.PodIP + ":8080"

	no := false
	if err := s.control.SetReady(t.Context(), ns, "web", &no); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, ns, "web", "not ready", func(p *v1.Pod) bool { return conditionIs(p, v1.ContainersReady, v1.ConditionFalse) })
	if status, _, err := get(t.Context(), url+"/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %v", status, err)
	}
	mustGet(t, url+"/healthz")
	if err := s.control.SetReady(t.Context(), ns, "web", nil); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, ns, "web", "ready again", ready)

	if err := s.control.SetHealth(t.Context(), ns, "web", http.StatusInternalServerError); err != nil {
		t.Fatal(err)
	}
	if status, _, err := get(t.Context(), url+"/healthz"); err != nil || status != http.StatusInternalServerError {
		t.Errorf("/healthz: %d %v", status, err)
	}
}

func TestReadinessGateIsHonoured(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, webPod("web", "", `readinessGates: [{conditionType: example.com/gate}]`))
	p := s.awaitPod(t, ns, "web", "all but ready", func(p *v1.Pod) bool { return conditionIs(p, v1.ContainersReady, v1.ConditionTrue) })
	if ready(p) {
		t.Error("ready though its gate is closed")
	}
	if err := s.kube.Patch(t.Context(), podPath(ns, "web")+"/status", "application/strategic-merge-patch+json",
		`{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`); err != nil {
		t.Fatal(err)
	}
	p = s.awaitPod(t, ns, "web", "ready", ready)
	if !conditionIs(p, "example.com/gate", v1.ConditionTrue) {
		t.Error("the node took another's condition away")
	}
}

func TestKubeletEvictionKeepsTheObject(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	for name, drop := range map[string]bool{"ip-kept": false, "ip-dropped": true} {
		s.apply(t, ns, webPod(name, "", ""))
		s.awaitPod(t, ns, name, "ready", ready)
		if err := s.control.Evict(t.Context(), ns, name, node.Evict{DropIP: drop}); err != nil {
			t.Fatal(err)
		}
		p := s.awaitPod(t, ns, name, "failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
		i := slices.IndexFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.DisruptionTarget })
		if p.Status.Reason != "Evicted" || i < 0 || p.Status.Conditions[i].Reason != v1.PodReasonTerminationByKubelet {
			t.Errorf("reason %q, conditions %v", p.Status.Reason, p.Status.Conditions)
		}
		if (p.Status.PodIP == "") != drop || (len(p.Status.PodIPs) == 0) != drop {
			t.Errorf("P047 %s: podIP %q, podIPs %v", name, p.Status.PodIP, p.Status.PodIPs)
		}
		s.rest(t, http.MethodDelete, podPath(ns, name), "")
		s.awaitGone(t, ns, name)
	}
}

func (s *stack) renewed(t *testing.T, name string) time.Time {
	t.Helper()
	var lease coordinationv1.Lease
	if err := s.kube.Get(t.Context(), "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+name, &lease); err != nil {
		t.Fatal(err)
	}
	return lease.Spec.RenewTime.Time
}

func TestPartitionedNodeServesOn(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, webPod("web", "", "nodeName: node-b"))
	p := s.awaitPod(t, ns, "web", "ready", ready)
	url := "http://" + p.Status.PodIP + ":8080/"
	if err := s.control.Partition(t.Context(), "node-b"); err != nil {
		t.Fatal(err)
	}
	before := s.renewed(t, "node-b")
	s.rest(t, http.MethodDelete, podPath(ns, "web"), `{"gracePeriodSeconds":0}`)
	s.awaitGone(t, ns, "web")
	other := s.renewed(t, "node-a")
	await(t, "another node has renewed its lease twice", func() error {
		if s.renewed(t, "node-a").Sub(other) < 2*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	if !s.renewed(t, "node-b").Equal(before) {
		t.Error("the partitioned node renews its lease")
	}
	who(t, url)
	if err := s.control.Heal(t.Context(), "node-b"); err != nil {
		t.Fatal(err)
	}
	await(t, "the healed node has ended the pod", func() error {
		if _, _, err := get(t.Context(), url); err == nil {
			return errors.New("it still answers")
		}
		if !s.renewed(t, "node-b").After(before) {
			return errors.New("its lease is not renewed")
		}
		return nil
	})
}

func TestLostNodeTakesItsPodsAlong(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	s.apply(t, ns, webPod("web", "", "nodeName: node-c"))
	p := s.awaitPod(t, ns, "web", "ready", ready)
	if err := s.control.Lose(t.Context(), "node-c"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(t.Context(), "http://"+p.Status.PodIP+":8080/"); err == nil {
		t.Error("the pod of a lost node answers")
	}
	if now, err := s.pod(ns, "web"); err != nil || !ready(now) {
		t.Errorf("its status was written: %v %v", now.Status, err)
	}
	if err := s.control.Heal(t.Context(), "node-c"); err != nil {
		t.Fatal(err)
	}
	p = s.awaitPod(t, ns, "web", "started again", func(p *v1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount > 0 && ready(p) })
	who(t, "http://"+p.Status.PodIP+":8080/")
}

func TestPausedWritesAreMadeUpFor(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	if err := s.control.PauseWrites(t.Context(), "node-a", true); err != nil {
		t.Fatal(err)
	}
	s.apply(t, ns, webPod("web", "", "nodeName: node-a"))
	await(t, "the pod runs unseen", func() error {
		pods, err := s.control.Pods(t.Context())
		if i := slices.IndexFunc(pods, func(p node.PodInfo) bool { return p.Namespace == ns && p.Ready }); i < 0 {
			return fmt.Errorf("not ready yet: %w", err)
		}
		return nil
	})
	if p, err := s.pod(ns, "web"); err != nil || p.Status.PodIP != "" {
		t.Errorf("status is %s, %v", brief(p), err)
	}
	if err := s.control.PauseWrites(t.Context(), "node-a", false); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, ns, "web", "ready", ready)
}
