package pause_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/internal/pause"
)

func TestFor(t *testing.T) {
	if err := pause.For(t.Context(), time.Nanosecond); err != nil {
		t.Errorf("a wait that passes: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pause.For(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ends: %v", err)
	}
}
