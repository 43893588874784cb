package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/elbridge/elbridge/local/proc"
)

const (
	quotedLines = 12        // of a log, in an error
	quotedBytes = 16 * 1024 // read from its end to find them
)

// process is one running program, its output in a file.
type process struct {
	part     Part
	log      string
	logStart int64 // where this run's output begins
	cmd      *exec.Cmd
	stopping atomic.Bool   // its end is wanted
	done     chan struct{} // closed when it has ended
	err      error         // why; read it after done
}

// startProcess starts a program. One goroutine owns it until it has ended; onExit
// runs there, after done is closed.
func startProcess(starter *proc.Starter, part Part, path string, args, env []string, log string, onExit func(*process)) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", part, err)
	}
	defer out.Close() // the child has its own
	p := &process{part: part, log: log, done: make(chan struct{})}
	if info, err := out.Stat(); err == nil {
		p.logStart = info.Size()
	}
	p.cmd = exec.Command(path, args...) //nolint:noctx // a part outlives the call that starts it
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := starter.Start(p.cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("starting %s: %w", part, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
		onExit(p)
	}()
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s to %s: %w", s, p.part, err)
	}
	return nil
}

// stop asks the process to end and kills it after the grace period, or at once
// when ctx ends. It returns when the process is gone.
func (p *process) stop(ctx context.Context, grace time.Duration) {
	p.stopping.Store(true)
	_ = p.signal(syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT) // a paused process would not see the other
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-p.done:
		return
	case <-patience.C:
	case <-ctx.Done():
	}
	_ = p.signal(syscall.SIGKILL)
	<-p.done // SIGKILL is not refused
}

// failure says how the process ended, with the end of its log. Only after done.
func (p *process) failure() error {
	how := "ended by itself"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s: %s; the end of %s:\n%s", p.part, how, p.log, tail(p.log, p.logStart))
}

// tail returns the last lines of a file that were written after offset from.
func tail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		from = max(from, info.Size()-quotedBytes)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, from, quotedBytes))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-quotedLines):], "\n")
}
