package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// supervisorVariable makes the test binary a supervisor that starts a process,
// prints its id and waits to be killed.
const supervisorVariable = "TEST_SUPERVISOR_LOG"

func TestMain(m *testing.M) {
	if log := os.Getenv(supervisorVariable); log != "" {
		p, err := startProcess("sleep", "/bin/sleep", []string{"600"}, nil, log, func(*process) {})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.cmd.Process.Pid)
		<-p.done
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestProcessesDieWithTheirSupervisor(t *testing.T) {
	supervisor := exec.Command(os.Args[0])
	supervisor.Env = append(os.Environ(), supervisorVariable+"="+filepath.Join(t.TempDir(), "log"))
	out, err := supervisor.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the supervisor says %q: %v", line, readErr)
	}
	if !runs(pid) {
		t.Fatalf("process %d does not run", pid)
	}
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait()
	for deadline := time.Now().Add(30 * time.Second); runs(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlives its supervisor", pid)
		}
	}
}

// runs is false for a process that has ended, whether or not anybody has asked
// for its exit code.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// shell starts a script and returns when it has written "up" to its log.
func shell(t *testing.T, script string, exited func(*process)) *process {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := startProcess("shell", "/bin/sh", []string{"-c", script}, nil, log, exited)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(context.Background(), 0) })
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(tail(log, 0), "up"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the script has not come up; its log: %s", tail(log, 0))
		}
	}
	return p
}

func TestStop(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	tests := map[string]struct {
		script string
		ctx    context.Context
		grace  time.Duration
		want   string // how it ended
	}{
		"it obeys":                       {script: "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done", ctx: context.Background(), grace: time.Hour, want: "ended by itself"},
		"it does not":                    {script: "trap '' TERM; echo up; while :; do sleep 0.01; done", ctx: context.Background(), grace: time.Millisecond, want: "signal: killed"},
		"it does not, and nobody waits":  {script: "trap '' TERM; echo up; while :; do sleep 0.01; done", ctx: ended, grace: time.Hour, want: "signal: killed"},
		"it has ended before":            {script: "echo up; exit 7", ctx: context.Background(), grace: time.Hour, want: "exit status 7"},
		"it is paused and obeys":         {script: "trap 'exit 0' TERM; echo up; kill -STOP $$; while :; do sleep 0.01; done", ctx: context.Background(), grace: time.Hour, want: "ended by itself"},
		"it is paused and does not obey": {script: "trap '' TERM; echo up; kill -STOP $$; while :; do sleep 0.01; done", ctx: context.Background(), grace: time.Millisecond, want: "signal: killed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			exited := make(chan *process, 1)
			p := shell(t, tt.script, func(p *process) { exited <- p })
			p.stop(tt.ctx, tt.grace)
			if p.alive() {
				t.Error("alive after stop")
			}
			if got := (<-exited).failure().Error(); !strings.HasPrefix(got, "shell: "+tt.want) {
				t.Errorf("ended with %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFailureQuotesThisRunOnly(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := startProcess("shell", "/bin/sh", []string{"-c", "seq 100; echo out of luck >&2; exit 3"}, nil, log, func(*process) {})
	if err != nil {
		t.Fatal(err)
	}
	<-p.done
	text := p.failure().Error()
	if !strings.Contains(text, "exit status 3") || !strings.HasSuffix(text, "100\nout of luck") || strings.Contains(text, "earlier") {
		t.Errorf("failure says %q", text)
	}
	if lines := strings.Count(text, "\n"); lines != quotedLines {
		t.Errorf("it quotes %d lines, want %d", lines, quotedLines)
	}
}
