package functions

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// ruleReread is how long a new or changed rule may go unnoticed.
const ruleReread = time.Second

// A Scheduler keeps the time for scheduled rules. What a rule does when it fires
// is the bus's affair. A rate's first firing comes one period after the rule was
// first seen; firings missed while the machine slept are left out.
type Scheduler struct {
	// Rules returns the expressions of the enabled rules by rule ARN. It is asked
	// again each second, so that rules may come, change and go.
	Rules func() map[string]string
	// Fire fires one rule; at is when it was due.
	Fire func(ruleARN string, at time.Time) error
	// Scale is how much faster than the wall clock scheduled time passes: at 60
	// a rule of a minute fires each second. 0 is 1.
	Scale float64
	Log   *slog.Logger // default: none
	// Now and Sleep are the wall clock.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// timetable knows when each rule is due, in scheduled time.
type timetable map[string]*entry

type entry struct {
	text string
	expression
	due time.Time // zero: never
}

// Run keeps the time until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	s.defaults()
	start := s.Now()
	table := timetable{}
	for {
		now := start.Add(time.Duration(float64(s.Now().Sub(start)) * s.Scale))
		s.reread(table, now)
		wait := time.Duration(float64(s.fireDue(table, now)) / s.Scale)
		if s.Sleep(ctx, min(wait, ruleReread)) != nil {
			return
		}
	}
}

func (s *Scheduler) defaults() {
	if s.Scale <= 0 {
		s.Scale = 1
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Sleep == nil {
		s.Sleep = sleep
	}
}

// reread brings the table up to date with the rules.
func (s *Scheduler) reread(table timetable, now time.Time) {
	rules := s.Rules()
	for arn := range table {
		if _, ok := rules[arn]; !ok {
			delete(table, arn)
		}
	}
	for arn, text := range rules {
		if e := table[arn]; e != nil && e.text == text {
			continue
		}
		e := &entry{text: text}
		table[arn] = e
		x, err := parseExpression(text)
		if err == nil {
			e.expression, e.due = x, x.Next(now)
			if e.due.IsZero() {
				err = fmt.Errorf("schedule %q: never fires", text)
			}
		}
		if err != nil {
			s.Log.Warn("rule will not fire", "rule", arn, "err", err)
		}
	}
}

// fireDue fires what is due, each rule once, and returns the scheduled time
// until the next one, an hour at most.
func (s *Scheduler) fireDue(table timetable, now time.Time) time.Duration {
	wait := time.Hour
	for arn, e := range table {
		if e.due.IsZero() {
			continue
		}
		if !e.due.After(now) {
			if err := s.Fire(arn, e.due); err != nil {
				s.Log.Warn("rule did not fire", "rule", arn, "err", err)
			}
			e.pass(now)
		}
		if !e.due.IsZero() {
			wait = min(wait, e.due.Sub(now))
		}
	}
	return wait
}

// pass moves due on to the first time after now, in step with what it was.
func (e *entry) pass(now time.Time) {
	for !e.due.IsZero() && !e.due.After(now) {
		e.due = e.Next(e.due)
	}
}
