package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// builder is a toolchain that writes a file.
type builder struct {
	name   string
	fails  error
	builds atomic.Int32
	within func() // while it builds
}

func (b *builder) key(context.Context) (string, error) { return b.name, nil }

func (b *builder) build(_ context.Context, output string) error {
	b.builds.Add(1)
	if b.within != nil {
		b.within()
	}
	if err := os.WriteFile(output, []byte(b.name), 0o755); err != nil {
		return err
	}
	return b.fails
}

func TestCacheBuildsOnce(t *testing.T) {
	b := &builder{name: "v1"}
	c := cache{root: filepath.Join(t.TempDir(), "kube"), progress: io.Discard, toolchain: b}
	entries := make([]string, 8)
	var all sync.WaitGroup
	for i := range entries {
		all.Go(func() {
			entry, err := c.ensure(context.Background())
			if err != nil {
				t.Error(err)
			}
			entries[i] = entry
		})
	}
	all.Wait()
	if b.builds.Load() != 1 || len(slices.Compact(entries)) != 1 {
		t.Errorf("%d builds, entries %v: want one of each", b.builds.Load(), entries)
	}
	for _, part := range allParts {
		if content, err := os.ReadFile(filepath.Join(entries[0], string(part))); string(content) != "v1" {
			t.Errorf("%s: %q, %v", part, content, err)
		}
	}
}

func TestCacheKeepsNothingOfAFailedBuild(t *testing.T) {
	b := &builder{name: "v1", fails: errors.New("no space")}
	c := cache{root: t.TempDir(), progress: io.Discard, toolchain: b}
	if _, err := c.ensure(context.Background()); !errors.Is(err, b.fails) {
		t.Errorf("error %v, want %v", err, b.fails)
	}
	if left := dirs(t, c.root); left != "" {
		t.Errorf("a failed build left %s", left)
	}
	b.fails = nil
	if _, err := c.ensure(context.Background()); err != nil {
		t.Errorf("after the fault is repaired: %v", err)
	}
}

func TestCacheRemovesOldAndInterruptedBuilds(t *testing.T) {
	c := cache{root: t.TempDir(), progress: io.Discard}
	if err := os.Mkdir(filepath.Join(c.root, unfinished+"77"), 0o755); err != nil {
		t.Fatal(err)
	}
	build := func(name string, age time.Duration) {
		c.toolchain = &builder{name: name}
		entry, err := c.ensure(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(-age)
		if err := os.Chtimes(entry, used, used); err != nil {
			t.Fatal(err)
		}
	}
	build("v1", 3*time.Hour)
	build("v2", 2*time.Hour)
	build("v1", 0) // used again: v2 is the older one now
	build("v3", 0)
	if left := dirs(t, c.root); left != "v1 v3" {
		t.Errorf("the cache holds %s, want v1 v3", left)
	}
}

func TestCacheWaitIsBounded(t *testing.T) {
	c := cache{root: t.TempDir(), progress: io.Discard, toolchain: &builder{name: "v1"}}
	unlock, err := tryLock(filepath.Join(c.root, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := c.ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another process builds: %v, want the deadline", err)
	}
}

func dirs(t *testing.T, root string) string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

func TestAssets(t *testing.T) {
	tests := map[string]struct {
		programs string // in the folder
		want     string // found, or part of the error
	}{
		"all":            {programs: "etcd kube-apiserver kube-controller-manager kube-scheduler", want: "etcd kube-apiserver kube-controller-manager kube-scheduler"},
		"the least":      {programs: "etcd kube-apiserver", want: "etcd kube-apiserver"},
		"no API server":  {programs: "etcd", want: "no program kube-apiserver there"},
		"an empty place": {want: "no program etcd there"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, program := range strings.Fields(tt.programs) {
				if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			found, err := assets(dir)
			var got []string
			for _, part := range allParts {
				if found[part] != "" {
					got = append(got, string(part))
				}
			}
			if err == nil && strings.Join(got, " ") != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("found %v, error %v; want %s", got, err, tt.want)
			}
		})
	}
	if found, err := assets(""); len(found) != 0 || err != nil {
		t.Errorf("without the variable: %v, %v", found, err)
	}
}
