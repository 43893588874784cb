package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/audit"
)

// defaultLogGroup is where a rule on the bus keeps the events: docs/history.md.
const defaultLogGroup = "/aws/events/elbridge"

// auditLog reads the events of the bus back, oldest first.
type auditLog interface {
	Events(ctx context.Context, q audit.Query) ([]audit.Event, error)
}

func newAuditLog(cfg aws.Config, logGroup string) auditLog {
	return audit.New(cloudwatchlogs.NewFromConfig(cfg), logGroup)
}

func logGroupFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "log-group", defaultLogGroup, "log group that keeps the events of the bus: docs/history.md")
}

// readLog reads events. Where there are more than are read at once, incomplete
// says so, and the newest are there.
func readLog(ctx context.Context, log auditLog, q audit.Query) (events []audit.Event, incomplete, err error) {
	events, err = log.Events(ctx, q)
	if errors.Is(err, audit.ErrIncomplete) {
		return events, err, nil
	}
	return events, nil, err
}
