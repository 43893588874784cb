package resync

import (
	"context"
	"time"

	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/resync/picture"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// Cluster reads one Kubernetes cluster: lists and a stream for the picture, point
// reads before anything is done. Errors are of pkg/cluster's classes.
type Cluster interface {
	reconcile.Cluster
	picture.Source
}

// Groups reads and changes target groups of one account and region. Errors are of
// pkg/targetgroup's classes.
type Groups interface {
	reconcile.Groups
	List(ctx context.Context) ([]targetgroup.Listed, error)
	TagsOf(ctx context.Context, arns []string) (map[string]map[string]string, error)
}

// Inbox is the queue of requests for a round at once.
type Inbox interface {
	Receive(ctx context.Context, wait time.Duration) ([]queue.Message, error)
	Delete(ctx context.Context, m queue.Message) error
	Bury(ctx context.Context, m queue.Message, reason string) error
}
