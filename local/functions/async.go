package functions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// maxQueued bounds the asynchronous events of a Runner that are not done yet.
const maxQueued = 10_000

// Dropped is an asynchronous event that was given up.
type Dropped struct {
	Function  string
	RequestID string
	Payload   []byte
	Tries     int    // invocations made
	Reason    string // "RetriesExhausted" or "EventAgeExceeded", as Lambda words it
	Last      Result // the last failure, if there was an invocation
}

// InvokeAsync queues one event and returns its request id at once. As Lambda
// does it, a failed invocation is repeated under the same id, by default twice,
// after 1 and 2 minutes; a throttled one comes again after 1 s, then 2 s, ... up
// to 5 minutes, until the event is too old. Events given up go to
// Config.OnDropped.
func (r *Runner) InvokeAsync(_ context.Context, name string, payload []byte) (requestID string, err error) {
	p, ok := r.pools[name]
	if !ok {
		return "", fmt.Errorf("invoking %q asynchronously: %w", name, ErrNotFound)
	}
	if len(payload) > maxAsyncPayload {
		return "", fmt.Errorf("invoking %s asynchronously with %d bytes: %w: want at most %d", name, len(payload), ErrTooLarge, maxAsyncPayload)
	}
	if r.queued.Add(1) > maxQueued {
		r.queued.Add(-1)
		return "", fmt.Errorf("invoking %s asynchronously: %d events wait already: %w", name, maxQueued, ErrThrottled)
	}
	e := &event{id: newRequestID(), payload: payload, queued: r.cfg.Now()}
	if !r.goes(func() {
		defer r.queued.Add(-1)
		r.deliver(p, e)
	}) {
		r.queued.Add(-1)
		return "", fmt.Errorf("invoking %s asynchronously: %w", name, ErrClosed)
	}
	return e.id, nil
}

// event is one asynchronous invocation on its way.
type event struct {
	id      string
	payload []byte
	queued  time.Time

	failures  int // invocations that ended in a function error
	throttles int // in a row
	last      Result
}

func (r *Runner) deliver(p *pool, e *event) {
	for {
		result, err := r.invoke(r.ctx, p.fn.Name, e.id, e.payload)
		if err == nil && result.FunctionError == "" {
			return
		}
		if errors.Is(err, ErrClosed) || r.ctx.Err() != nil {
			return
		}
		if err == nil {
			e.last = result
		}
		wait := e.failed(err)
		switch {
		case e.failures > p.fn.AsyncRetries:
			r.drop(p, e, "RetriesExhausted")
			return
		case r.cfg.Now().Add(wait).Sub(e.queued) > p.fn.AsyncMaxAge:
			r.drop(p, e, "EventAgeExceeded")
			return
		}
		if r.cfg.Sleep(r.ctx, wait) != nil {
			return
		}
	}
}

// failed counts a failure and returns how long to wait before the next try:
// errors of the function by the minute, everything else from 1 s, doubling.
func (e *event) failed(err error) time.Duration {
	if err == nil {
		e.failures++
		e.throttles = 0
		return time.Duration(e.failures) * time.Minute
	}
	e.throttles++
	return min(time.Second<<min(e.throttles-1, 16), 5*time.Minute)
}

func (r *Runner) drop(p *pool, e *event, reason string) {
	p.count(func(s *Stats) { s.Dropped++ })
	level := slog.LevelWarn
	if e.failures == 0 { // it never had its turn, as a schedule's during a long run
		level = slog.LevelInfo
	}
	r.cfg.Log.Log(r.ctx, level, "asynchronous event dropped", "function", p.fn.Name, "request_id", e.id, "reason", reason, "err", e.last.ErrorMessage)
	if r.cfg.OnDropped != nil {
		r.cfg.OnDropped(Dropped{
			Function: p.fn.Name, RequestID: e.id, Payload: e.payload, Tries: e.failures, Reason: reason, Last: e.last,
		})
	}
}
