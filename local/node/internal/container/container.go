// Package container runs what a container of a pod is on this machine: a process
// of its own where the image maps to a local binary, else an HTTP server within
// the agent. Both end as a container does: by itself, by a signal to terminate
// or by being killed.
package container

import (
	"sync"
	"time"
)

// Exit is how a container ended.
type Exit struct {
	Code    int       // 128 + signal if a signal ended it
	Reason  string    // Completed, Error, OOMKilled
	Message string    // one line for people, may be empty
	At      time.Time // when
}

// Exits that the node brings about.
const (
	CodeKilled     = 137 // 128 + SIGKILL
	CodeTerminated = 143 // 128 + SIGTERM
)

// Running is a container that has been started. Its methods are safe for
// concurrent use.
type Running interface {
	// Done is closed when the container has ended; Exit then says how.
	Done() <-chan struct{}
	Exit() Exit
	// Terminate asks it to end (SIGTERM) and returns at once.
	Terminate()
	// Kill ends it now and returns at once.
	Kill()
	// Crash ends it now as if it had ended that way by itself.
	Crash(Exit)
}

// ending lets the first reason for an end win.
type ending struct {
	once sync.Once
	done chan struct{}
	exit Exit
}

func newEnding() *ending { return &ending{done: make(chan struct{})} }

func (e *ending) Done() <-chan struct{} { return e.done }

func (e *ending) Exit() Exit {
	<-e.done
	return e.exit
}

func (e *ending) end(exit Exit) {
	e.once.Do(func() {
		if exit.Reason == "" {
			exit.Reason = "Completed"
			if exit.Code != 0 {
				exit.Reason = "Error"
			}
		}
		e.exit = exit
		close(e.done)
	})
}
