package node

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elbridge/elbridge/local/node/internal/podstatus"
)

// errGone says that the pod's object is no longer there, or another's by now.
var errGone = errors.New("pod is gone")

// queued statuses beyond this are joined: the newest replaces the last.
const writerQueue = 8

// writer writes the statuses of one pod in order, through admission. Other pods'
// writers run beside it, StatusWriters at a time.
type writer struct {
	host      *host
	namespace string
	name      string
	uid       types.UID

	mu    sync.Mutex
	queue []v1.PodStatus
	wake  chan struct{} // holds one token if there is something to write
	idle  chan struct{} // closed while nothing is to be written
	over  bool          // the pod is gone: nothing is written any more
}

func newWriter(h *host, pod *v1.Pod) *writer {
	w := &writer{host: h, namespace: pod.Namespace, name: pod.Name, uid: pod.UID, wake: make(chan struct{}, 1), idle: make(chan struct{})}
	close(w.idle)
	return w
}

// push queues a status.
func (w *writer) push(s v1.PodStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if len(w.queue) == 0 {
		select {
		case <-w.idle:
			w.idle = make(chan struct{})
		default: // the last one is being written
		}
	}
	if len(w.queue) == writerQueue {
		w.queue = w.queue[:writerQueue-1]
	}
	w.queue = append(w.queue, s)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// flush returns when all that was pushed is written, or ctx has ended.
func (w *writer) flush(ctx context.Context) error {
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run writes until ctx ends or the pod is gone. When ctx ends what is queued is
// dropped.
func (w *writer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		for {
			s, ok := w.pop()
			if !ok {
				break
			}
			if err := w.write(ctx, s); err != nil {
				w.settle()
				return
			}
		}
	}
}

func (w *writer) pop() (v1.PodStatus, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		select {
		case <-w.idle:
		default:
			close(w.idle)
		}
		return v1.PodStatus{}, false
	}
	s := w.queue[0]
	w.queue = w.queue[1:]
	return s, true
}

// settle lets go of those who wait for writes that will not come.
func (w *writer) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue, w.over = nil, true
	select {
	case <-w.idle:
	default:
		close(w.idle)
	}
}

// newest returns the newest queued status instead of s, if there is one: each
// holds everything.
func (w *writer) newest(s v1.PodStatus) v1.PodStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.queue); n > 0 {
		s = w.queue[n-1]
		w.queue = nil
	}
	return s
}

// write repeats until the status is stored; it fails only when ctx has ended or
// the pod is gone.
func (w *writer) write(ctx context.Context, s v1.PodStatus) error {
	for wait := retryFirst; ; wait = min(2*wait, retryLimit) {
		err := w.host.call(ctx, func(ctx context.Context) error { return w.patch(ctx, s) })
		switch {
		case err == nil, errors.Is(err, errGone), ctx.Err() != nil:
			return err
		case w.host.link.isUp():
			w.host.log.Warn("pod status not written", "pod", w.namespace+"/"+w.name, "err", err)
		}
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
		s = w.newest(s)
	}
}

func (w *writer) patch(ctx context.Context, s v1.PodStatus) error {
	patch, err := podstatus.Patch(w.uid, s)
	if err != nil {
		return err
	}
	err = w.host.kube.core.Patch(types.StrategicMergePatchType).Namespace(w.namespace).Resource("pods").Name(w.name).
		SubResource("status").Body(patch).Do(ctx).Error()
	if apierrors.IsConflict(err) && !w.exists(ctx) {
		return errGone
	}
	if apierrors.IsNotFound(err) {
		return errGone
	}
	return err
}

// exists says whether the pod is still there; when in doubt it is.
func (w *writer) exists(ctx context.Context) bool {
	var got v1.Pod
	err := w.host.kube.core.Get().Namespace(w.namespace).Resource("pods").Name(w.name).Do(ctx).Into(&got)
	if apierrors.IsNotFound(err) {
		return false
	}
	return err != nil || got.UID == w.uid
}

// remove deletes the object for good, as the last act of a kubelet. A refusal is
// tried again; it returns when the object is gone or ctx has ended.
func (w *writer) remove(ctx context.Context) error {
	for wait := retryFirst; ; wait = min(2*wait, retryLimit) {
		err := w.host.call(ctx, w.delete)
		switch {
		case err == nil, errors.Is(err, errGone), ctx.Err() != nil:
			return err
		case w.host.link.isUp():
			w.host.log.Warn("pod not deleted", "pod", w.namespace+"/"+w.name, "err", err)
		}
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

func (w *writer) delete(ctx context.Context) error {
	grace := int64(0)
	err := w.host.kube.core.Delete().Namespace(w.namespace).Resource("pods").Name(w.name).Body(&metav1.DeleteOptions{
		GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &w.uid},
	}).Do(ctx).Error()
	if apierrors.IsNotFound(err) || (apierrors.IsConflict(err) && !w.exists(ctx)) {
		return errGone
	}
	return err
}

// call runs one write about a pod when the node is connected, status writes are
// not paused and a place is free.
func (h *host) call(ctx context.Context, do func(context.Context) error) error {
	if _, err := h.writes.wait(ctx); err != nil {
		return err
	}
	select {
	case h.agent.places <- struct{}{}:
		defer func() { <-h.agent.places }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return h.online(ctx, do)
}

// online runs calls to the API server once the node is connected. They end with
// the connection.
func (h *host) online(ctx context.Context, do func(context.Context) error) error {
	up, err := h.link.wait(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := both(ctx, up)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, callTimeout)
	defer cancelTimeout()
	return do(ctx)
}
