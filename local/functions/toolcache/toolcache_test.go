package toolcache

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestToolPackage(t *testing.T) {
	const block = "module m\n\ngo 1.26.0\n\ntool (\n\texample.com/a/cmd/one\n\texample.com/b/two\n)\n\nrequire example.com/b v1.0.0\n"
	tests := map[string]struct{ modfile, name, want string }{
		"in a block":    {block, "one", "example.com/a/cmd/one"},
		"last in block": {block, "two", "example.com/b/two"},
		"single":        {"module m\ntool example.com/c/three\n", "three", "example.com/c/three"},
		"unknown":       {block, "three", "want one of one, two"},
		"a requirement": {block, "b", "want one of one, two"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := toolPackage([]byte(tt.modfile), tt.name)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// module writes a module with one tool, "hello", that needs no other module.
func module(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/tools\n\ngo 1.26.0\n\ntool example.com/tools/hello\n",
		"go.sum":        "",
		"hello/main.go": source,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEnsureBuildsOnce(t *testing.T) {
	var mu sync.Mutex
	said := 0
	c := Cache{Module: module(t, "package main\n\nfunc main() { print(\"hello\") }\n"), Dir: t.TempDir(), Say: func(string) {
		mu.Lock()
		defer mu.Unlock()
		said++
	}}
	paths := make([]string, 3)
	var wg sync.WaitGroup
	for i := range paths { // at once
		wg.Go(func() {
			var err error
			if paths[i], err = c.Ensure(t.Context(), "hello"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if paths[0] == "" || paths[1] != paths[0] || paths[2] != paths[0] {
		t.Fatalf("paths %q, want one", paths)
	}
	if said != 2 { // "building", "built"
		t.Errorf("%d messages, want those of one build", said)
	}
	out, err := exec.CommandContext(t.Context(), paths[0]).CombinedOutput()
	if err != nil || string(out) != "hello" {
		t.Errorf("it says %q, %v", out, err)
	}
	if err := os.WriteFile(filepath.Join(c.Module, "go.sum"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Ensure(t.Context(), "hello"); err != nil || again == paths[0] {
		t.Errorf("after a change of the module: %s, %v, want another path", again, err)
	}
}

func TestEnsureSaysWhatIsWrong(t *testing.T) {
	c := Cache{Module: module(t, "package main\n\nfunc main() { undefined() }\n"), Dir: t.TempDir()}
	if _, err := c.Ensure(t.Context(), "hello"); err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("source that does not compile: %v", err)
	}
	if _, err := c.Ensure(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), "want one of hello") {
		t.Errorf("unknown tool: %v", err)
	}
}

func TestLockWaitsWithinItsContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, file); !errors.Is(err, context.Canceled) {
		t.Errorf("locked twice: %v", err)
	}
	unlock()
	unlock, err = lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestDefaultFindsTheModule(t *testing.T) {
	c, err := Default(nil)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(c.Module) != "tools" || !strings.HasSuffix(c.Dir, filepath.Join("elbridge", "tools")) {
		t.Errorf("cache %+v", c)
	}
	t.Chdir(t.TempDir())
	if _, err := Default(nil); err == nil || !strings.Contains(err.Error(), "source tree") {
		t.Errorf("elsewhere: %v", err)
	}
}
