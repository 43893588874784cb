package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/elbridge/elbridge/local/node/internal/address"
)

// host is one node: its connection, its heartbeats and the pods that run on it.
// Pods outlive the connection.
type host struct {
	agent  *agent
	spec   Spec
	kube   *kube
	source *source
	log    *slog.Logger
	since  time.Time // when it became healthy
	link   *link     // to the API server
	writes *link     // "up" while pod status writes are not paused
	synced chan struct{}
	once   sync.Once

	mu      sync.Mutex
	workers map[types.UID]*worker
	lost    bool
	wg      sync.WaitGroup
}

func newHost(a *agent, spec Spec, k *kube) *host {
	return &host{
		agent: a, spec: spec, kube: k, source: newSource(k, capacity(spec), a.now, min(keepFor, a.cfg.VolumePeriod/2)), log: a.cfg.Log.With("node", spec.Name), since: a.now(),
		link: newLink(), writes: newLink(), synced: make(chan struct{}), workers: map[types.UID]*worker{},
	}
}

// ips are the node's addresses, primary family first.
func (h *host) ips() []netip.Addr {
	return []netip.Addr{h.spec.Address, address.Second(h.spec.Address)}
}

// run lives as long as ctx, through every cut and heal of the link, and returns
// when the pods have ended as well.
func (h *host) run(ctx context.Context) {
	h.link.up(ctx)
	h.writes.up(ctx)
	for {
		up, err := h.link.wait(ctx)
		if err != nil {
			break
		}
		h.connected(up)
	}
	h.wg.Wait()
}

// connected is what a kubelet does while it reaches the API server.
func (h *host) connected(ctx context.Context) {
	n, err := h.register(ctx)
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { h.keepLease(ctx, n) })
	wg.Go(func() { h.keepStatus(ctx) })
	wg.Go(func() { h.watchPods(ctx) })
	wg.Wait()
}

// watchPods follows the pods bound to this node until ctx ends.
func (h *host) watchPods(ctx context.Context) {
	lw := cache.NewListWatchFromClient(h.kube.core, "pods", v1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", h.spec.Name))
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: &v1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { h.see(ctx, o) },
			UpdateFunc: func(_, o any) { h.see(ctx, o) },
			DeleteFunc: func(o any) { h.unsee(ctx, o) },
		},
	})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { controller.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		return
	}
	h.forgetOthers(store)
	h.once.Do(func() { close(h.synced) })
}

// see takes notice of a pod. Nothing that arrives after the link was cut counts.
func (h *host) see(link context.Context, o any) {
	pod, ok := o.(*v1.Pod)
	if !ok || link.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return
	}
	if w := h.workers[pod.UID]; w != nil {
		w.observe(pod)
		return
	}
	w := newWorker(h, pod)
	h.workers[pod.UID] = w
	h.wg.Go(func() { //nolint:contextcheck // pods outlive the link
		w.run()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.workers[pod.UID] == w && w.isGone() {
			delete(h.workers, pod.UID)
		}
	})
}

// unsee takes notice that a pod's object is gone.
func (h *host) unsee(link context.Context, o any) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	pod, ok := o.(*v1.Pod)
	if !ok || link.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.workers[pod.UID]; w != nil {
		h.forget(w)
	}
}

// forgetOthers ends pods that vanished while the node did not look. The store
// always knows a pod before its worker exists.
func (h *host) forgetOthers(store cache.Store) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid, w := range h.workers {
		o, there, _ := store.GetByKey(w.namespace + "/" + w.name)
		if pod, ok := o.(*v1.Pod); !there || !ok || pod.UID != uid {
			h.forget(w)
		}
	}
}

// forget ends a pod whose object is gone. Until then even a worker that has ended
// is kept, so that what arrives late about its pod does not start it again.
func (h *host) forget(w *worker) {
	w.vanished()
	select {
	case <-w.done:
		delete(h.workers, w.uid)
	default:
	}
}

// pods returns the workers of this node that have not ended.
func (h *host) pods() []*worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*worker, 0, len(h.workers))
	for _, w := range h.workers {
		select {
		case <-w.done:
		default:
			all = append(all, w)
		}
	}
	return all
}

// partition cuts the node off; its pods go on.
func (h *host) partition() { h.link.cut() }

// lose cuts the node off and kills its pods without a trace.
func (h *host) lose() {
	h.link.cut()
	h.mu.Lock()
	h.lost = true
	workers := h.workers
	h.workers = map[types.UID]*worker{}
	h.mu.Unlock()
	for _, w := range workers {
		w.lose()
	}
	for _, w := range workers {
		<-w.done
	}
}

// heal reconnects the node. After a loss it starts its pods anew.
func (h *host) heal(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.New("the agent is stopping")
	}
	h.mu.Lock()
	h.lost = false
	h.mu.Unlock()
	h.link.up(ctx)
	return nil
}

func (h *host) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}
