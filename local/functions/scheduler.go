package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A Schedule is a scheduled rule with a function as its target.
type Schedule struct {
	RuleARN    string // arn:aws:events:REGION:ACCOUNT:rule/NAME
	Expression string // rate(...) or cron(...)
	Function   string
	Input      []byte // constant input; empty: the event that EventBridge makes
}

// A Scheduler fires scheduled rules: asynchronous invocations, as EventBridge
// makes them. A rate's first firing comes one period after the start.
type Scheduler struct {
	Invoker Invoker
	Log     *slog.Logger
	// Scale is how much faster than the wall clock scheduled time passes: at 60
	// a rule of a minute fires each second. 0 is 1.
	Scale float64
	// Now and Sleep are the wall clock.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error

	mu    sync.Mutex
	fired map[string]int // by rule ARN
}

// Fired returns how often a rule has fired.
func (s *Scheduler) Fired(ruleARN string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fired[ruleARN]
}

// Run fires the given schedules until ctx ends. An error, before anything is
// fired, names every schedule that cannot be read.
func (s *Scheduler) Run(ctx context.Context, schedules ...Schedule) error {
	s.defaults()
	start := s.Now()
	expressions := make([]expression, len(schedules))
	var errs []error
	for i, sc := range schedules {
		x, err := parseExpression(sc.Expression)
		if err == nil && x.Next(start).IsZero() {
			err = fmt.Errorf("schedule %q: never fires", sc.Expression)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rule %s: %w", sc.RuleARN, err))
		}
		expressions[i] = x
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var running sync.WaitGroup
	for i, sc := range schedules {
		running.Go(func() { s.keepFiring(ctx, sc, expressions[i], start) })
	}
	running.Wait()
	return nil
}

func (s *Scheduler) defaults() {
	if s.Scale == 0 {
		s.Scale = 1
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Sleep == nil {
		s.Sleep = sleep
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.fired = make(map[string]int)
}

// keepFiring counts in scheduled time from one firing to the next, so that slow
// invocations don't shift it. Firings missed while the machine slept are left
// out.
func (s *Scheduler) keepFiring(ctx context.Context, sc Schedule, x expression, start time.Time) {
	due := x.Next(start)
	for !due.IsZero() { // a cron expression may have no further time
		scheduled := start.Add(time.Duration(float64(s.Now().Sub(start)) * s.Scale))
		if wait := due.Sub(scheduled); wait > 0 {
			if s.Sleep(ctx, time.Duration(float64(wait)/s.Scale)) != nil {
				return
			}
			continue
		}
		s.fire(ctx, sc, due)
		for due = x.Next(due); !due.IsZero() && !due.After(scheduled); due = x.Next(due) {
			s.Log.Debug("firing missed", "rule", sc.RuleARN, "due", due)
		}
	}
}

func (s *Scheduler) fire(ctx context.Context, sc Schedule, due time.Time) {
	input := sc.Input
	if len(input) == 0 {
		input = scheduledEvent(sc.RuleARN, due)
	}
	id, err := s.Invoker.InvokeAsync(ctx, sc.Function, input)
	if err != nil {
		s.Log.Warn("scheduled invocation refused", "rule", sc.RuleARN, "function", sc.Function, "err", err)
		return
	}
	s.Log.Debug("rule fired", "rule", sc.RuleARN, "function", sc.Function, "request_id", id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fired[sc.RuleARN]++
}

// scheduledEvent is what EventBridge sends to a target without constant input.
func scheduledEvent(ruleARN string, at time.Time) []byte {
	var region, account string
	if f := strings.SplitN(ruleARN, ":", 6); len(f) == 6 {
		region, account = f[3], f[4]
	}
	event, _ := json.Marshal(map[string]any{ // strings always encode
		"version":     "0",
		"id":          newRequestID(),
		"detail-type": "Scheduled Event",
		"source":      "aws.events",
		"account":     account,
		"time":        at.UTC().Format(time.RFC3339),
		"region":      region,
		"resources":   []string{ruleARN},
		"detail":      struct{}{},
	})
	return event
}
