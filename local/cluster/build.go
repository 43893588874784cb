package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elbridge/elbridge/local/proc"
)

const (
	// RootVariable names the repository's folder, for programs that do not run
	// inside it.
	RootVariable = "ELBRIDGE_ROOT"

	modulePath    = "github.com/elbridge/elbridge"
	kubeModule    = "k8s.io/kubernetes"
	progressEvery = 5 * time.Second
	buildPackage  = "./control-plane"
)

// goToolchain builds the control plane with the go command from local/kube.
type goToolchain struct {
	source   string // the folder local/kube
	progress io.Writer
}

// key is made of all that the program depends on: Go's version, the platform,
// the module's files, and the flags.
func (g goToolchain) key(ctx context.Context) (string, error) {
	version, err := g.output(ctx, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	kubernetes, err := g.kubernetesVersion(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, strings.TrimSpace(string(version)), runtime.GOOS, runtime.GOARCH, buildFlags(kubernetes))
	for _, name := range []string{"go.mod", "go.sum", "control-plane/main.go"} {
		content, err := os.ReadFile(filepath.Join(g.source, name))
		if err != nil {
			return "", fmt.Errorf("source of the control plane: %w", err)
		}
		fmt.Fprintln(sum, name, len(content))
		sum.Write(content)
	}
	return kubernetes + "-" + hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// kubernetesVersion is the version of Kubernetes that go.mod asks for.
func (g goToolchain) kubernetesVersion(ctx context.Context) (string, error) {
	out, err := g.output(ctx, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return "", fmt.Errorf("go.mod of %s: %w", g.source, err)
	}
	for _, r := range mod.Require {
		if r.Path == kubeModule {
			return r.Version, nil
		}
	}
	return "", fmt.Errorf("go.mod of %s: no requirement of %s", g.source, kubeModule)
}

// buildFlags puts the version into the programs: without it /version says
// v0.0.0-master and clients refuse features.
func buildFlags(kubernetes string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{
		"-s", "-w",
		"-X", "k8s.io/component-base/version.gitVersion=" + kubernetes,
		"-X", "k8s.io/component-base/version.gitMajor=" + major,
		"-X", "k8s.io/component-base/version.gitMinor=" + minor,
		"-X", "k8s.io/client-go/pkg/version.gitVersion=" + kubernetes,
	}
	return []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", strings.Join(flags, " ")}
}

// build compiles the control plane into output and tells how far it is.
func (g goToolchain) build(ctx context.Context, output string) error {
	kubernetes, err := g.kubernetesVersion(ctx)
	if err != nil {
		return err
	}
	flags := buildFlags(kubernetes)
	fmt.Fprintf(g.progress, "kube: building etcd and Kubernetes %s: about 10 CPU minutes and 90 MB of sources, once; later starts find it in the cache\n", kubernetes)

	w := &watcher{what: "fetching sources", started: time.Now()}
	defer w.report(g.progress)()
	list := append(append([]string{"list"}, flags...), "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", buildPackage)
	stale, err := g.run(ctx, w, list...)
	if err != nil {
		return err
	}
	w.compiling(len(bytes.Fields(stale)))
	compile := append(append([]string{"build", "-v"}, flags...), "-o", output, buildPackage)
	_, err = g.run(ctx, w, compile...)
	return err
}

// output runs a quick go command.
func (g goToolchain) output(ctx context.Context, args ...string) ([]byte, error) {
	return g.run(ctx, &watcher{}, args...)
}

// run runs the go command in the source's folder and ends it, with the compilers
// that it has started, when ctx does or this process dies.
func (g goToolchain) run(ctx context.Context, w *watcher, args ...string) ([]byte, error) {
	starter := proc.New()
	defer starter.Close()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, w
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	err := starter.Start(cmd, syscall.SIGTERM)
	if err == nil {
		err = cmd.Wait()
	}
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("go %s: %w", args[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("no go command on PATH: install Go, or name a folder with ready programs in %s", AssetsVariable)
	}
	return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], g.source, err, w.tail())
}

// watcher reads the go command's stderr: it counts lines and keeps the last ones
// for the error.
type watcher struct {
	mu      sync.Mutex
	what    string
	started time.Time
	total   int // packages to compile; 0 while unknown
	lines   int
	last    []string
	rest    []byte // an unfinished line
}

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.lines++
		w.last = append(w.last, string(line))
		w.last = w.last[max(0, len(w.last)-quotedLines):]
		w.rest = rest
	}
}

func (w *watcher) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(append(w.last, string(w.rest)), "\n")
}

func (w *watcher) compiling(total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.what, w.total, w.lines = "compiling", total, 0
}

func (w *watcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	elapsed := time.Since(w.started).Round(time.Second)
	switch {
	case w.total == 0:
		return fmt.Sprintf("kube: %s: %d modules, %s", w.what, w.lines, elapsed)
	case w.lines >= w.total:
		return fmt.Sprintf("kube: linking, %s", elapsed)
	}
	return fmt.Sprintf("kube: %s: %d of %d packages, %s", w.what, w.lines, w.total, elapsed)
}

// report prints the state every few seconds until the returned function is called.
func (w *watcher) report(to io.Writer) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintln(to, w)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// sourceDir finds local/kube: in the repository that ELBRIDGE_ROOT names, or in
// the one around the working directory.
func sourceDir() (string, error) {
	dir := os.Getenv(RootVariable)
	if dir != "" {
		if !isRoot(dir) {
			return "", fmt.Errorf("%s=%s: want the folder whose go.mod says module %s", RootVariable, dir, modulePath)
		}
		return filepath.Join(dir, "local", "kube"), nil
	}
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir = start; !isRoot(dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the repository of %s: run this there, or name its folder in %s", start, modulePath, RootVariable)
		}
	}
	return filepath.Join(dir, "local", "kube"), nil
}

func isRoot(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(content)) {
		if path, isModule := strings.CutPrefix(line, "module "); isModule {
			return strings.TrimSpace(path) == modulePath
		}
	}
	return false
}
