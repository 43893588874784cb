package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/elbridge/elbridge/local/stack"
)

// runState is what `up` and `down` need to know of a stack in the background.
type runState struct {
	PID int               `json:"pid"`
	URL string            `json:"url"`
	Env map[string]string `json:"env"`
}

func writeState(path string, s *stack.Stack, url string) error {
	text, err := json.MarshalIndent(runState{PID: os.Getpid(), URL: url, Env: s.Env()}, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func readState(path string) (runState, error) {
	var st runState
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(text, &st); err != nil {
		return runState{}, fmt.Errorf("%s: %w", path, err)
	}
	return st, nil
}

// lockSuffix makes a state's name into that of its lock. A process id alone
// tells nothing: after a crash it may be a zombie's, after a restart anybody's.
const lockSuffix = ".lock"

// claimState says that this process is the one in the background, from its start
// on. The kernel takes that back when it ends, however it ends.
func claimState(path string) (io.Closer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("another process is, or is about to be, the one in the background: %w", err)
	}
	return f, nil
}

// background returns the process in the background, which may still be starting;
// 0 if there is none.
func background(path string) (pid int, err error) {
	f, err := os.OpenFile(path+lockSuffix, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	l := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if l.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(l.Pid), nil
}
