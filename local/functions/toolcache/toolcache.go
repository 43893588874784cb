// Package toolcache builds the programs that the module local/tools pins (the
// Lambda runtime interface emulator, the linter, ...) and keeps them in the
// user's cache directory. A program is built when it is missing there, never
// otherwise; nothing is downloaded but Go modules, and no running is done here.
package toolcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// lockPoll is how often a build that another process is doing is looked at.
const lockPoll = 100 * time.Millisecond

// A Cache builds tools of one module into one directory.
type Cache struct {
	Module string               // directory of the module with the tool directives
	Dir    string               // where binaries are kept, one folder a state of the module
	Say    func(message string) // progress in plain words; nil keeps quiet
}

// Default returns the cache of this source tree: its module local/tools, found
// upwards from the working directory, and the user's cache directory.
func Default(say func(string)) (Cache, error) {
	module, err := findModule()
	if err != nil {
		return Cache{}, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, fmt.Errorf("no place for built tools: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return Cache{Module: module, Dir: filepath.Join(user, "elbridge", "tools"), Say: say}, nil
}

func findModule() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for local/tools/go.mod: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		module := filepath.Join(dir, "local", "tools")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no local/tools/go.mod in %s or above: run this inside elbridge's source tree", start)
		}
	}
}

// Ensure returns the path of the tool called name, the last element of its
// package path, and builds it first if this state of the module has none yet.
// Processes that need the same tool at once wait for one build.
func (c Cache) Ensure(ctx context.Context, name string) (string, error) {
	modfile, err := os.ReadFile(filepath.Join(c.Module, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the tools' module: %w", err)
	}
	pkg, err := toolPackage(modfile, name)
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(c.Module, "go.sum"))
	if err != nil {
		return "", fmt.Errorf("reading the tools' module: %w", err)
	}
	binary := filepath.Join(c.Dir, key(modfile, sums), name)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", fmt.Errorf("making the tools' cache: %w", err)
	}
	unlock, err := lock(ctx, binary+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for another build of %s: %w", name, err)
	}
	defer unlock()
	if _, err := os.Stat(binary); err == nil {
		return binary, nil // built while we waited
	}
	return binary, c.build(ctx, pkg, binary)
}

// key names one state of the module as one compiler builds it.
func key(files ...[]byte) string {
	h := sha256.New()
	for _, f := range files {
		h.Write(f)
	}
	h.Write([]byte(runtime.Version() + runtime.GOOS + runtime.GOARCH))
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// toolPackage finds the package of a tool among go.mod's tool directives.
func toolPackage(modfile []byte, name string) (string, error) {
	var known []string
	inBlock := false
	for line := range strings.Lines(string(modfile)) {
		line = strings.TrimSpace(line)
		pkg, single := strings.CutPrefix(line, "tool ")
		switch {
		case line == "tool (":
			inBlock = true
			continue
		case line == ")":
			inBlock = false
			continue
		case inBlock:
			pkg = line
		case !single:
			continue
		}
		if path.Base(pkg) == name {
			return pkg, nil
		}
		known = append(known, path.Base(pkg))
	}
	return "", fmt.Errorf("no tool %q in local/tools/go.mod: want one of %s", name, strings.Join(known, ", "))
}

func (c Cache) build(ctx context.Context, pkg, binary string) error {
	name := filepath.Base(binary)
	c.say(fmt.Sprintf("building %s (once; it is kept in %s)", name, filepath.Dir(binary)))
	began := time.Now()
	fresh := binary + ".new"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", fresh, pkg)
	cmd.Dir = c.Module
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("building %s: no go command in PATH: install Go", name)
		}
		return fmt.Errorf("building %s: %w: %s", name, err, bytes.TrimSpace(out.Bytes()))
	}
	if err := os.Rename(fresh, binary); err != nil {
		return fmt.Errorf("keeping %s: %w", name, err)
	}
	c.say(fmt.Sprintf("built %s in %s", name, time.Since(began).Round(100*time.Millisecond)))
	return nil
}

func (c Cache) say(message string) {
	if c.Say != nil {
		c.Say(message)
	}
}

// lock takes an advisory lock that ends with the process at the latest.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // closing lets go of the lock
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}
