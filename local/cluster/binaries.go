package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Part is one program of a control plane; its value is the program's name.
type Part string

// The parts of a control plane, in the order in which they start.
const (
	Etcd              Part = "etcd"
	APIServer         Part = "kube-apiserver"
	ControllerManager Part = "kube-controller-manager"
	Scheduler         Part = "kube-scheduler"
)

var allParts = [...]Part{Etcd, APIServer, ControllerManager, Scheduler}

// AssetsVariable names a folder with ready-made programs, as the test
// environments of Kubernetes projects use it. etcd and kube-apiserver must be
// there; the other two are built if they are not.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// Binaries holds the path of each part's program.
type Binaries map[Part]string

// EnsureBinaries returns the programs of a control plane, and builds them first
// if neither KUBEBUILDER_ASSETS nor the user's cache has them. A cold build
// takes about ten CPU minutes; what it does is told on progress every few
// seconds. Two builds never run at once, also not from two processes.
func EnsureBinaries(ctx context.Context, progress io.Writer) (Binaries, error) {
	found, err := assets(os.Getenv(AssetsVariable))
	if err != nil {
		return nil, err
	}
	if len(found) == len(allParts) {
		return found, nil
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no cache folder for the control plane: %w: set HOME or XDG_CACHE_HOME", err)
	}
	source, err := sourceDir()
	if err != nil {
		return nil, err
	}
	c := cache{
		root:     filepath.Join(root, "elbridge", "kube"),
		progress: progress,
		toolchain: goToolchain{
			source:   source,
			progress: progress,
		},
	}
	entry, err := c.ensure(ctx)
	if err != nil {
		return nil, err
	}
	for _, part := range allParts {
		if found[part] == "" {
			found[part] = filepath.Join(entry, string(part))
		}
	}
	return found, nil
}

// assets looks for the programs in dir; an empty dir is no folder at all.
func assets(dir string) (Binaries, error) {
	found := Binaries{}
	if dir == "" {
		return found, nil
	}
	for _, part := range allParts {
		path := filepath.Join(dir, string(part))
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0:
			found[part] = path
		case part == Etcd || part == APIServer:
			return nil, fmt.Errorf("%s=%s: no program %s there: want a folder with etcd and kube-apiserver, or the variable unset to build them", AssetsVariable, dir, part)
		}
	}
	return found, nil
}
