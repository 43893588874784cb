package functions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echoed is what testdata/echo answers.
type echoed struct {
	PID, Count, Beats int
	RequestID, Text   string
}

// emulator builds the emulator and the echo function, once a test binary.
var emulator = sync.OnceValues(func() (built struct{ rie, echo string }, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if built.rie, err = EnsureRIE(ctx, nil); err != nil {
		return built, err
	}
	built.echo = filepath.Join(scratch, "bootstrap")
	out, err := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags=lambda.norpc", "-o", built.echo, "./testdata/echo").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building testdata/echo: %w: %s", err, out)
	}
	return built, err
})

// scratch is a directory for the whole test binary; TestMain makes it.
var scratch string

func TestMain(m *testing.M) {
	if os.Getenv(superviseEnv) != "" {
		supervise()
	}
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "elbridge-functions-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(scratch) }()
		return m.Run()
	}())
}

// emulate returns a Runner of real instances of one function, "echo".
func emulate(t testing.TB, cfg Config, fn Function) *Runner {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the runtime interface emulator")
	}
	built, err := emulator()
	if err != nil {
		t.Fatal(err)
	}
	cfg.RIE, cfg.Dir = built.rie, t.TempDir()
	fn.Name, fn.Bootstrap = "echo", built.echo
	r, err := New(cfg, fn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func echo(t testing.TB, r *Runner, payload string) (Result, echoed) {
	t.Helper()
	res, err := r.Invoke(t.Context(), "echo", []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	var e echoed
	if res.FunctionError == "" {
		if err := json.Unmarshal(res.Payload, &e); err != nil {
			t.Fatalf("payload %s: %v", res.Payload, err)
		}
	}
	return res, e
}

func state(pid int) string {
	p, err := readProcess(pid)
	if err != nil {
		return "gone"
	}
	return string(p.state)
}

func TestEmulatedFunctionIsFrozenBetweenInvocations(t *testing.T) {
	r := emulate(t, Config{}, Function{})
	res, first := echo(t, r, `{}`)
	if !res.ColdStart || res.RequestID != first.RequestID {
		t.Errorf("first: %+v, function saw request %s", res, first.RequestID)
	}
	eventually(t, "the function is stopped", func() bool { return state(first.PID) == "T" })
	if err := sleep(t.Context(), 300*time.Millisecond); err != nil { // 60 beats, if it were not frozen
		t.Fatal(err)
	}
	res, second := echo(t, r, `{}`)
	if res.ColdStart || second.PID != first.PID || second.Count != 2 {
		t.Errorf("second: %+v %+v, want the same process", res, second)
	}
	if second.Beats-first.Beats > 30 {
		t.Errorf("%d beats between the invocations, want none: it ran on", second.Beats-first.Beats)
	}
	r.Close()
	if got := state(first.PID); got != "gone" && got != "Z" {
		t.Errorf("after Close the function's state is %s", got)
	}
}

func TestEmulatedManyFreezes(t *testing.T) {
	r := emulate(t, Config{}, Function{})
	_, first := echo(t, r, `{}`)
	for n := 2; n <= 200; n++ {
		if _, e := echo(t, r, `{}`); e.PID != first.PID || e.Count != n {
			t.Fatalf("invocation %d: %+v, want process %d", n, e, first.PID)
		}
	}
}

func TestEmulatedFailures(t *testing.T) {
	r := emulate(t, Config{}, Function{Timeout: time.Second})
	tests := []struct {
		payload  string
		want     string // error type
		message  string // part of it
		replaced bool
	}{
		{`{"Do":"error","Text":"bad luck"}`, "errorString", "bad luck", false},
		{`{"Do":"panic","Text":"oh"}`, "string", "oh", true},
		{`{"Do":"exit"}`, "Runtime.ExitError", "exit status 7", true},
		{`{"Do":"sleep","Millis":60000}`, "Sandbox.Timedout", "timed out after 1.00 seconds", true},
		{`[]`, "UnmarshalTypeError", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.payload, func(t *testing.T) {
			_, before := echo(t, r, `{}`)
			res, _ := echo(t, r, tt.payload)
			if res.FunctionError != "Unhandled" || res.ErrorType != tt.want || !strings.Contains(res.ErrorMessage, tt.message) {
				t.Errorf("got %+v, payload %s, want %s with %q", res, res.Payload, tt.want, tt.message)
			}
			_, after := echo(t, r, `{}`)
			if replaced := after.PID != before.PID; replaced != tt.replaced {
				t.Errorf("instance replaced: %v, want %v", replaced, tt.replaced)
			}
			if tt.replaced && state(before.PID) != "gone" {
				t.Errorf("the old process is still there: %s", state(before.PID))
			}
		})
	}
	s := r.Stats("echo")
	if s.Errors != 5 || s.Timeouts != 1 || s.Crashes != 2 || s.Lost != 0 || s.Instances != 1 {
		t.Errorf("counts %+v", s)
	}
}

func TestEmulatedFunctionThatDoesNotStart(t *testing.T) {
	r := emulate(t, Config{}, Function{Timeout: 2 * time.Second, Env: map[string]string{"ECHO_INIT": "exit"}})
	for range 2 {
		res, _ := echo(t, r, `{}`)
		if res.FunctionError == "" || res.ErrorType != "Runtime.ExitError" {
			t.Errorf("got %+v, payload %s", res, res.Payload)
		}
	}
}

func TestEmulatedKilledWhileFrozen(t *testing.T) {
	r := emulate(t, Config{}, Function{MaxConcurrency: 1})
	_, first := echo(t, r, `{}`)
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is dead", func() bool { s := state(first.PID); return s == "gone" || s == "Z" })
	if res, second := echo(t, r, `{}`); !res.ColdStart || second.PID == first.PID {
		t.Errorf("got %+v %+v, want a new instance", res, second)
	}
}

func TestEmulatedKilledInTheMiddle(t *testing.T) {
	r := emulate(t, Config{}, Function{MaxConcurrency: 1, Timeout: time.Minute})
	_, first := echo(t, r, `{}`)
	results := make(chan Result, 1)
	go func() {
		res, err := r.Invoke(t.Context(), "echo", []byte(`{"Do":"sleep","Millis":60000}`))
		if err != nil {
			t.Error(err)
		}
		results <- res
	}()
	eventually(t, "it runs", func() bool { return state(first.PID) != "T" && r.Stats("echo").Concurrent == 1 })
	if n := r.Kill("echo"); n != 1 {
		t.Fatalf("%d killed, want 1", n)
	}
	if res := <-results; res.ErrorType != "Runtime.ExitError" {
		t.Errorf("the killed invocation: %+v, want Runtime.ExitError", res)
	}
	if res, second := echo(t, r, `{}`); !res.ColdStart || second.PID == first.PID {
		t.Errorf("got %+v %+v, want a new instance", res, second)
	}
}

func TestEmulatedInstancesRunSideBySide(t *testing.T) {
	r := emulate(t, Config{}, Function{MaxConcurrency: 4, Timeout: 20 * time.Second})
	var mu sync.Mutex
	pids := map[int]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			res, err := r.Invoke(t.Context(), "echo", []byte(`{"Do":"sleep","Millis":800}`))
			var e echoed
			if err != nil || json.Unmarshal(res.Payload, &e) != nil {
				t.Errorf("%+v %v", res, err)
			}
			mu.Lock()
			defer mu.Unlock()
			pids[e.PID] = true
		})
	}
	wg.Wait()
	if len(pids) != 4 {
		t.Errorf("%d processes, want 4", len(pids))
	}
}

func TestEmulatedEnvironmentAndLines(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	cfg := Config{Env: map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, OnLine: func(l Line) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, l.Function+": "+string(l.Text))
	}}
	r := emulate(t, cfg, Function{MemoryMB: 256})
	for name, want := range map[string]string{
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_REGION": "eu-west-1", "AWS_LAMBDA_FUNCTION_NAME": "echo",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_SECRET_ACCESS_KEY": "",
	} {
		if _, e := echo(t, r, `{"Do":"env","Text":"`+name+`"}`); e.Text != want {
			t.Errorf("%s=%q in the function, want %q", name, e.Text, want)
		}
	}
	res, _ := echo(t, r, `{"Do":"print","Text":"{\"msg\":\"registered\"}"}`)
	eventually(t, "its line arrives", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(lines) == 1 && lines[0] == `echo: {"msg":"registered"}`
	})
	eventually(t, "line and report are in the log", func() bool {
		log, err := os.ReadFile(filepath.Join(r.cfg.Dir, "logs", "echo", res.Instance+".log"))
		return err == nil && bytes.Contains(log, []byte(`{"msg":"registered"}`)) && bytes.Contains(log, []byte("REPORT RequestId: "+res.RequestID))
	})
}

func TestEmulatorListensOnLoopbackOnly(t *testing.T) {
	r := emulate(t, Config{}, Function{})
	echo(t, r, `{}`)
	e, ok := r.pools["echo"].idle[0].instance.(*emulated)
	if !ok {
		t.Fatal("no emulated instance")
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("readlink /proc/%d/fd/* | sed -n 's/socket:.\\([0-9]*\\)./\\1/p'", e.cmd.Process.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Fields(string(out))
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // no such family here
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sl local remote state ... inode is the tenth
			const listen = "0A"
			if len(f) < 10 || f[3] != listen || !slices.Contains(own, f[9]) {
				continue
			}
			if !strings.HasPrefix(f[1], "0100007F:") {
				t.Errorf("listens on %s, want 127.0.0.1", f[1])
			}
		}
	}
}

const superviseEnv = "ELBRIDGE_TEST_SUPERVISE" // the echo binary's path

// supervise is another process with a Runner: it invokes once, prints the
// function's process id and waits to be killed.
func supervise() {
	path := strings.Split(os.Getenv(superviseEnv), ":")
	r, err := New(Config{RIE: path[0], Dir: path[2]}, Function{Name: "echo", Bootstrap: path[1]})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	res, err := r.Invoke(context.Background(), "echo", nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(string(res.Payload))
	select {}
}

// A supervisor that is killed without warning leaves no process behind, frozen
// functions included.
func TestChildrenDieWithTheSupervisor(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the runtime interface emulator")
	}
	built, err := emulator()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), superviseEnv+"="+built.rie+":"+built.echo+":"+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var e echoed
	if err := json.NewDecoder(out).Decode(&e); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the function is stopped", func() bool { return state(e.PID) == "T" })
	function, err := readProcess(e.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	eventually(t, "function and emulator are gone", func() bool {
		return state(e.PID) == "gone" && state(function.parent) == "gone"
	})
}

// BenchmarkInvoke times a warm invocation of a function that does nothing, thaw
// and freeze included.
func BenchmarkInvoke(b *testing.B) {
	r := emulate(b, Config{}, Function{})
	echo(b, r, `{}`)
	times := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	for b.Loop() {
		res, _ := echo(b, r, `{}`)
		times = append(times, res.Duration)
	}
	report(b, times)
}

// BenchmarkColdStart times an invocation that starts its instance.
func BenchmarkColdStart(b *testing.B) {
	r := emulate(b, Config{}, Function{})
	var times []time.Duration
	for b.Loop() {
		res, _ := echo(b, r, `{}`)
		times = append(times, res.Duration)
		b.StopTimer()
		r.pools["echo"].endIdle(func(*member) bool { return true })
		b.StartTimer()
	}
	report(b, times)
}

func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	for name, share := range map[string]int{"p50-ms": 50, "p95-ms": 95} {
		b.ReportMetric(float64(times[len(times)*share/100].Microseconds())/1000, name)
	}
}
