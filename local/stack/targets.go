package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb"
)

// pollEvery is how often a condition of the cluster is looked at.
const pollEvery = 50 * time.Millisecond

// Targets mirrors what target groups hold, fed by the local ELB's own changes:
// looking at it spends nothing of the account's Describe rate.
type Targets struct {
	mu      sync.Mutex
	groups  map[string]map[string]string // group ARN, "ip:port", state
	changed chan struct{}
}

// NewTargets returns an empty mirror; its On is a Config.OnTarget.
func NewTargets() *Targets {
	return &Targets{groups: map[string]map[string]string{}, changed: make(chan struct{})}
}

// TargetKey writes a change's target as "ip:port".
func TargetKey(c elb.Change) string { return fmt.Sprintf("%s:%d", c.Target.ID, c.Target.Port) }

// On takes one change.
func (t *Targets) On(c elb.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[c.GroupARN]
	if g == nil {
		g = map[string]string{}
		t.groups[c.GroupARN] = g
	}
	key := TargetKey(c)
	if c.To.State == "" {
		delete(g, key)
	} else {
		g[key] = c.To.State
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// Of returns the group's targets and their states now.
func (t *Targets) Of(group string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]string{}
	for k, s := range t.groups[group] {
		out[k] = s
	}
	return out
}

// Serving returns the targets of the group that are not draining, sorted.
func (t *Targets) Serving(group string) []string {
	var out []string
	for k, s := range t.Of(group) {
		if s != "draining" {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// Wait waits until ok says yes of the group's targets, looking at every change
// and every pollEvery, since what ok compares them with moves too.
func (t *Targets) Wait(ctx context.Context, group string, ok func(targets map[string]string) (bool, error)) error {
	for {
		t.mu.Lock()
		changed := t.changed
		t.mu.Unlock()
		done, err := ok(t.Of(group))
		if err != nil || done {
			return err
		}
		select {
		case <-changed:
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("%w: the group holds %s", ctx.Err(), describe(t.Of(group)))
		}
	}
}

func describe(targets map[string]string) string {
	if len(targets) == 0 {
		return "nothing"
	}
	var out []string
	for k, s := range targets {
		out = append(out, k+" "+s)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
