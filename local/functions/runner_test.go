package functions

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInstanceIsReusedAndFrozenBetween(t *testing.T) {
	f := &fleet{}
	r := faked(t, f, Config{}, Function{})
	if res := mustInvoke(t, r, "f", `{"a":1}`); !res.ColdStart || string(res.Payload) != `{"a":1}` {
		t.Errorf("first invocation: cold %v, payload %s", res.ColdStart, res.Payload)
	}
	if got := f.get(0).is(); got != "frozen" {
		t.Errorf("after the first invocation the instance is %s, want frozen", got)
	}
	if res := mustInvoke(t, r, "f", ``); res.ColdStart || string(res.Payload) != `{}` {
		t.Errorf("second invocation: cold %v, payload %s, want warm and {}", res.ColdStart, res.Payload)
	}
	if s := r.Stats("f"); s.Invocations != 2 || s.ColdStarts != 1 || s.Instances != 1 || s.Concurrent != 0 {
		t.Errorf("counts %+v", s)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	open := make(chan struct{})
	f := &fleet{answer: func(int, []byte) (outcome, error) {
		<-open
		return outcome{}, nil
	}}
	r := faked(t, f, Config{}, Function{MaxConcurrency: 2})
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := r.Invoke(t.Context(), "f", nil)
			errs <- err
		}()
	}
	eventually(t, "two invocations run", func() bool { return r.Stats("f").Concurrent == 2 })
	if _, err := r.Invoke(t.Context(), "f", nil); !errors.Is(err, ErrThrottled) {
		t.Errorf("third at a time: %v, want ErrThrottled", err)
	}
	close(open)
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if s := r.Stats("f"); s.Throttles != 1 || s.MaxConcurrent != 2 || s.Instances != 2 {
		t.Errorf("counts %+v", s)
	}
}

func TestSpentInstancesAreReplaced(t *testing.T) {
	tests := map[string]struct {
		first     outcome
		firstErr  error
		instances int // started after a second invocation
		want      Stats
	}{
		"function error": {first: outcome{failed: true, errorType: "errorString"}, instances: 1,
			want: Stats{Invocations: 2, Errors: 1, ColdStarts: 1}},
		"time-out": {first: failure(errorTypeTimeout, "late"), instances: 2,
			want: Stats{Invocations: 2, Errors: 1, Timeouts: 1, ColdStarts: 2}},
		"crash": {first: failure(errorTypeExit, "exit status 2"), instances: 2,
			want: Stats{Invocations: 2, Errors: 1, Crashes: 1, ColdStarts: 2}},
		"broken emulator": {firstErr: errors.New("connection refused"), instances: 2,
			want: Stats{Invocations: 2, Lost: 1, ColdStarts: 2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fleet{answer: func(n int, _ []byte) (outcome, error) {
				if n == 1 {
					return tt.first, tt.firstErr
				}
				return outcome{}, nil
			}}
			r := faked(t, f, Config{}, Function{})
			res, err := r.Invoke(t.Context(), "f", nil)
			if (err != nil) != (tt.firstErr != nil) {
				t.Errorf("first: error %v, want %v", err, tt.firstErr)
			}
			if tt.first.failed && (res.FunctionError != "Unhandled" || res.ErrorType != tt.first.errorType) {
				t.Errorf("first: %+v", res)
			}
			mustInvoke(t, r, "f", "")
			if len(f.started) != tt.instances {
				t.Errorf("%d instances started, want %d", len(f.started), tt.instances)
			}
			tt.want.MaxConcurrent, tt.want.Instances = 1, 1
			if s := r.Stats("f"); s != tt.want {
				t.Errorf("counts %+v, want %+v", s, tt.want)
			}
			if tt.instances == 2 && f.get(0).is() != "ended" {
				t.Error("the spent instance was not ended")
			}
		})
	}
}

func TestInstanceThatDiedWhileIdleIsReplaced(t *testing.T) {
	f := &fleet{}
	r := faked(t, f, Config{}, Function{MaxConcurrency: 1})
	mustInvoke(t, r, "f", "")
	_ = f.get(0).set(func() { f.get(0).dead = true })
	if res := mustInvoke(t, r, "f", ""); !res.ColdStart {
		t.Error("want a new instance")
	}
	if s := r.Stats("f"); s.Invocations != 2 || s.Crashes != 1 || s.Instances != 1 {
		t.Errorf("counts %+v", s)
	}
}

func TestStartThatFailsLeavesRoom(t *testing.T) {
	f := &fleet{refuse: errors.New("no emulator")}
	r := faked(t, f, Config{}, Function{MaxConcurrency: 1})
	for range 2 {
		if _, err := r.Invoke(t.Context(), "f", nil); err == nil || errors.Is(err, ErrThrottled) {
			t.Errorf("error %v, want the start's", err)
		}
	}
	if s := r.Stats("f"); s.Instances != 0 || s.Concurrent != 0 || s.Lost != 2 {
		t.Errorf("counts %+v", s)
	}
}

func TestIdleInstancesAreReaped(t *testing.T) {
	c := &clock{now: time.Unix(1_800_000_000, 0)}
	f := &fleet{}
	r := faked(t, f, Config{Now: c.Now, IdleAfter: time.Minute}, Function{})
	mustInvoke(t, r, "f", "")
	p := r.pools["f"]
	old := func(m *member) bool { return m.used.Before(c.Now().Add(-time.Minute)) }
	c.advance(time.Minute)
	if p.endIdle(old); f.get(0).is() != "frozen" {
		t.Error("ended too early")
	}
	c.advance(time.Second)
	if p.endIdle(old); f.get(0).is() != "ended" {
		t.Error("not ended after a minute without use")
	}
	if s := r.Stats("f"); s.Instances != 0 || s.Reaped != 1 {
		t.Errorf("counts %+v", s)
	}
}

func TestCallerThatHangsUpDoesNotStopTheFunction(t *testing.T) {
	open := make(chan struct{})
	f := &fleet{answer: func(int, []byte) (outcome, error) {
		<-open
		return outcome{}, nil
	}}
	r := faked(t, f, Config{}, Function{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := r.Invoke(ctx, "f", nil)
		done <- err
	}()
	eventually(t, "it runs", func() bool { return r.Stats("f").Concurrent == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if got := f.get(0).is(); got != "running" {
		t.Errorf("the instance is %s, want running", got)
	}
	close(open)
	eventually(t, "it is frozen after its end", func() bool { return f.get(0).is() == "frozen" })
}

func TestRefusals(t *testing.T) {
	r := faked(t, &fleet{}, Config{}, Function{})
	if _, err := r.Invoke(t.Context(), "g", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown function: %v", err)
	}
	if _, err := r.Invoke(t.Context(), "f", make([]byte, maxSyncPayload+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("large payload: %v", err)
	}
	if _, err := r.InvokeAsync(t.Context(), "f", make([]byte, maxAsyncPayload+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("large asynchronous payload: %v", err)
	}
	r.Close()
	if _, err := r.Invoke(t.Context(), "f", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := r.InvokeAsync(t.Context(), "f", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("asynchronously after Close: %v", err)
	}
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := New(Config{},
		Function{Name: "a b", Bootstrap: "bin/x", Timeout: 1500 * time.Millisecond, MemoryMB: 1, MaxConcurrency: -1, AsyncRetries: 3, AsyncMaxAge: time.Second},
		Function{Name: "c", Bootstrap: filepath.Join(t.TempDir(), "missing")})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`name "a b"`, `"bin/x"`, "1.5s", "memory 1 MB", "concurrency -1", "retries 3", "age 1s", "function c", "make build"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the developer's own")
	env := environment(
		Config{Region: "eu-west-1", Env: map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "A": "shared"}},
		Function{Name: "f", Bootstrap: "/x/bootstrap", Timeout: 15 * time.Second, MemoryMB: 256, Env: map[string]string{"A": "own", "AWS_LAMBDA_MAX_CONCURRENCY": "4"}},
		"f-1", "/tmp/f-1")
	text := "\n" + strings.Join(env, "\n") + "\n"
	for _, want := range []string{"A=own", "AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_REGION=eu-west-1",
		"AWS_LAMBDA_FUNCTION_NAME=f", "AWS_LAMBDA_FUNCTION_TIMEOUT=15", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", "TMPDIR=/tmp/f-1"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s in %s", want, text)
		}
	}
	for _, not := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_LAMBDA_MAX_CONCURRENCY"} {
		if strings.Contains(text, not) {
			t.Errorf("%s is in %s", not, text)
		}
	}
}
