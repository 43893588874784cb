package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/elbridge/elbridge/local/proc"
)

// Command is a process to be.
type Command struct {
	Path string   // of the binary
	Args []string // without the program's name
	Env  []string // complete: nothing is inherited
	Dir  string
	Log  string // file that gets what the process prints, appended
}

// Process is a running Command.
type Process struct {
	*ending
	cmd *exec.Cmd

	mu     sync.Mutex
	forced *Exit // how a Crash is to look
	over   bool  // ended: its id may soon be another's
}

// Start starts a command; now tells when it ends.
func Start(starter *proc.Starter, c Command, now func() time.Time) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()                      // the child has its own
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // ended by its methods only
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, log, log
	if err := starter.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	p := &Process{ending: newEnding(), cmd: cmd}
	go p.wait(now)
	return p, nil
}

// PID is the process id, which is also that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Terminate implements Running.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Kill implements Running.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Crash implements Running.
func (p *Process) Crash(e Exit) {
	p.mu.Lock()
	p.forced = &e
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
}

func (p *Process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

func (p *Process) wait(now func() time.Time) {
	// Until it is reaped, its id and its group's stay its own.
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mu.Lock()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // what it left behind in its group
	p.over = true
	forced := p.forced
	p.mu.Unlock()

	err := p.cmd.Wait()
	e := exitOf(p.cmd.ProcessState, err)
	if forced != nil {
		e = *forced
	}
	e.At = now()
	p.end(e)
}

func exitOf(state *os.ProcessState, err error) Exit {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Exit{Code: 1, Message: err.Error()}
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Exit{Code: 128 + int(status.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}
