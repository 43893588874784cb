package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module writes a small module that stands for local/kube, inside a repository.
func module(t *testing.T, main string) goToolchain {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                           "module " + modulePath + "\n",
		"local/kube/go.mod":                "module example.com/kube\n\ngo 1.26\n\nrequire " + kubeModule + " v1.37.2\n",
		"local/kube/go.sum":                "",
		"local/kube/control-plane/main.go": main,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod") // of the user's environment: must not matter
	return goToolchain{source: filepath.Join(root, "local", "kube"), progress: io.Discard}
}

func TestKeyNamesAllThatTheBuildDependsOn(t *testing.T) {
	g := module(t, "package main\n\nfunc main() {}\n")
	key := func() string {
		k, err := g.key(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	seen := map[string]string{key(): "nothing"}
	if !strings.HasPrefix(key(), "v1.37.2-") {
		t.Errorf("key %s does not tell the version", key())
	}
	for _, name := range []string{"control-plane/main.go", "go.sum", "go.mod"} {
		f, err := os.OpenFile(filepath.Join(g.source, name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(f)
		f.Close()
		if before, same := seen[key()]; same {
			t.Errorf("changing %s gives the same key as changing %s", name, before)
		}
		seen[key()] = name
	}
}

func TestBuildErrorsQuoteTheCompiler(t *testing.T) {
	g := module(t, "package main\n\nfunc main() { undefined() }\n")
	err := g.build(context.Background(), filepath.Join(t.TempDir(), program))
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("error %v, want the compiler's words", err)
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	g := module(t, "package main\n\nfunc main() {}\n")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.build(ctx, filepath.Join(t.TempDir(), program)); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestWatcher(t *testing.T) {
	w := &watcher{what: "fetching sources", started: time.Now()}
	say := func(s string) {
		if _, err := io.WriteString(w, s); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got := w.String(); got != want {
			t.Errorf("progress %q, want %q", got, want)
		}
	}
	say("go: downloading a v1\ngo: downlo")
	expect("kube: fetching sources: 1 modules, 0s")
	say("ading b v1\n")
	expect("kube: fetching sources: 2 modules, 0s")
	w.compiling(3)
	say("k8s.io/api\nk8s.io/apimachinery\n")
	expect("kube: compiling: 2 of 3 packages, 0s")
	say("k8s.io/kubernetes\n")
	expect("kube: linking, 0s")
	say("last words")
	if got := w.tail(); !strings.HasSuffix(got, "k8s.io/kubernetes\nlast words") {
		t.Errorf("tail %q", got)
	}
}

func TestSourceDir(t *testing.T) {
	g := module(t, "")
	t.Run("named", func(t *testing.T) {
		t.Setenv(RootVariable, filepath.Join(g.source, "..", ".."))
		if dir, err := sourceDir(); err != nil || dir != g.source {
			t.Errorf("%s, %v; want %s", dir, err, g.source)
		}
	})
	t.Run("named wrongly", func(t *testing.T) {
		t.Setenv(RootVariable, t.TempDir())
		if _, err := sourceDir(); err == nil || !strings.Contains(err.Error(), RootVariable) {
			t.Errorf("error %v, want one about %s", err, RootVariable)
		}
	})
	t.Run("around the working directory", func(t *testing.T) {
		t.Chdir(filepath.Join(g.source, "control-plane"))
		if dir, err := sourceDir(); err != nil || dir != g.source {
			t.Errorf("%s, %v; want %s", dir, err, g.source)
		}
	})
	t.Run("outside", func(t *testing.T) {
		t.Chdir(t.TempDir())
		if _, err := sourceDir(); err == nil || !strings.Contains(err.Error(), RootVariable) {
			t.Errorf("error %v, want one that names %s", err, RootVariable)
		}
	})
}
