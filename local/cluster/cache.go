package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	keptBuilds   = 2 // the current one and one before it, for going back and forth
	program      = "control-plane"
	unfinished   = "building-"
	lockPolling  = 500 * time.Millisecond
	lockReminder = 10 * time.Second
)

// toolchain builds the control plane. The key names everything that the result
// depends on.
type toolchain interface {
	key(ctx context.Context) (string, error)
	build(ctx context.Context, output string) error
}

// cache keeps built control planes, one folder a key. A folder appears whole or
// not at all.
type cache struct {
	root      string
	progress  io.Writer
	toolchain toolchain
}

// ensure returns the folder that holds the four programs, and builds it if it
// is not there.
func (c cache) ensure(ctx context.Context) (string, error) {
	key, err := c.toolchain.key(ctx)
	if err != nil {
		return "", err
	}
	entry := filepath.Join(c.root, key)
	if c.has(entry) {
		return entry, nil
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return "", fmt.Errorf("cache of the control plane: %w", err)
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if c.has(entry) { // built by somebody else while we waited
		return entry, nil
	}
	return entry, c.fill(ctx, entry)
}

func (c cache) has(entry string) bool {
	if _, err := os.Stat(filepath.Join(entry, program)); err != nil {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(entry, now, now) // prune goes by it; a read-only cache is none the worse
	return true
}

// fill builds into a folder of its own and renames it. The caller holds the lock.
func (c cache) fill(ctx context.Context, entry string) error {
	c.sweep()
	work, err := os.MkdirTemp(c.root, unfinished)
	if err != nil {
		return fmt.Errorf("cache of the control plane: %w", err)
	}
	defer os.RemoveAll(work) // gone already when all went well
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	if err := c.toolchain.build(ctx, filepath.Join(work, program)); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	for _, part := range allParts {
		if err := os.Symlink(program, filepath.Join(work, string(part))); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(entry); err != nil { // a folder without its program
		return err
	}
	if err := os.Rename(work, entry); err != nil {
		return err
	}
	c.prune(entry)
	return nil
}

// sweep removes what interrupted builds have left.
func (c cache) sweep() {
	left, _ := filepath.Glob(filepath.Join(c.root, unfinished+"*"))
	for _, dir := range left {
		os.RemoveAll(dir)
	}
}

// prune removes all but the newest builds; keep is the newest by definition.
func (c cache) prune(keep string) {
	type build struct {
		path string
		used time.Time
	}
	var others []build
	dirs, _ := os.ReadDir(c.root)
	for _, dir := range dirs {
		path := filepath.Join(c.root, dir.Name())
		info, err := dir.Info()
		if err == nil && dir.IsDir() && path != keep && !strings.HasPrefix(dir.Name(), unfinished) {
			others = append(others, build{path, info.ModTime()})
		}
	}
	slices.SortFunc(others, func(a, b build) int { return b.used.Compare(a.used) })
	for _, old := range others[min(len(others), keptBuilds-1):] {
		os.RemoveAll(old.path)
	}
}

// lock waits until no other process builds.
func (c cache) lock(ctx context.Context) (unlock func(), err error) {
	path := filepath.Join(c.root, "lock")
	tick := time.NewTicker(lockPolling)
	defer tick.Stop()
	var told time.Time
	for {
		unlock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return unlock, err
		}
		if time.Since(told) > lockReminder {
			told = time.Now()
			fmt.Fprintln(c.progress, "kube: another process is building the control plane; waiting for it")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another build of the control plane: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

var errLocked = errors.New("locked by another process")

// tryLock takes an advisory lock that the kernel gives back when this process
// ends, however it ends.
func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, errLocked)
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
