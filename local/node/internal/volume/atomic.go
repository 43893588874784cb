package volume

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

const (
	dataLink = "..data"     // points at the folder with the present content
	nextLink = "..data_tmp" // renamed over it
)

// writeAtomic brings dir to hold files: a new hidden folder is filled, then one
// link is moved to it. Nothing is touched when nothing changed.
func writeAtomic(dir string, files map[string]File) error {
	link := filepath.Join(dir, dataLink)
	old, _ := os.Readlink(link) // absent at first
	if old != "" && same(filepath.Join(dir, old), files) {
		return nil
	}
	fresh, err := os.MkdirTemp(dir, "..content-")
	if err != nil {
		return err
	}
	if err := fill(fresh, files); err != nil {
		return err
	}
	next := filepath.Join(dir, nextLink)
	_ = os.Remove(next) // left by a crash
	if err := os.Symlink(filepath.Base(fresh), next); err != nil {
		return err
	}
	if err := os.Rename(next, link); err != nil {
		return err
	}
	if err := linkTops(dir, files); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

func fill(dir string, files map[string]File) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for name, f := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, f.Data, f.Mode); err != nil {
			return err
		}
	}
	return nil
}

// linkTops makes dir/name lead to ..data/name for every first path element, and
// takes away links whose file is gone.
func linkTops(dir string, files map[string]File) error {
	tops := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		tops[top] = true
	}
	for top := range tops {
		link := filepath.Join(dir, top)
		if _, err := os.Lstat(link); err == nil {
			continue
		}
		if err := os.Symlink(filepath.Join(dataLink, top), link); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") && !tops[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func same(dir string, files map[string]File) bool {
	count := 0
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		count++
		return nil
	})
	if err != nil || count != len(files) {
		return false
	}
	for name, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(data, f.Data) {
			return false
		}
	}
	return true
}
