// Package reconcile is what registrar and resync have in common: the rules of the
// bus, target groups and tags as they were read, the rails of a removal, and the
// hands that carry a plan out and tell of it (I10, I19). It decides nothing about
// which keys are right. What it remembers only saves calls and repetition.
package reconcile

import (
	"context"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// Cluster reads one Kubernetes cluster. Errors are of pkg/cluster's classes.
type Cluster interface {
	Pod(ctx context.Context, namespace, name string) (*podevent.Pod, error)
	Pods(ctx context.Context, namespace, labels string) ([]*podevent.Pod, error)
	PodsByIP(ctx context.Context, ip string) ([]*podevent.Pod, error)
	Node(ctx context.Context, name string) (cluster.Node, error)
}

// Groups reads and changes target groups. Errors are of pkg/targetgroup's classes.
type Groups interface {
	Describe(ctx context.Context, ref binding.GroupRef) (claim.Group, error)
	Health(ctx context.Context, g claim.Group) (map[claim.Key]plan.Target, error)
	Tags(ctx context.Context, arn string) (map[string]string, error)
	Register(ctx context.Context, g claim.Group, keys []claim.Key, zone string) targetgroup.Result
	Deregister(ctx context.Context, g claim.Group, keys []claim.Key) targetgroup.Result
}

// Rules reads the rules of the bus; a read that is not whole is an error.
type Rules interface {
	List(ctx context.Context) ([]binding.Rule, error)
	Rule(ctx context.Context, name string) (binding.Rule, error) // bus.ErrNotFound
	Targets(ctx context.Context, rule string) ([]binding.Target, error)
	Tags(ctx context.Context, busARN string) (map[string]string, error)
}

// Publisher puts events on the bus.
type Publisher interface {
	Put(ctx context.Context, entries []bus.Entry) ([]bus.Unsent, error)
}
