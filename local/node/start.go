package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/address"
	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/node/internal/podstatus"
	"github.com/elbridge/elbridge/local/node/internal/proxy"
	"github.com/elbridge/elbridge/local/vpc"
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
	ok := try("folder", func() error { return os.MkdirAll(filepath.Join(w.dir, "volumes"), 0o755) }) &&
		try("volumes", func() error { return w.layVolumes(ctx) }) &&
		try("address", w.takeAddress)
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

// takeAddress takes the address chosen for this pod, or the node's next one.
func (w *worker) takeAddress() error {
	pod := w.current()
	if pod.Spec.HostNetwork {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rt.PodIPs = w.rt.NodeIPs
		return nil
	}
	pool := w.host.agent.addresses
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.chosen.IsValid() {
		w.chosen, _ = w.host.agent.wishes.take(pod)
	}
	a := w.chosen
	var err error
	if a.IsValid() {
		err = pool.Take(a)
	} else {
		a, err = pool.Next(w.host.spec.Name)
	}
	if err != nil {
		return err
	}
	w.chosen = netip.Addr{}
	w.address = a
	w.rt.PodIPs = []string{a.String(), address.Second(a).String()}
	return nil
}

// releaseAddress gives the address back; the status still names it.
func (w *worker) releaseAddress() {
	w.closeHostPorts()
	w.mu.Lock()
	a := w.address
	w.address = netip.Addr{}
	w.mu.Unlock()
	if a.IsValid() {
		w.host.agent.addresses.Release(a)
	}
}

// published are the addresses the pod is known by.
func published(pod *v1.Pod) []netip.Addr {
	var all []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// openHostPorts forwards the node's ports that the pod asks for, all or none.
func (w *worker) openHostPorts() (err error) {
	pod := w.current()
	real, err := vpc.Loopback(w.host.spec.Address)
	if pod.Spec.HostNetwork || err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.closeHostPorts()
		}
	}()
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort == 0 || (p.Protocol != "" && p.Protocol != v1.ProtocolTCP) {
				continue
			}
			to := netip.AddrPortFrom(published(pod)[0], uint16(p.ContainerPort))
			f, err := proxy.Listen(w.ctx, netip.AddrPortFrom(real, uint16(p.HostPort)), func() (netip.AddrPort, bool) { return to, true })
			if err != nil {
				return fmt.Errorf("host port %d: %w", p.HostPort, err)
			}
			w.hostPorts = append(w.hostPorts, f)
		}
	}
	return nil
}

func (w *worker) closeHostPorts() {
	for _, f := range w.hostPorts {
		f.Close()
	}
	w.hostPorts = nil
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
	s, err := container.StartServer(w.ctx, w.serverSpec(pod, c), w.host.agent.now)
	if err != nil {
		return nil, "", err
	}
	return s, "", nil
}
