package podevent

import (
	"slices"
	"time"
)

// FromPod is the event that would describe the pod as it is now. Rules select
// pods through it, so that a live pod and its events meet the same pattern.
// Its reason is the latest of the pod's life so far; no rule should select on
// it, nor on any other field of state.
func FromPod(cluster string, p *Pod, annotations AllowList, at time.Time) Event {
	return Event{
		Schema:                     Schema,
		Cluster:                    cluster,
		Namespace:                  p.Namespace,
		Name:                       p.Name,
		UID:                        p.UID,
		ResourceVersion:            p.ResourceVersion,
		PodIP:                      p.PodIP(),
		PodIPs:                     slices.Clone(p.PodIPs),
		HostIP:                     p.HostIP,
		HostNetwork:                p.HostNetwork,
		NodeName:                   p.NodeName,
		Phase:                      p.Phase,
		Ready:                      p.Ready,
		ContainersReady:            p.ContainersReady,
		Terminating:                p.Terminating,
		DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
		Labels:                     p.Labels,
		Annotations:                annotations.Filter(p.Annotations),
		Owner:                      p.Owner,
		ServiceAccount:             p.ServiceAccount,
		Ports:                      p.Ports,
		Reason:                     latest(p),
		ObservedAt:                 at,
	}.normal()
}

func latest(p *Pod) Reason {
	switch {
	case p.Finished():
		return Finished
	case p.Terminating:
		return Terminating
	case p.Ready:
		return Ready
	case p.PodIP() != "":
		return IPAssigned
	default:
		return NotReady
	}
}
