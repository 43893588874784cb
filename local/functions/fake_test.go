package functions

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// fleet starts fake instances and remembers them.
type fleet struct {
	mu      sync.Mutex
	started []*fakeInstance
	answer  func(n int, payload []byte) (outcome, error) // nth invocation of all, from 1
	endless bool                                         // invocations last until the instance is killed
	calls   int
	refuse  error // starting fails with it
}

func (f *fleet) launch(_ context.Context, _ Function, id string) (instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return nil, f.refuse
	}
	i := &fakeInstance{fleet: f, id: id, killed: make(chan struct{})}
	f.started = append(f.started, i)
	return i, nil
}

func (f *fleet) get(n int) *fakeInstance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started[n]
}

type fakeInstance struct {
	fleet *fleet
	id    string

	mu          sync.Mutex
	frozen      bool
	dead, ended bool
	killed      chan struct{} // an answer that waits for it has it end
}

func (i *fakeInstance) invoke(ctx context.Context, _ string, payload []byte) (outcome, error) {
	i.mu.Lock()
	if i.frozen || i.ended {
		i.mu.Unlock()
		return outcome{spent: true}, errors.New("invoked while frozen or ended")
	}
	i.mu.Unlock()
	i.fleet.mu.Lock()
	i.fleet.calls++
	n, answer, endless := i.fleet.calls, i.fleet.answer, i.fleet.endless
	i.fleet.mu.Unlock()
	if endless {
		select {
		case <-i.killed:
			return failure(errorTypeExit, "signal: killed"), nil
		case <-ctx.Done():
			return outcome{spent: true}, ctx.Err()
		}
	}
	if answer == nil {
		return outcome{payload: payload}, ctx.Err()
	}
	return answer(n, payload)
}

func (i *fakeInstance) freeze() error { return i.set(func() { i.frozen = true }) }
func (i *fakeInstance) thaw() error   { return i.set(func() { i.frozen = false }) }
func (i *fakeInstance) end()          { _ = i.set(func() { i.ended = true }) }

func (i *fakeInstance) kill() bool {
	close(i.killed)
	return true
}

func (i *fakeInstance) set(change func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
	return nil
}

func (i *fakeInstance) healthy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.dead
}

// is reports "running", "frozen" or "ended".
func (i *fakeInstance) is() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.ended:
		return "ended"
	case i.frozen:
		return "frozen"
	}
	return "running"
}

// clock moves when told; each Sleep ends at once, is noted, and moves it.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	sleeps []time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.sleeps = append(c.sleeps, d)
	return ctx.Err()
}

// faked returns a Runner of fake instances of one function, "f". Its reaper
// stands still.
func faked(t *testing.T, f *fleet, cfg Config, fn Function) *Runner {
	t.Helper()
	fn.Name = "f"
	fn.Bootstrap = filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(fn.Bootstrap, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg = cfg.withDefaults()
	wait := cfg.Sleep
	cfg.Sleep = func(ctx context.Context, d time.Duration) error {
		if d == cfg.IdleAfter/4 {
			<-ctx.Done()
			return ctx.Err()
		}
		return wait(ctx, d)
	}
	r, err := newRunner(cfg, f.launch, []Function{fn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func mustInvoke(t *testing.T, r *Runner, name, payload string) Result {
	t.Helper()
	res, err := r.Invoke(t.Context(), name, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
