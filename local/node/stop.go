package node

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/probe"
)

const defaultGrace = 30 * time.Second

// specGrace is the grace period that the pod asks for itself.
func (w *worker) specGrace() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultGrace
}

// stopContainers ends what still runs, within the pod's deadline, or within its
// own grace period if it ended by itself: main containers together, then sidecars
// in reverse order. A new sandbox does not ask.
func (w *worker) stopContainers() {
	mains, sidecars := w.runningNow()
	grace := w.specGrace()
	if w.isAgain() {
		grace = 0
	}
	var wg sync.WaitGroup
	for _, r := range mains {
		wg.Go(func() { w.stopOne(r, grace) })
	}
	wg.Wait()
	for _, r := range sidecars {
		w.stopOne(r, grace)
	}
}

// runningNow lists what runs: main containers, and sidecars in the order of their end.
func (w *worker) runningNow() (mains, sidecars []*running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.pod.Spec.InitContainers {
		if r := w.running[w.pod.Spec.InitContainers[i].Name]; r != nil {
			sidecars = append(sidecars, r)
		}
	}
	for i := range w.pod.Spec.Containers {
		if r := w.running[w.pod.Spec.Containers[i].Name]; r != nil {
			mains = append(mains, r)
		}
	}
	slices.Reverse(sidecars)
	return mains, sidecars
}

func (w *worker) isAgain() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.again
}

// stopOne ends one container: preStop, SIGTERM, and SIGKILL when its time is up.
// The hook and the signal share the grace period; after the hook there are at
// least MinGrace left. grace counts where the pod itself has no deadline.
func (w *worker) stopOne(r *running, grace time.Duration) {
	now := w.host.agent.now
	limit := now().Add(grace)
	if hook := preStop(r.spec); hook != nil && grace > 0 {
		ctx, cancel := context.WithCancel(w.ctx)
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			w.runHook(ctx, r, hook)
		}()
		w.await(finished, r.Done(), limit, time.Time{})
		cancel()
		<-finished
	}
	r.Terminate()
	w.await(r.Done(), nil, limit, now().Add(w.host.agent.cfg.MinGrace))
	r.Kill()
	<-r.Done()
}

func preStop(c *v1.Container) *v1.LifecycleHandler {
	if c.Lifecycle == nil {
		return nil
	}
	return c.Lifecycle.PreStop
}

// await returns when either channel is closed, at the pod's deadline (limit, if
// it has none) but not before the minimum, and soon when the agent stops.
func (w *worker) await(a, b <-chan struct{}, limit, minimum time.Time) {
	stopping := w.ctx.Done()
	var lastCall <-chan time.Time
	for {
		at, changed := w.deadlineNow()
		if at.IsZero() {
			at = limit
		}
		if at.Before(minimum) {
			at = minimum
		}
		t := time.NewTimer(at.Sub(w.host.agent.now()))
		select {
		case <-a:
		case <-b:
		case <-t.C:
		case <-lastCall:
		case <-changed:
			t.Stop()
			continue
		case <-stopping:
			t.Stop()
			if w.isLost() {
				return
			}
			stopping, lastCall = nil, time.After(w.host.agent.cfg.MinGrace)
			continue
		}
		t.Stop()
		return
	}
}

func (w *worker) deadlineNow() (time.Time, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deadline.at, w.deadline.changed
}

// runHook carries out a preStop hook. Commands are not run, but a sleep is one.
func (w *worker) runHook(ctx context.Context, r *running, hook *v1.LifecycleHandler) {
	switch {
	case hook.Sleep != nil:
		sleep(ctx, time.Duration(hook.Sleep.Seconds)*time.Second)
	case hook.HTTPGet != nil:
		if err := probe.Get(ctx, hook.HTTPGet, r.spec, w.ip()); err != nil && ctx.Err() == nil {
			w.log.Warn("preStop hook failed", "container", r.spec.Name, "err", err)
		}
	case hook.Exec != nil:
		if d, ok := sleepCommand(hook.Exec.Command); ok {
			sleep(ctx, d)
		}
	}
}

// sleepCommand recognises "sleep 10", "/bin/sleep 10s" and "sh -c 'sleep 10'".
func sleepCommand(command []string) (time.Duration, bool) {
	words := command
	if script, ok := shellScript(command); ok {
		words = strings.Fields(script)
	}
	if len(words) != 2 || (words[0] != "sleep" && !strings.HasSuffix(words[0], "/sleep")) {
		return 0, false
	}
	if words[1] == "infinity" || words[1] == "inf" {
		return 100 * 365 * 24 * time.Hour, true
	}
	if seconds, err := strconv.ParseFloat(words[1], 64); err == nil && seconds >= 0 {
		return time.Duration(seconds * float64(time.Second)), true
	}
	d, err := time.ParseDuration(words[1])
	return d, err == nil && d >= 0
}

// shellScript is the script of "sh -c script".
func shellScript(command []string) (string, bool) {
	if len(command) == 3 && command[1] == "-c" {
		return command[2], true
	}
	return "", false
}
