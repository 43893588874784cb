package node

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/node/internal/podstatus"
	"github.com/elbridge/elbridge/local/node/internal/proxy"
	"github.com/elbridge/elbridge/local/node/internal/volume"
)

// worker runs one pod from the moment the node sees it to its burial. Its life
// ends when the pod has to end; its context when the agent stops or the node is
// lost.
type worker struct {
	host      *host
	log       *slog.Logger
	namespace string
	name      string
	uid       types.UID
	created   time.Time
	dir       string
	writer    *writer
	volumes   *volume.Set
	done      chan struct{}

	ctx     context.Context // of the machine below the pod
	kill    context.CancelFunc
	life    context.Context // of the pod
	endLife context.CancelFunc
	buried  context.Context // ends when the object may go: it is being deleted, or gone
	bury    context.CancelFunc

	mu       sync.Mutex
	pod      *v1.Pod // as the API server showed it last
	rt       podstatus.Runtime
	last     v1.PodStatus // computed last, not yet written perhaps
	running  map[string]*running
	forced   *bool // readiness as told by the control API
	health   int   // status for /healthz as told by the control API
	deadline deadline
	gone     bool // the object is
	lost     bool // with its node
	restart  context.CancelFunc
	again    bool          // a new sandbox has been asked for
	changed  chan struct{} // closed by the next update

	// Of the goroutine that starts the pod, and after its end of oneSandbox's.
	address   netip.Addr     // from the pool; invalid on the host's network
	claim     net.PacketConn // holds it on this machine
	chosen    netip.Addr     // by the control API, not yet taken
	hostPorts []*proxy.Forwarder
}

// running is a container that has been started.
type running struct {
	container.Running
	spec    *v1.Container
	sidecar bool
	ready   bool // by its probe
	log     string
}

func newWorker(h *host, pod *v1.Pod) *worker {
	w := &worker{
		host: h, log: h.log.With("pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID),
		namespace: pod.Namespace, name: pod.Name, uid: pod.UID, created: pod.CreationTimestamp.Time,
		dir:    filepath.Join(h.agent.cfg.StateDir, "pods", string(pod.UID)),
		writer: newWriter(h, pod), done: make(chan struct{}),
		pod: pod, last: pod.Status, running: map[string]*running{}, changed: make(chan struct{}),
	}
	w.volumes = &volume.Set{Dir: filepath.Join(w.dir, "volumes"), Source: h.source, CheckOnly: !h.agent.hasProcess(pod)}
	w.ctx, w.kill = context.WithCancel(h.agent.ctx)
	w.life, w.endLife = context.WithCancel(w.ctx)
	w.buried, w.bury = context.WithCancel(context.Background())
	w.deadline.changed = make(chan struct{})
	w.rt = podstatus.Runtime{Started: h.agent.now(), Containers: restarted(pod)}
	for _, ip := range h.ips() {
		w.rt.NodeIPs = append(w.rt.NodeIPs, ip.String())
	}
	if pod.Status.StartTime != nil {
		w.rt.Started = pod.Status.StartTime.Time
	}
	w.noticeDeletion(pod)
	return w
}

// restarted carries the restart counts over when the pod ran before.
func restarted(pod *v1.Pod) map[string]podstatus.Container {
	all := map[string]podstatus.Container{}
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			if s.ContainerID != "" {
				all[s.Name] = podstatus.Container{Restarts: s.RestartCount + 1}
			}
		}
	}
	return all
}

// run is the pod's whole stay on the node.
func (w *worker) run() {
	defer close(w.done)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer w.kill()
	wg.Go(func() { w.writer.run(w.ctx) })
	if phase := w.last.Phase; phase != v1.PodSucceeded && phase != v1.PodFailed {
		for w.oneSandbox() {
			continue
		}
		if w.ctx.Err() == nil {
			w.update(func() { w.rt.Finished, w.rt.Sandbox = true, false })
		}
	}
	w.leave()
}

// leave waits until the object may go and takes it away.
func (w *worker) leave() {
	select {
	case <-w.buried.Done():
	case <-w.ctx.Done():
	}
	if !w.isGone() && w.writer.flush(w.ctx) == nil && !w.isGone() {
		_ = w.writer.remove(w.ctx) // fails only when it is gone or the agent stops
	}
	_ = os.RemoveAll(w.dir)
}

// observe takes notice of the pod's newest version.
func (w *worker) observe(pod *v1.Pod) {
	w.update(func() { w.pod = pod })
	w.noticeDeletion(pod)
}

func (w *worker) noticeDeletion(pod *v1.Pod) {
	if pod.DeletionTimestamp == nil {
		return
	}
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	w.end(grace)
	w.bury()
}

// vanished takes notice that the object is gone: by force, or by our own hand.
func (w *worker) vanished() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.end(0)
	w.bury()
}

// evict puts the pod out for want of a resource; its object stays.
func (w *worker) evict(e podstatus.Eviction, dropIP bool) {
	w.mu.Lock()
	w.rt.Evicted, w.rt.DropIP = &e, dropIP
	w.mu.Unlock()
	w.end(0)
}

// end ends the pod's life, or shortens what is left of it.
func (w *worker) end(grace time.Duration) {
	w.mu.Lock()
	w.deadline.shorten(w.host.agent.now().Add(max(grace, w.host.agent.cfg.MinGrace)))
	w.mu.Unlock()
	w.endLife()
}

// lose ends everything at once, as when the machine is gone.
func (w *worker) lose() {
	w.mu.Lock()
	w.lost = true
	w.mu.Unlock()
	w.kill()
}

// newSandbox makes the pod start anew, with another address.
func (w *worker) newSandbox() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.restart == nil || w.life.Err() != nil {
		return false
	}
	w.again = true
	w.restart()
	return true
}

func (w *worker) isGone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

func (w *worker) isLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// update changes what the node knows and hands the new status, if it is one, to
// the writer.
func (w *worker) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
	s := podstatus.Of(w.pod, w.last, w.rt, w.host.agent.now())
	if podstatus.Equal(s, w.last) {
		return
	}
	w.last = s
	if !w.gone {
		w.writer.push(s)
	}
}

// current is the pod with the status of this moment, for the downward API.
func (w *worker) current() *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pod.DeepCopy()
	pod.Status = *w.last.DeepCopy()
	return pod
}

// deadline is a point in time that only comes nearer.
type deadline struct {
	at      time.Time // zero: none yet
	changed chan struct{}
}

func (d *deadline) shorten(at time.Time) {
	if d.at.IsZero() || at.Before(d.at) {
		d.at = at
		close(d.changed)
		d.changed = make(chan struct{})
	}
}
