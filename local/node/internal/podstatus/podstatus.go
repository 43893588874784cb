// Package podstatus decides what a kubelet would write about a pod: a pure
// function from the pod's spec and what its containers are doing to its status.
// It never looks at a clock, a process or the API server.
package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Runtime is what the node knows about a pod, and nobody else does.
type Runtime struct {
	NodeIPs    []string             // of the node, primary family first
	PodIPs     []string             // of the pod, primary family first; empty until it has a sandbox
	Started    time.Time            // when the node first saw the pod
	Sandbox    bool                 // the pod's network is there
	Containers map[string]Container // by name, init containers included; absent means not yet created
	Evicted    *Eviction            // set once the node has put the pod out
	Finished   bool                 // every container has ended for good and none will be started again
	DropIP     bool                 // the status of the finished pod names no address any more
}

// Container is one container as the runtime sees it.
type Container struct {
	ID       string // container id, with its scheme
	State    v1.ContainerState
	Last     v1.ContainerState // how the run before this one ended
	Restarts int32
	Started  bool // runs, and its startup probe has passed
	Ready    bool // runs, and its readiness probe passes
}

// Eviction says why a node put a pod out.
type Eviction struct {
	Reason  string // as in status.reason: "Evicted"
	Message string
}

// Of returns the status of pod. prev is the status that was written last: a
// condition that did not change keeps its transition time. Readiness gates are
// read from pod.Status, where others write them; they are not part of the result,
// whose conditions are the node's own.
//
// Of keeps none of its arguments and gives equal output for equal input.
func Of(pod *v1.Pod, prev v1.PodStatus, rt Runtime, now time.Time) v1.PodStatus {
	s := v1.PodStatus{
		ObservedGeneration:    pod.Generation,
		HostIP:                first(rt.NodeIPs),
		StartTime:             timeOrNil(rt.Started),
		QOSClass:              prev.QOSClass,
		InitContainerStatuses: containerStatuses(pod, pod.Spec.InitContainers, rt),
		ContainerStatuses:     containerStatuses(pod, pod.Spec.Containers, rt),
	}
	for _, ip := range rt.NodeIPs {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip})
	}
	if !rt.Finished || !rt.DropIP {
		s.PodIP = first(rt.PodIPs)
		for _, ip := range rt.PodIPs {
			s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
		}
	}
	s.Phase = phase(pod, rt)
	if rt.Evicted != nil && rt.Finished {
		s.Reason, s.Message = rt.Evicted.Reason, rt.Evicted.Message
	}
	s.Conditions = conditions(pod, s, prev, rt, now)
	return s
}

// phase follows the kubelet: a container that waits for its next start counts as
// ended, a pod that restarts its containers for ever stays Running.
func phase(pod *v1.Pod, rt Runtime) v1.PodPhase {
	ended, failed, running, waiting := 0, 0, 0, 0
	for _, c := range pod.Spec.Containers {
		got := rt.Containers[c.Name]
		end := got.State.Terminated
		if end == nil && got.State.Waiting != nil {
			end = got.Last.Terminated
		}
		switch {
		case got.State.Running != nil:
			running++
		case end != nil:
			ended++
			if end.ExitCode != 0 {
				failed++
			}
		default:
			waiting++
		}
	}
	switch {
	case rt.Finished && (rt.Evicted != nil || failed > 0 || initFailed(pod, rt)):
		return v1.PodFailed
	case rt.Finished && waiting > 0:
		return v1.PodFailed // ended before it began
	case rt.Finished:
		return v1.PodSucceeded
	case !initialized(pod, rt), waiting > 0:
		return v1.PodPending
	case running > 0, pod.Spec.RestartPolicy == v1.RestartPolicyAlways, pod.Spec.RestartPolicy == "":
		return v1.PodRunning
	case failed == 0:
		return v1.PodSucceeded
	case pod.Spec.RestartPolicy == v1.RestartPolicyNever:
		return v1.PodFailed
	}
	return v1.PodRunning // OnFailure: it will be started again
}

// initialized says whether the main containers may run: every init container has
// ended well, every sidecar has started.
func initialized(pod *v1.Pod, rt Runtime) bool {
	return len(incomplete(pod, rt)) == 0
}

func incomplete(pod *v1.Pod, rt Runtime) []string {
	for _, c := range pod.Spec.Containers {
		if s := rt.Containers[c.Name].State; s.Running != nil || s.Terminated != nil {
			return nil // a main container has run: a restarted sidecar changes nothing
		}
	}
	var names []string
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		got := rt.Containers[c.Name]
		done := got.State.Terminated != nil && got.State.Terminated.ExitCode == 0
		if IsSidecar(c) {
			done = got.Started
		}
		if !done {
			names = append(names, c.Name)
		}
	}
	return names
}

func initFailed(pod *v1.Pod, rt Runtime) bool {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		end := rt.Containers[c.Name].State.Terminated
		if !IsSidecar(c) && end != nil && end.ExitCode != 0 {
			return true
		}
	}
	return false
}

// IsSidecar says whether an init container runs for as long as the pod does.
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

func containerStatuses(pod *v1.Pod, specs []v1.Container, rt Runtime) []v1.ContainerStatus {
	var all []v1.ContainerStatus
	for i := range specs {
		c := &specs[i]
		got, created := rt.Containers[c.Name]
		if !created || got.State == (v1.ContainerState{}) {
			got.State.Waiting = &v1.ContainerStateWaiting{Reason: notCreated(pod, rt)}
		}
		if rt.Finished && got.State.Waiting != nil {
			got.State, got.Last = lastWord(got), v1.ContainerState{}
		}
		started := got.Started && got.State.Running != nil
		all = append(all, v1.ContainerStatus{
			Name:                 c.Name,
			State:                *got.State.DeepCopy(),
			LastTerminationState: *got.Last.DeepCopy(),
			Ready:                ready(c, got, pod),
			RestartCount:         got.Restarts,
			Image:                c.Image,
			ImageID:              imageID(c.Image, got),
			ContainerID:          got.ID,
			Started:              &started,
		})
	}
	return all
}

// ready: an init container that ended well is ready, everything else must run.
func ready(c *v1.Container, got Container, pod *v1.Pod) bool {
	if !IsSidecar(c) && isInit(pod, c.Name) {
		return got.State.Terminated != nil && got.State.Terminated.ExitCode == 0
	}
	return got.Ready && got.State.Running != nil
}

func isInit(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return true
		}
	}
	return false
}

// lastWord is the end of a container that waits and will not start any more.
func lastWord(got Container) v1.ContainerState {
	if got.Last.Terminated != nil {
		return got.Last
	}
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
	}}
}

func notCreated(pod *v1.Pod, rt Runtime) string {
	if len(pod.Spec.InitContainers) > 0 && !initialized(pod, rt) {
		return "PodInitializing"
	}
	return "ContainerCreating"
}

func imageID(image string, got Container) string {
	if got.ID == "" {
		return ""
	}
	return "elbridge.local/image@" + image
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewTime(t)
	return &m
}
