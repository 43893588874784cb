package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// clock passes when somebody waits.
type clock struct {
	at    time.Time
	waits []time.Duration
	stop  context.CancelFunc // called in the first wait, if set
}

func (c *clock) poller() poller {
	return poller{now: func() time.Time { return c.at }, pause: func(ctx context.Context, d time.Duration) error {
		c.at = c.at.Add(d)
		c.waits = append(c.waits, d)
		if c.stop != nil {
			c.stop()
		}
		return ctx.Err()
	}}
}

func TestPoller(t *testing.T) {
	c := &clock{}
	looks := 0
	done, err := c.poller().until(context.Background(), time.Minute, func() (bool, bool, error) { looks++; return false, false, nil })
	if done || err != nil || c.at.Sub(time.Time{}) != time.Minute || looks != len(c.waits)+1 {
		t.Errorf("%t, %v after %v and %d looks", done, err, c.at.Sub(time.Time{}), looks)
	}
	for _, d := range c.waits[:len(c.waits)-1] {
		if d < pollEvery*3/4 || d > pollEvery*5/4 {
			t.Errorf("waited %v between two looks", d)
		}
	}
	c = &clock{}
	if _, err := c.poller().until(context.Background(), time.Hour, func() (bool, bool, error) { return false, true, nil }); err != nil {
		t.Error(err)
	}
	if last := c.waits[10]; last < pollSlow*3/4 || last > pollSlow*5/4 {
		t.Errorf("waited %v although it was told to ask less often", last)
	}
}

// slowGroups is throttled, gone or empty for some looks first.
type slowGroups struct {
	*place
	errs []error
}

func (g *slowGroups) Health(ctx context.Context, group claim.Group) (map[claim.Key]plan.Target, error) {
	if len(g.errs) > 0 {
		err := g.errs[0]
		g.errs = g.errs[1:]
		return nil, err
	}
	return g.place.Health(ctx, group)
}

func TestWait(t *testing.T) {
	for name, tt := range map[string]struct {
		want    int
		targets map[claim.Key]plan.Target
		errs    []error
		asking  error
		reached bool
		text    string
		err     error
	}{
		"reached":               {want: 1, reached: true, text: "web: 1 of 1 healthy (1 unhealthy) after 0 s"},
		"draining don't count":  {want: 1, targets: map[claim.Key]plan.Target{{ID: "a", Port: 1}: {Health: plan.Draining}}, text: "only 0 targets are registered"},
		"no targets":            {want: 1, targets: map[claim.Key]plan.Target{}, text: "holds no targets"},
		"no listener":           {want: 1, targets: map[claim.Key]plan.Target{{ID: "a", Port: 1}: {Health: plan.Unused, Reason: "Target.NotInUse"}}, text: "1 unused (Target.NotInUse): the group has no listener"},
		"unhealthy":             {want: 2, text: "1 unhealthy (Target.Timeout): the health check fails"},
		"throttled":             {want: 1, errs: []error{targetgroup.ErrThrottled, targetgroup.ErrUnavailable}, reached: true, text: "1 of 1 healthy"},
		"denied":                {want: 1, errs: []error{targetgroup.ErrDenied}, err: targetgroup.ErrDenied},
		"resync can't be asked": {want: 1, asking: errors.New("no queue"), reached: true, text: "1 of 1 healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := somewhere(), &clock{}
			if tt.targets != nil {
				p.health[groupARN] = tt.targets
			}
			asked := 0
			var progress bytes.Buffer
			wt := &waiter{poller: c.poller(), groups: &slowGroups{p, tt.errs}, ref: binding.GroupRef{Name: "web"}, progress: &progress,
				ask: func(_ context.Context, arn string) (string, error) {
					asked++
					if arn != groupARN {
						t.Errorf("asked for %s", arn)
					}
					return "id", tt.asking
				}}
			w, err := wt.run(context.Background(), tt.want, time.Minute)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if asked != 1 || (w.Request == "id") != (tt.asking == nil) {
				t.Errorf("asked %d times, request %q", asked, w.Request)
			}
			if err != nil {
				return
			}
			var out bytes.Buffer
			if err := write(&out, "text", w, w.text); err != nil {
				t.Fatal(err)
			}
			if w.Reached != tt.reached || !strings.Contains(out.String(), tt.text) {
				t.Errorf("reached %t, said\n%s\nwant %q", w.Reached, out.String(), tt.text)
			}
			if strings.Count(progress.String(), " of ") != 1 {
				t.Errorf("progress tells what didn't change, or nothing:\n%s", progress.String())
			}
		})
	}
}

// lateGroups come after some looks, and may go once more.
type lateGroups struct {
	*slowGroups
	looks int
}

func (g *lateGroups) Facts(ctx context.Context, ref binding.GroupRef) (targetgroup.Facts, error) {
	if g.looks--; g.looks >= 0 {
		return targetgroup.Facts{}, fmt.Errorf("%w: %s", targetgroup.ErrNotFound, lint.GroupName(ref))
	}
	return g.place.Facts(ctx, ref)
}

// A group that has just been made is waited for as long as its targets are.
func TestWait_NotThereYet(t *testing.T) {
	for name, tt := range map[string]struct {
		ref     binding.GroupRef
		looks   int
		errs    []error
		reached bool
		asked   int
		text    string
	}{
		"by name, it comes": {ref: binding.GroupRef{Name: "web"}, looks: 3, reached: true, asked: 1, text: "1 of 1 healthy"},
		"by ARN, it comes":  {ref: binding.GroupRef{ARN: groupARN}, looks: 3, reached: true, asked: 1, text: "1 of 1 healthy"},
		"known to one call, not yet to the other": {ref: binding.GroupRef{Name: "web"}, errs: []error{targetgroup.ErrNotFound, targetgroup.ErrNotFound},
			reached: true, asked: 1, text: "1 of 1 healthy"},
		"it never comes": {ref: binding.GroupRef{Name: "web"}, looks: 1000, text: "no such target group in this account"},
	} {
		t.Run(name, func(t *testing.T) {
			c, asked := &clock{}, 0
			var progress, out bytes.Buffer
			wt := &waiter{poller: c.poller(), groups: &lateGroups{&slowGroups{somewhere(), tt.errs}, tt.looks}, ref: tt.ref, progress: &progress,
				ask: func(context.Context, string) (string, error) { asked++; return "id", nil }}
			w, err := wt.run(context.Background(), 1, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if err := write(&out, "text", w, w.text); err != nil {
				t.Fatal(err)
			}
			if w.Reached != tt.reached || asked != tt.asked || !strings.Contains(out.String(), tt.text) {
				t.Errorf("reached %t, asked %d times, said\n%s\nwant %q", w.Reached, asked, out.String(), tt.text)
			}
			if !tt.reached && c.at.Sub(time.Time{}) != time.Minute {
				t.Errorf("waited %v", c.at.Sub(time.Time{}))
			}
			if strings.Count(progress.String(), "no such target group yet") != 1 {
				t.Errorf("progress says\n%s", progress.String())
			}
		})
	}
}

func TestWait_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	wt := &waiter{poller: (&clock{stop: cancel}).poller(), groups: somewhere(), ref: binding.GroupRef{Name: "web"}, progress: &bytes.Buffer{}}
	_, err := wt.run(ctx, 5, time.Minute)
	if exit, ok := errors.AsType[exitError](unlessInterrupted(ctx, err)); !ok || exit.code != 130 {
		t.Errorf("interrupted: %v", err)
	}
}
