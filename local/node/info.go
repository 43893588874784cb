package node

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/vpc"
)

// podInfos lists all pods, sorted by namespace, name and age.
func (a *agent) podInfos() []PodInfo {
	all := []PodInfo{}
	var workers []*worker
	for _, h := range a.hosts {
		workers = append(workers, h.pods()...)
	}
	slices.SortFunc(workers, func(x, y *worker) int {
		return cmp.Or(cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name), x.created.Compare(y.created))
	})
	for _, w := range workers {
		all = append(all, w.info())
	}
	return all
}

func (w *worker) info() PodInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := PodInfo{
		Namespace: w.namespace, Name: w.name, UID: string(w.uid), Node: w.host.spec.Name, Zone: w.host.spec.Zone,
		Phase: string(w.last.Phase), Terminating: w.life.Err() != nil, Addresses: []string{}, Listen: []string{},
	}
	for _, c := range w.last.Conditions {
		if c.Type == v1.PodReady {
			p.Ready = c.Status == v1.ConditionTrue
		}
	}
	for _, a := range published(&v1.Pod{Status: w.last}) {
		p.Addresses = append(p.Addresses, a.String())
		if real, err := vpc.Loopback(a); err == nil {
			p.Listen = append(p.Listen, real.String())
		}
	}
	for i := range w.pod.Spec.InitContainers {
		p.Containers = append(p.Containers, w.containerInfo(&w.pod.Spec.InitContainers[i]))
	}
	for i := range w.pod.Spec.Containers {
		p.Containers = append(p.Containers, w.containerInfo(&w.pod.Spec.Containers[i]))
	}
	return p
}

func (w *worker) containerInfo(c *v1.Container) ContainerInfo {
	got := w.rt.Containers[c.Name]
	info := ContainerInfo{Name: c.Name, Running: got.State.Running != nil, Ready: got.Ready, Restarts: got.Restarts}
	r := w.running[c.Name]
	if r == nil {
		return info
	}
	info.Log = r.log
	switch run := r.Running.(type) {
	case *container.Process:
		info.PID = run.PID()
	case *container.Server:
		for _, p := range portsOf(c) {
			info.Ports = append(info.Ports, int(p.Number))
		}
	}
	return info
}

func (a *agent) nodeInfos() []NodeInfo {
	all := []NodeInfo{}
	for _, h := range a.hosts {
		n := NodeInfo{
			Name: h.spec.Name, Zone: h.spec.Zone, Address: h.spec.Address.String(),
			State: "connected", Paused: !h.writes.isUp(), Pods: len(h.pods()),
		}
		switch {
		case h.isLost():
			n.State = "lost"
		case !h.link.isUp():
			n.State = "partitioned"
		}
		all = append(all, n)
	}
	return all
}
