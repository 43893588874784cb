package podstatus

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Owned lists the conditions that a node writes; others belong to others.
var owned = []v1.PodConditionType{
	v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
}

func conditions(pod *v1.Pod, s v1.PodStatus, prev v1.PodStatus, rt Runtime, now time.Time) []v1.PodCondition {
	found := map[v1.PodConditionType]v1.PodCondition{
		v1.PodReadyToStartContainers: {Status: boolStatus(rt.Sandbox && !rt.Finished)},
		v1.PodScheduled:              {Status: v1.ConditionTrue},
		v1.PodInitialized:            initializedCondition(pod, s, rt),
	}
	containers := containersReady(pod, s)
	found[v1.ContainersReady] = containers
	found[v1.PodReady] = podReady(pod, containers)

	var all []v1.PodCondition
	for _, kind := range owned {
		c := found[kind]
		c.Type = kind
		all = append(all, since(c, prev, pod, now))
	}
	if rt.Evicted != nil && rt.Finished {
		all = append(all, since(v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonTerminationByKubelet, Message: rt.Evicted.Message,
		}, prev, pod, now))
	}
	return all
}

// since fills in when the condition came to its present value.
func since(c v1.PodCondition, prev v1.PodStatus, pod *v1.Pod, now time.Time) v1.PodCondition {
	c.ObservedGeneration = pod.Generation
	c.LastTransitionTime = metav1.NewTime(now)
	if i := slices.IndexFunc(prev.Conditions, func(p v1.PodCondition) bool { return p.Type == c.Type }); i >= 0 && prev.Conditions[i].Status == c.Status {
		c.LastTransitionTime = prev.Conditions[i].LastTransitionTime
	}
	return c
}

func initializedCondition(pod *v1.Pod, s v1.PodStatus, rt Runtime) v1.PodCondition {
	missing := incomplete(pod, rt)
	switch {
	case s.Phase == v1.PodSucceeded:
		return v1.PodCondition{Status: v1.ConditionTrue, Reason: "PodCompleted"}
	case len(missing) > 0:
		return v1.PodCondition{
			Status: v1.ConditionFalse, Reason: "ContainersNotInitialized",
			Message: fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(missing, " ")),
		}
	}
	return v1.PodCondition{Status: v1.ConditionTrue}
}

func containersReady(pod *v1.Pod, s v1.PodStatus) v1.PodCondition {
	switch s.Phase {
	case v1.PodSucceeded:
		return v1.PodCondition{Status: v1.ConditionFalse, Reason: "PodCompleted"}
	case v1.PodFailed:
		return v1.PodCondition{Status: v1.ConditionFalse, Reason: "PodFailed"}
	}
	var unready []string
	for i, c := range s.InitContainerStatuses {
		if IsSidecar(&pod.Spec.InitContainers[i]) && !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	for _, c := range s.ContainerStatuses {
		if !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	if len(unready) > 0 {
		return v1.PodCondition{
			Status: v1.ConditionFalse, Reason: "ContainersNotReady",
			Message: fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " ")),
		}
	}
	return v1.PodCondition{Status: v1.ConditionTrue}
}

// podReady adds the readiness gates: an absent one counts as closed.
func podReady(pod *v1.Pod, containers v1.PodCondition) v1.PodCondition {
	if containers.Status != v1.ConditionTrue {
		return containers
	}
	var closed []string
	for _, gate := range pod.Spec.ReadinessGates {
		i := slices.IndexFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case i < 0:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case pod.Status.Conditions[i].Status != v1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, pod.Status.Conditions[i].Status))
		}
	}
	if len(closed) > 0 {
		return v1.PodCondition{Status: v1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: strings.Join(closed, ", ")}
	}
	return v1.PodCondition{Status: v1.ConditionTrue}
}

func boolStatus(b bool) v1.ConditionStatus {
	if b {
		return v1.ConditionTrue
	}
	return v1.ConditionFalse
}
