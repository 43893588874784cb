package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elbridge/elbridge/infra/kubernetes"
	"github.com/elbridge/elbridge/local/cluster"
)

// ForgetCluster has the API server start anew on an empty store, as after a
// disaster: it knows the functions and nothing else. The nodes are to be
// partitioned, or they would register again. The returned function brings
// everything back as it was.
func (s *Stack) ForgetCluster(ctx context.Context) (restore func(context.Context) error, err error) {
	data := filepath.Join(s.Config.Dir, "kube", "etcd")
	kept := data + ".kept"
	s.stopParts(ctx, cluster.Scheduler, cluster.ControllerManager, cluster.APIServer, cluster.Etcd)
	if err := os.Rename(data, kept); err != nil {
		return nil, fmt.Errorf("putting the cluster's data aside: %w", err)
	}
	restore = func(ctx context.Context) error {
		s.stopParts(ctx, cluster.APIServer, cluster.Etcd)
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		if err := os.Rename(kept, data); err != nil {
			return fmt.Errorf("putting the cluster's data back: %w", err)
		}
		return s.startParts(ctx, cluster.Etcd, cluster.APIServer, cluster.ControllerManager, cluster.Scheduler)
	}
	if err := s.startParts(ctx, cluster.Etcd, cluster.APIServer); err != nil {
		return restore, err
	}
	return restore, s.Admin.Apply(ctx, kubernetes.RBAC)
}

func (s *Stack) stopParts(ctx context.Context, parts ...cluster.Part) {
	for _, p := range parts {
		s.Kube.StopPart(ctx, p)
	}
}

func (s *Stack) startParts(ctx context.Context, parts ...cluster.Part) error {
	for _, p := range parts {
		if err := s.Kube.StartPart(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
