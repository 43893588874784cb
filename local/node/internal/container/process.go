package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spawner starts processes that die with it. Linux ties that promise to the
// thread that forked, so one locked thread starts them all.
type Spawner struct {
	requests chan func()
	now      func() time.Time
	done     chan struct{}
}

// NewSpawner returns a spawner that lives until ctx ends.
func NewSpawner(ctx context.Context, now func() time.Time) *Spawner {
	s := &Spawner{requests: make(chan func()), now: now, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

func (s *Spawner) run(ctx context.Context) {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	defer close(s.done)
	for {
		select {
		case <-ctx.Done():
			return
		case start := <-s.requests:
			start()
		}
	}
}

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

// Start starts a command in a process group of its own.
func (s *Spawner) Start(ctx context.Context, c Command) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()                                                         // the child has its own
	cmd := exec.CommandContext(context.WithoutCancel(ctx), c.Path, c.Args...) // ended by its methods only
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	started := make(chan error, 1)
	select {
	case s.requests <- func() { started <- cmd.Start() }:
	case <-s.done:
		return nil, fmt.Errorf("starting %s: the agent is stopping", c.Path)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	p := &Process{ending: newEnding(), cmd: cmd}
	go p.wait(s.now)
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
