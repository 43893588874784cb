package node

import (
	"net/netip"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// wishes are addresses chosen for pods to come.
type wishes struct {
	mu  sync.Mutex
	all []wish
}

type wish struct {
	namespace string
	name      string          // empty: any that selector matches
	selector  labels.Selector // nil: by name alone
	address   netip.Addr
}

func (w wish) fits(pod *v1.Pod) bool {
	return w.namespace == pod.Namespace &&
		(w.name == "" || w.name == pod.Name) &&
		(w.selector == nil || w.selector.Matches(labels.Set(pod.Labels)))
}

func (ws *wishes) add(w wish) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = append(ws.all, w)
}

// take hands out the oldest wish that fits the pod, once.
func (ws *wishes) take(pod *v1.Pod) (netip.Addr, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	i := slices.IndexFunc(ws.all, func(w wish) bool { return w.fits(pod) })
	if i < 0 {
		return netip.Addr{}, false
	}
	a := ws.all[i].address
	ws.all = slices.Delete(ws.all, i, i+1)
	return a, true
}
