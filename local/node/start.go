package node

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/node/internal/podstatus"
)

// oneSandbox runs the pod from its network to the end of its last container, and
// says whether it is to be done again.
func (w *worker) oneSandbox() (again bool) {
	ctx, cancel := context.WithCancel(w.life)
	defer cancel()
	w.mu.Lock()
	w.restart, w.again = cancel, false
	w.mu.Unlock()

	var wg sync.WaitGroup
	finished := make(chan struct{})
	wg.Go(func() {
		defer close(finished)
		w.startPod(ctx, &wg)
	})
	select {
	case <-ctx.Done():
	case <-finished: // by itself: only sidecars may still run
	}
	cancel()
	w.stopContainers()
	wg.Wait()
	w.releaseAddress()
	w.mu.Lock()
	again = w.again && w.life.Err() == nil
	w.restart = nil
	w.mu.Unlock()
	if again {
		w.update(func() { w.rt.Sandbox = false })
	}
	return again
}

// startPod returns when the main containers have ended and will not be started
// again, or when ctx has ended and so have they. What runs beside them, until ctx
// ends, belongs to beside.
func (w *worker) startPod(ctx context.Context, beside *sync.WaitGroup) {
	w.update(func() {}) // accepted: Pending
	if !w.prepare(ctx) {
		return
	}
	pod := w.current()
	beside.Go(func() { w.refreshVolumes(ctx) })
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if podstatus.IsSidecar(c) {
			beside.Go(func() { w.supervise(ctx, pod, c, v1.RestartPolicyAlways) })
			if !w.awaitStarted(ctx, c.Name) {
				return
			}
			continue
		}
		w.supervise(ctx, pod, c, initPolicy(pod))
		if !w.endedWell(c.Name) {
			return
		}
	}
	w.startMains(ctx, pod)
}

// startMains starts the main containers and waits for all of them.
func (w *worker) startMains(ctx context.Context, pod *v1.Pod) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range pod.Spec.Containers {
		wg.Go(func() { w.supervise(ctx, pod, &pod.Spec.Containers[i], pod.Spec.RestartPolicy) })
	}
}

// initPolicy: an init container that ended well is never started again.
func initPolicy(pod *v1.Pod) v1.RestartPolicy {
	if pod.Spec.RestartPolicy == v1.RestartPolicyNever {
		return v1.RestartPolicyNever
	}
	return v1.RestartPolicyOnFailure
}

const prepareRetryLimit = time.Second

// prepare gives the pod its volumes and its network; what fails is tried again
// until ctx ends.
func (w *worker) prepare(ctx context.Context) bool {
	try := func(what string, do func() error) bool {
		for wait := retryFirst; ; wait = min(2*wait, prepareRetryLimit) {
			err := do()
			if err == nil {
				return true
			}
			w.log.Warn("pod can't start yet", "step", what, "err", err)
			if !sleep(ctx, wait) {
				return false
			}
		}
	}
	ok := try("volumes", func() error { return w.layVolumes(ctx) }) &&
		try("address", func() error { return w.takeAddress(ctx) })
	if !ok || ctx.Err() != nil {
		return false
	}
	w.update(func() { w.rt.Sandbox = true })
	behaviour := behaviourOf(w.current(), w.log)
	return try("host ports", w.openHostPorts) && sleep(ctx, behaviour.startDelay)
}

func (w *worker) layVolumes(ctx context.Context) error {
	return w.host.online(ctx, func(ctx context.Context) error {
		return w.volumes.Lay(ctx, w.current(), w.host.agent.now())
	})
}

// refreshVolumes brings secrets, config maps and tokens up to date.
func (w *worker) refreshVolumes(ctx context.Context) {
	for sleep(ctx, w.host.agent.cfg.VolumePeriod) {
		if err := w.layVolumes(ctx); err != nil && ctx.Err() == nil && w.host.link.isUp() {
			w.log.Warn("volumes not refreshed", "err", err)
		}
	}
}

// awaitStarted waits for a sidecar to have started.
func (w *worker) awaitStarted(ctx context.Context, name string) bool {
	for {
		w.mu.Lock()
		started, changed := w.rt.Containers[name].Started, w.changed
		w.mu.Unlock()
		if started {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (w *worker) endedWell(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := w.rt.Containers[name].State.Terminated
	return end != nil && end.ExitCode == 0
}

// startContainer starts one container on this machine.
func (w *worker) startContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (container.Running, string, error) {
	if image, ok := w.host.agent.image(c.Image); ok {
		return w.startProcess(ctx, pod, c, image)
	}
	s, err := container.StartServer(w.ctx, w.serverSpec(pod, c), w.host.agent.now) //nolint:contextcheck // it outlives ctx by the grace period
	if err != nil {
		return nil, "", err
	}
	return s, "", nil
}
