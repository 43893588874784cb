package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/node/internal/podstatus"
	"github.com/elbridge/elbridge/local/node/internal/probe"
)

const (
	backoffLimit = 5 * time.Minute
	backoffReset = 10 * time.Minute // a container that ran that long is forgiven
)

// supervise keeps one container running as its restart policy asks, and returns
// when it has ended for good. After ctx has ended it is not started again.
func (w *worker) supervise(ctx context.Context, pod *v1.Pod, c *v1.Container, policy v1.RestartPolicy) {
	wait := time.Duration(0) // the first restart comes at once
	for ctx.Err() == nil {
		started := w.host.agent.now()
		exit, ok := w.oneRun(ctx, pod, c)
		if ctx.Err() != nil || (ok && !startAgain(policy, exit)) {
			return
		}
		if w.host.agent.now().Sub(started) >= backoffReset {
			wait = 0
		}
		if ok && wait > 0 {
			w.setBackoff(c, wait)
		}
		if !ok {
			wait = max(wait, retryFirst)
		}
		if !sleep(ctx, wait) {
			return
		}
		wait = min(max(2*wait, w.host.agent.cfg.RestartBackoff), backoffLimit)
	}
}

func startAgain(policy v1.RestartPolicy, e container.Exit) bool {
	switch policy {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return e.Code != 0
	}
	return true
}

// oneRun runs the container once; ok is false if it could not be started.
func (w *worker) oneRun(ctx context.Context, pod *v1.Pod, c *v1.Container) (_ container.Exit, ok bool) {
	run, log, err := w.startContainer(ctx, pod, c)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("container not started", "container", c.Name, "err", err)
			w.setWaiting(c, "RunContainerError", err.Error())
		}
		return container.Exit{}, false
	}
	r := &running{Running: run, spec: c, sidecar: podstatus.IsSidecar(c), log: log}
	w.enter(ctx, r)
	w.watch(ctx, r)
	exit := run.Exit()
	w.exited(r, exit)
	return exit, true
}

// enter makes the container known: started, and in a second step ready if no
// probe says otherwise. One that came too late for the pod's end is killed.
func (w *worker) enter(ctx context.Context, r *running) {
	now := metav1.NewTime(w.host.agent.now())
	w.update(func() {
		w.running[r.spec.Name] = r
		if ctx.Err() != nil {
			r.Kill()
		}
		got := w.rt.Containers[r.spec.Name]
		if got.State.Terminated != nil {
			got.Last = got.State
		}
		if got.ID != "" {
			got.Restarts++
		}
		got.ID, got.State = newID(), v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}
		got.Started = r.spec.StartupProbe == nil
		got.Ready = false
		w.rt.Containers[r.spec.Name] = got
		w.steer(r)
	})
	if r.spec.StartupProbe == nil && r.spec.ReadinessProbe == nil {
		w.setReady(r, true)
	}
}

func newID() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return "elbridge://" + hex.EncodeToString(b[:])
}

// watch probes the container until it ends.
func (w *worker) watch(ctx context.Context, r *running) {
	// Readiness is probed to the end, the others not once the pod has to end.
	probes, stop := context.WithCancel(w.ctx)
	defer stop()
	alive, stopAlive := both(probes, ctx)
	defer stopAlive()
	failed := make(chan string, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		w.probe(probes, alive, r, failed)
	}()
	defer func() { stop(); <-finished }()
	select {
	case <-r.Done():
	case why := <-failed:
		w.log.Info("container fails its probe and is killed", "container", r.spec.Name, "probe", why)
		w.stopOne(r, w.specGrace()) //nolint:contextcheck // it ends with the machine, not with the pod's life
		<-r.Done()
	}
}

// probe runs the startup probe, then liveness and readiness beside each other.
func (w *worker) probe(ctx, alive context.Context, r *running, failed chan<- string) {
	if p := r.spec.StartupProbe; p != nil {
		if !w.startup(alive, r, p, failed) {
			return
		}
		if r.spec.ReadinessProbe == nil {
			w.setReady(r, true)
		}
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if p := r.spec.LivenessProbe; p != nil {
			probe.Loop(alive, p, probe.NewCounter(true, p), w.once(r, p), func(verdict, reached bool, _ error) {
				if !verdict && reached {
					fail(failed, "liveness")
				}
			})
		}
	}()
	if p := r.spec.ReadinessProbe; p != nil {
		probe.Loop(ctx, p, probe.NewCounter(false, p), w.once(r, p), func(verdict, _ bool, _ error) { w.setReady(r, verdict) })
	}
	<-finished
}

// startup returns true once the startup probe has passed.
func (w *worker) startup(ctx context.Context, r *running, p *v1.Probe, failed chan<- string) (passed bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	probe.Loop(ctx, p, probe.NewCounter(false, p), w.once(r, p), func(verdict, reached bool, _ error) {
		switch {
		case verdict:
			passed = true
			w.update(func() {
				got := w.rt.Containers[r.spec.Name]
				got.Started = true
				w.rt.Containers[r.spec.Name] = got
			})
			stop()
		case reached:
			fail(failed, "startup")
			stop()
		}
	})
	return passed
}

func fail(failed chan<- string, why string) {
	select {
	case failed <- why:
	default:
	}
}

func (w *worker) once(r *running, p *v1.Probe) func(context.Context) error {
	return func(ctx context.Context) error { return probe.Once(ctx, p.ProbeHandler, r.spec, w.ip()) }
}

// ip is the pod's published address of the primary family.
func (w *worker) ip() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rt.PodIPs) == 0 {
		return ""
	}
	return w.rt.PodIPs[0]
}

// setReady notes what the probe found; the control API may overrule it.
func (w *worker) setReady(r *running, ready bool) {
	w.update(func() {
		r.ready = ready
		w.judge(r)
	})
}

// judge makes a container's readiness what it is to be; the caller holds w.mu.
func (w *worker) judge(r *running) {
	got := w.rt.Containers[r.spec.Name]
	if w.running[r.spec.Name] != r || got.State.Running == nil {
		return
	}
	got.Ready = r.ready
	if w.forced != nil {
		got.Ready = *w.forced
	}
	w.rt.Containers[r.spec.Name] = got
}

// steer tells a built-in server what the control API wants of its pod; the
// caller holds w.mu.
func (w *worker) steer(r *running) {
	if s, ok := r.Running.(*container.Server); ok {
		s.SetReady(w.forced == nil || *w.forced)
		s.SetHealth(w.health)
	}
}

func (w *worker) exited(r *running, e container.Exit) {
	w.update(func() {
		delete(w.running, r.spec.Name)
		got := w.rt.Containers[r.spec.Name]
		end := &v1.ContainerStateTerminated{
			ExitCode: int32(e.Code), Reason: e.Reason, Message: e.Message,
			FinishedAt: metav1.NewTime(e.At), ContainerID: got.ID,
		}
		if got.State.Running != nil {
			end.StartedAt = got.State.Running.StartedAt
		}
		got.State, got.Ready, got.Started = v1.ContainerState{Terminated: end}, false, false
		w.rt.Containers[r.spec.Name] = got
	})
}

func (w *worker) setBackoff(c *v1.Container, wait time.Duration) {
	w.setWaiting(c, "CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", wait, c.Name, w.name, w.namespace, w.uid))
}

func (w *worker) setWaiting(c *v1.Container, reason, message string) {
	w.update(func() {
		got := w.rt.Containers[c.Name]
		if got.State.Terminated != nil {
			got.Last = got.State
		}
		got.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
		w.rt.Containers[c.Name] = got
	})
}
