package functions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/local/proc"
)

// What an invocation is refused for before it reaches a function.
var (
	ErrNotFound  = errors.New("no such function")
	ErrThrottled = errors.New("throttled: the maximum concurrency is reached")
	ErrTooLarge  = errors.New("payload too large")
	ErrClosed    = errors.New("the runner is closed")
)

// Lambda's payload limits in bytes: 6 MB synchronous, request and response, and
// 1 MB asynchronous.
const (
	maxSyncPayload  = 6 << 20
	maxAsyncPayload = 1 << 20
)

// A Result is what a function made of one invocation. A failed invocation is a
// Result too: FunctionError is then "Unhandled", as Lambda says for all failures
// of a custom runtime, and Payload is the error's JSON.
type Result struct {
	RequestID     string
	Payload       []byte
	FunctionError string // "" or "Unhandled"
	ErrorType     string // "errorString", "Runtime.ExitError", "Sandbox.Timedout", ...
	ErrorMessage  string
	Instance      string
	ColdStart     bool          // the invocation started its instance
	Duration      time.Duration // from the call to the answer, start of the instance included
}

// A Runner runs functions. Make one with New and end it with Close, which
// leaves no process behind.
type Runner struct {
	cfg     Config
	pools   map[string]*pool
	starter *proc.Starter // nil if the instances are no processes

	ctx    context.Context // ends with Close: what runs for nobody in particular
	cancel context.CancelFunc
	mu     sync.Mutex // guards closed and additions to work
	closed bool
	work   sync.WaitGroup // invocations, asynchronous events, the reaper

	queued    atomic.Int64 // asynchronous events not done yet
	instances atomic.Int64 // numbers instances
}

// New returns a Runner of the given functions. No process starts before it is
// needed. Errors name every fault of every function.
func New(cfg Config, fns ...Function) (*Runner, error) {
	cfg = cfg.withDefaults()
	starter := proc.New()
	l := &launcher{cfg: cfg, starter: starter, ports: newPorts()}
	r, err := newRunner(cfg, l.launch, fns)
	if err != nil {
		starter.Close()
		return nil, err
	}
	r.starter = starter
	return r, nil
}

type launch func(ctx context.Context, fn Function, id string) (instance, error)

func newRunner(cfg Config, start launch, fns []Function) (*Runner, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{cfg: cfg, pools: make(map[string]*pool, len(fns)), ctx: ctx, cancel: cancel}
	var errs []error
	for _, fn := range fns {
		fn = fn.withDefaults()
		if err := fn.validate(); err != nil {
			errs = append(errs, err)
			continue
		}
		if _, twice := r.pools[fn.Name]; twice {
			errs = append(errs, fmt.Errorf("function %s: given twice", fn.Name))
			continue
		}
		r.pools[fn.Name] = &pool{fn: fn, start: start}
	}
	if err := errors.Join(errs...); err != nil {
		cancel()
		return nil, err
	}
	r.work.Go(r.reap)
	return r, nil
}

// Close ends all instances at once, what they are doing included, and waits for
// the processes' end. Asynchronous events still waiting are lost.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.work.Wait()
	for _, p := range r.pools {
		p.endIdle(func(*member) bool { return true })
	}
	if r.starter != nil {
		r.starter.Close()
	}
}

// Names lists the functions, sorted.
func (r *Runner) Names() []string {
	names := make([]string, 0, len(r.pools))
	for name := range r.pools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Function returns what is known of a function, defaults filled in.
func (r *Runner) Function(name string) (Function, bool) {
	p, ok := r.pools[name]
	if !ok {
		return Function{}, false
	}
	return p.fn, true
}

// Invoke runs a function and waits for its answer. An error means that the
// function did not run to an answer: ErrNotFound, ErrThrottled, ErrTooLarge,
// ErrClosed, the end of ctx, or a broken instance. When ctx ends first the
// function goes on, as after a Lambda client's hang-up.
func (r *Runner) Invoke(ctx context.Context, name string, payload []byte) (Result, error) {
	return r.invoke(ctx, name, newRequestID(), payload)
}

func (r *Runner) invoke(ctx context.Context, name, requestID string, payload []byte) (Result, error) {
	p, ok := r.pools[name]
	if !ok {
		return Result{}, fmt.Errorf("invoking %q: %w", name, ErrNotFound)
	}
	if len(payload) > maxSyncPayload {
		return Result{}, fmt.Errorf("invoking %s with %d bytes: %w: want at most %d", name, len(payload), ErrTooLarge, maxSyncPayload)
	}
	if len(payload) == 0 {
		payload = []byte("{}") // as Lambda hands on an empty body
	}
	type answer struct {
		result Result
		err    error
	}
	done := make(chan answer, 1)
	if !r.goes(func() { //nolint:contextcheck // goes on when the caller hangs up
		result, err := r.run(p, requestID, payload)
		done <- answer{result, err}
	}) {
		return Result{}, fmt.Errorf("invoking %s: %w", name, ErrClosed)
	}
	select {
	case a := <-done:
		if a.err != nil {
			return Result{}, fmt.Errorf("invoking %s: %w", name, a.err)
		}
		return a.result, nil
	case <-ctx.Done():
		return Result{}, fmt.Errorf("invoking %s: %w", name, ctx.Err())
	}
}

// Kill kills (SIGKILL) the instances of a function that run an invocation now
// and returns how many: their invocations end as those of a function that
// exited.
func (r *Runner) Kill(name string) int {
	p, ok := r.pools[name]
	if !ok {
		return 0
	}
	return p.kill()
}

// goes runs work in a goroutine that Close waits for, unless Close came first.
func (r *Runner) goes(work func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.work.Go(work)
	return true
}

// run takes one invocation from start to end on an instance of its own.
func (r *Runner) run(p *pool, requestID string, payload []byte) (Result, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.ctx, p.fn.Timeout+answerSlack)
	defer cancel()
	m, cold, err := p.acquire(ctx, r.newID)
	if err != nil {
		return Result{}, err
	}
	out, err := m.instance.invoke(ctx, requestID, payload)
	if err == nil && len(out.payload) > maxSyncPayload {
		spent := out.spent
		out = failure("Function.ResponseSizeTooLarge", fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxSyncPayload))
		out.spent = spent
	}
	p.release(m, r.cfg.Now(), out, err)
	if err != nil {
		level := slog.LevelWarn
		if r.ctx.Err() != nil { // Close ended it
			level = slog.LevelDebug
		}
		r.cfg.Log.Log(r.ctx, level, "instance lost", "function", p.fn.Name, "instance", m.id, "request_id", requestID, "err", err)
		return Result{}, err
	}
	res := Result{
		RequestID: requestID, Payload: out.payload, ErrorType: out.errorType, ErrorMessage: out.errorMessage,
		Instance: m.id, ColdStart: cold, Duration: time.Since(began),
	}
	if out.failed {
		res.FunctionError = "Unhandled"
	}
	return res, nil
}

// newRequestID returns a random UUID, the form of Lambda's request ids.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (r *Runner) newID(p *pool) string {
	return fmt.Sprintf("%s-%d", p.fn.Name, r.instances.Add(1))
}

// reap ends instances that have been idle for too long.
func (r *Runner) reap() {
	for r.cfg.Sleep(r.ctx, r.cfg.IdleAfter/4) == nil {
		before := r.cfg.Now().Add(-r.cfg.IdleAfter)
		for _, p := range r.pools {
			p.endIdle(func(m *member) bool { return m.used.Before(before) })
		}
	}
}
