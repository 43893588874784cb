package telemetry

import (
	"io"
	"log/slog"
)

// NewLogger returns a JSON logger, one object a line as CloudWatch Logs reads it.
func NewLogger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
}
