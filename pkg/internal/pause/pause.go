// Package pause waits, and ends with its context.
package pause

import (
	"context"
	"time"
)

// For waits for d. It returns the context's error if that ends first.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
