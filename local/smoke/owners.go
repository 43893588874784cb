package smoke

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/stack"
	"github.com/elbridge/elbridge/pkg/drift"
)

// emptied: a service moves from one group to another, requests going on to the
// new one; the old one is emptied in steps while its load balancer is in use.
func emptied(ctx context.Context, r *Runner) (string, error) {
	old, err := r.served(ctx, "old", 4, "")
	if err != nil {
		return "", err
	}
	if err := r.S.AWS.DrainFor(ctx, old.group, 2); err != nil { // a step waits until the one before it has drained
		return "", err
	}
	l := r.startLoad(ctx) // to web, which nobody empties
	defer l.stop()
	start := time.Now()
	if err := r.S.AWS.Rule(ctx, "old", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["old"]}}`, r.constants(old.group, `,"empty":true`)); err != nil {
		return "", err
	}
	steps, least := 0, len(r.S.Held.Serving(old.group))
	err = r.S.Held.Wait(ctx, old.group, func(map[string]string) (bool, error) {
		if n := len(r.S.Held.Serving(old.group)); n < least {
			steps, least = steps+1, n
		}
		return least == 0, nil
	})
	if err != nil {
		return "", err
	}
	l.stop()
	note := fmt.Sprintf("in %d steps, %.1f s; %d requests to the other group, %d lost", steps, time.Since(start).Seconds(), l.sent.Load(), l.lost.Load())
	switch {
	case steps < 2:
		return note, errors.New("the group was emptied at once, want it in steps")
	case l.lost.Load() > 0:
		return note, fmt.Errorf("requests were lost, the first with: %v", l.first.Load())
	}
	keys, _, err := r.claims(ctx, old.selector)
	if err != nil {
		return note, err
	}
	why, err := r.why(ctx, start, old.group, keys[0], false)
	if err != nil {
		return note, err
	}
	return note + ", " + why, errors.Join(r.scale(ctx, "old", 0), r.dropRule(ctx, "old"))
}

// twoOwners: two buses bind one group. Its owner's targets stay; the other bus
// registers what it selects, the owner removes it, and after a few times one of
// the two gives in and says so.
func twoOwners(ctx context.Context, r *Runner) (string, error) {
	w, err := r.served(ctx, "shared", 2, "")
	if err != nil {
		return "", err
	}
	if err := r.apply(ctx, pod("guest", "{app: guest}", "")); err != nil {
		return "", err
	}
	err = r.until(ctx, "the guest has an address", func(ctx context.Context) (bool, error) {
		p, err := r.named(ctx, "guest")
		return p.Status.PodIP != "", err
	})
	if err != nil {
		return "", err
	}
	p, err := r.named(ctx, "guest")
	if err != nil {
		return "", err
	}
	guest, owned, start := p.Status.PodIP+":8080", r.S.Held.Serving(w.group), time.Now()
	err = r.S.AWS.RuleOn(ctx, stack.OtherBus, stack.OtherQueueARN, "guest", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["guest"]}}`, r.constants(w.group, ""))
	if err != nil {
		return "", err
	}
	if _, err := r.S.Runner.InvokeAsync(ctx, stack.OtherResync, []byte(`{}`)); err != nil {
		return "", err
	}
	defer r.S.Runner.Kill(stack.OtherResync)
	kept := make(chan error, 1)
	watch, done := context.WithCancel(ctx)
	defer done()
	go func() {
		kept <- r.stays(watch, stepTimeout, w.group, "the owner's targets stay", func(t map[string]string) bool {
			for _, key := range owned {
				if t[key] != "healthy" {
					return false
				}
			}
			return true
		})
	}()
	// Its events go to the other bus, which has no audit log.
	if err := r.records(ctx, start, "Resync Completed", w.group, `\"drift\":\"`+string(drift.Flapping)+`\"`); err != nil {
		return "", err
	}
	told := time.Since(start)
	before := r.changesOf(guest, start)
	err = r.stays(ctx, r.rounds(fewRounds), w.group, "both look on", func(map[string]string) bool { return true })
	done()
	after := r.changesOf(guest, start)
	note := fmt.Sprintf("told of after %.1f s and %d changes, then %d in %d rounds", told.Seconds(), before, after-before, fewRounds)
	if err := errors.Join(err, <-kept); err != nil {
		return note, err
	}
	if after > maxPingPong {
		return note, fmt.Errorf("the guest's target was changed %d times, want at most %d", after, maxPingPong)
	}
	r.S.Runner.Kill(stack.OtherResync)
	// The pod goes, and what is left of it with it: the owner's at any rate.
	return note, r.deletePod(ctx, "guest", 0)
}

// maxPingPong is what the damping allows: six registrations and as many removals.
const maxPingPong = 12

// changesOf counts the calls of functions that changed a target.
func (r *Runner) changesOf(key string, since time.Time) (n int) {
	id, _, _ := strings.Cut(key, ":")
	for _, rec := range r.S.Cloud.Server.Recorder.Since(0) {
		if !rec.Time.Before(since) && byFunction(rec) && mutates(rec) && strings.Contains(rec.Params, id) {
			n++
		}
	}
	return n
}
