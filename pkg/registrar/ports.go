package registrar

import (
	"context"
	"time"

	"github.com/elbridge/elbridge/pkg/queue"
)

// Queue acts on a received message.
type Queue interface {
	Again(ctx context.Context, m queue.Message, wait time.Duration) error
	Bury(ctx context.Context, m queue.Message, reason string) error
}

// Handover asks resync to compare groups at once.
type Handover interface {
	Ask(ctx context.Context, groups []string) error // ARNs
}
