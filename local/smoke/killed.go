package smoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/local/stack"
)

// resyncKilled kills the run while something differs: the schedule begins the
// next one within a minute, and that repairs.
func resyncKilled(ctx context.Context, r *Runner) (string, error) {
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	key, start := p.Status.PodIP+":8080", time.Now()
	if err := r.removeByHand(ctx, r.web, key); err != nil {
		return "", err
	}
	if !r.S.KillResync() {
		return "", errors.New("no run of resync to kill")
	}
	killed := time.Now()
	why, err := r.why(ctx, start, r.web, key, true)
	if err != nil {
		return "", err
	}
	took := time.Since(killed)
	if took > time.Minute+r.quiet() {
		return why, fmt.Errorf("repaired %s after the kill, want within a minute", took)
	}
	return fmt.Sprintf("%s, %.1f s after the kill", why, took.Seconds()), r.exactly(ctx, want{pods: 2, healthy: true})
}

// registrarKilled has the registrar dead during a scale-up.
func registrarKilled(ctx context.Context, r *Runner) (string, error) {
	r.S.StopRegistrar()
	stopped := true
	defer func() { //nolint:contextcheck // it lives as long as the stack
		if stopped {
			r.S.StartRegistrar()
		}
	}()
	start := time.Now()
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if r.Way == stack.WayBoth {
		if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
			return "", err
		}
	} else if err := r.S.WaitDeployment(ctx, "shop", "web", 4); err != nil {
		return "", err
	}
	dead := time.Since(start)
	r.S.StartRegistrar() //nolint:contextcheck // it lives as long as the stack
	stopped, start = false, time.Now()
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return "", err
	}
	note := fmt.Sprintf("dead for %.1f s, right %.1f s later", dead.Seconds(), time.Since(start).Seconds())
	if err := r.scale(ctx, "web", 2); err != nil {
		return note, err
	}
	return note, r.exactly(ctx, want{pods: 2, healthy: true})
}

// twoRuns: Lambda lets no second run begin. If one did all the same, here under
// another name, both would bring the group to the same end.
func twoRuns(ctx context.Context, r *Runner) (string, error) {
	switch _, err := r.S.Runner.Invoke(ctx, stack.Resync, []byte(`{}`)); {
	case err == nil:
		return "", errors.New("a second run began, want it refused: reserved concurrency is 1")
	case !errors.Is(err, functions.ErrThrottled):
		return "", fmt.Errorf("a second run, which is to be throttled: %w", err)
	}
	if _, err := r.S.Runner.InvokeAsync(ctx, stack.SecondResync, []byte(`{}`)); err != nil {
		return "", err
	}
	defer r.S.Runner.Kill(stack.SecondResync)
	if err := r.runs(ctx, stack.SecondResync); err != nil {
		return "", err
	}
	first := r.sequence()
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return "", err
	}
	keys, _, err := r.claims(ctx, "app=web")
	if err != nil {
		return "", err
	}
	if err := errors.Join(r.removeByHand(ctx, r.web, keys[0]), r.addByHand(ctx, r.web, strangeAddress)); err != nil {
		return "", err
	}
	if err := r.becomes(ctx, r.web, strangeAddress, "draining"); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return "", err
	}
	if err := r.scale(ctx, "web", 2); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 2, healthy: true}); err != nil {
		return "", err
	}
	err = r.stays(ctx, r.quiet(), r.web, "two runs agree", func(map[string]string) bool { return len(r.S.Held.Serving(r.web)) == 2 })
	calls := 0
	for _, rec := range r.S.Cloud.Server.Recorder.Since(first) {
		if byFunction(rec) && mutates(rec) {
			calls++
		}
	}
	return fmt.Sprintf("a second run is throttled; beside it: %d changing calls", calls), err
}

// runs waits until a function has an instance that works.
func (r *Runner) runs(ctx context.Context, function string) error {
	return r.until(ctx, function+" runs", func(context.Context) (bool, error) { return r.S.Runner.Stats(function).Concurrent > 0, nil })
}
