package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrBusy is returned while another stack runs on this machine: the loopback
// addresses behind pods are the same for all of them.
var ErrBusy = errors.New("another local stack is running")

// lockPoll is how often a busy lock is tried again.
const lockPoll = 500 * time.Millisecond

// lock takes the machine-wide lock, waiting for it until ctx ends or, if wait is
// false, not at all. The kernel gives it back when this process ends.
func lock(ctx context.Context, wait bool, say func(string, ...any)) (unlock func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no cache directory for the lock: %w", err)
	}
	path := filepath.Join(cache, "elbridge", "stack.lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		holder, _ := os.ReadFile(path) // only for the message
		if !errors.Is(err, syscall.EWOULDBLOCK) || !wait {
			_ = f.Close()
			return nil, fmt.Errorf("%w (process %s): end it first, with `make down` if it runs in the background", ErrBusy, strings.TrimSpace(string(holder)))
		}
		if !told {
			say("waiting for another local stack to end (process %s; `make down` if it runs in the background)", strings.TrimSpace(string(holder)))
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
	_ = f.Truncate(0)
	_, _ = fmt.Fprintf(f, "%d\n", os.Getpid()) // only for the message above
	return func() { _ = f.Close() }, nil
}
