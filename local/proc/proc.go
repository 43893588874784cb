// Package proc starts programs that do not outlive this process, however it
// ends: killed without warning included. It neither waits for them nor stops
// them; that is for who starts them.
package proc

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// ErrClosed is the error of starting a program after Close.
var ErrClosed = errors.New("nothing is started any more")

// A Starter starts programs. The kernel signals a child when the thread that
// forked it ends, not the process; so one thread forks them all and lives as
// long as the Starter. Make one with New, end it with Close. Its methods are
// safe for concurrent use.
type Starter struct {
	requests chan request
	closing  func()
	quit     chan struct{} // closed by Close
	gone     chan struct{} // closed when the thread takes no more requests
}

type request struct {
	cmd  *exec.Cmd
	done chan error
}

// New returns a Starter.
func New() *Starter {
	s := &Starter{requests: make(chan request), quit: make(chan struct{}), gone: make(chan struct{})}
	s.closing = sync.OnceFunc(func() { close(s.quit) })
	go s.run()
	return s
}

func (s *Starter) run() {
	defer close(s.gone)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for {
		select {
		case r := <-s.requests:
			r.done <- r.cmd.Start()
		case <-s.quit:
			return
		}
	}
}

// Start starts cmd as cmd.Start does, in a process group of its own: Ctrl-C then
// reaches this process alone, which ends things in order. When this process dies,
// cmd gets the signal death; its own children do not. It replaces cmd.SysProcAttr.
func (s *Starter) Start(cmd *exec.Cmd, death syscall.Signal) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
	r := request{cmd: cmd, done: make(chan error, 1)}
	select {
	case s.requests <- r:
		return <-r.done
	case <-s.gone:
		return ErrClosed
	}
}

// Close ends the Starter; a second time it does nothing. End first what it has
// started: what is left may get its death signal now or when this process ends.
func (s *Starter) Close() {
	s.closing()
	<-s.gone
}
