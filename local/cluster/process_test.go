package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/proc"
)

func starter(t *testing.T) *proc.Starter {
	s := proc.New()
	t.Cleanup(s.Close)
	return s
}

// shell starts a script and returns when it has written "up" to its log.
func shell(t *testing.T, script string, exited func(*process)) *process {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := startProcess(starter(t), "shell", "/bin/sh", []string{"-c", script}, nil, log, exited)
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
	p, err := startProcess(starter(t), "shell", "/bin/sh", []string{"-c", "seq 100; echo out of luck >&2; exit 3"}, nil, log, func(*process) {})
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
