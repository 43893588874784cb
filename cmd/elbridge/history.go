package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// defaultSince is how far back history and drift look.
const defaultSince = 24 * time.Hour

// logOptions are the flags of commands that read the audit log.
type logOptions struct {
	shared                  *shared
	group, logGroup, output string
	since                   time.Duration
}

func (o *logOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.group, "group", "", "a target group, name or ARN (default: all)")
	f.DurationVar(&o.since, "since", defaultSince, "how far back to look")
	logGroupFlag(cmd, &o.logGroup)
	outputFlag(cmd, &o.output, formats...)
}

// open checks the flags and opens the log.
func (o *logOptions) open(ctx context.Context) (auditLog, error) {
	if err := checkOutput(o.output, formats...); err != nil {
		return nil, err
	}
	if o.since <= 0 {
		return nil, fmt.Errorf("--since %v: want a time back, as 24h", o.since)
	}
	cfg, err := o.shared.aws(ctx)
	if err != nil {
		return nil, err
	}
	return newAuditLog(cfg, o.logGroup), nil
}

// query is what is asked of the log. A group's name is looked for in what comes back.
func (o *logOptions) query(now time.Time, detailTypes ...string) audit.Query {
	q := audit.Query{From: now.Add(-o.since), To: now.Add(clockSkew), DetailTypes: detailTypes}
	if ref := groupRef(o.group); ref.ARN != "" {
		q.TargetGroup = ref.ARN
	}
	return q
}

// historyResult is what `elbridge history` says.
type historyResult struct {
	Target  string    `json:"target"`
	Since   time.Time `json:"since"`
	Entries []entry   `json:"entries"` // oldest first
}

func historyCommand(s *shared) *cobra.Command {
	o := &logOptions{shared: s}
	var of string
	cmd := &cobra.Command{
		Use: "history --target IP[:PORT]", Short: "Show what happened to a target, and why", Args: cobra.NoArgs,
		Long: `History shows every event of the audit log that touched an address, oldest first: registered,
deregistered, held, failed, would be in observe mode, or named by a change of a rule; each
with its cause: the pod event, or the drift with the run and round that found it, and the
second witness of a removal. -o json has all ids.

The audit log is a log group that a rule on the bus feeds: docs/history.md.

Exit codes: 0 shown, also if there was nothing; 1 an error, also where events could not be
read: the others are shown; 130 interrupted.`,
		Example: `  elbridge history --target 10.64.1.6
  elbridge history --target 10.64.1.6:9999 --group ingress --since 72h -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, port, err := parseTarget(of)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			log, err := o.open(ctx)
			if err != nil {
				return err
			}
			h, faults, err := o.history(ctx, log, time.Now(), id, port)
			if err != nil {
				return unlessInterrupted(ctx, err)
			}
			return errors.Join(write(cmd.OutOrStdout(), o.output, h, h.table), faults)
		},
	}
	cmd.Flags().StringVar(&of, "target", "", "the target: IP, IP:PORT or instance id")
	if err := cmd.MarkFlagRequired("target"); err != nil {
		panic(err) // no such flag
	}
	o.add(cmd)
	return cmd
}

// touching are the events that say something of a target.
var touching = []string{targetevent.DetailTypeTargetsChanged, targetevent.DetailTypeRemovalHeld, targetevent.DetailTypeBindingChanged, targetevent.DetailTypeResyncCompleted}

func (o *logOptions) history(ctx context.Context, log auditLog, now time.Time, id string, port int32) (h historyResult, faults, err error) {
	q := o.query(now, touching...)
	q.Address = id
	events, incomplete, err := readLog(ctx, log, q)
	if err != nil {
		return h, nil, err
	}
	h = historyResult{Target: id, Since: q.From, Entries: []entry{}}
	if port != 0 {
		h.Target = target(targetevent.Key{ID: id, Port: port})
	}
	all, unread := entries(events)
	for _, e := range all {
		if e.id == id && (port == 0 || e.port == port) && inGroup(e.TargetGroup, o.group) {
			h.Entries = append(h.Entries, e)
		}
	}
	return h, errors.Join(append(unread, incomplete)...), nil
}

func (h historyResult) table(w io.Writer) {
	if len(h.Entries) == 0 {
		_, _ = fmt.Fprintf(w, "nothing happened to %s since %s\n", h.Target, stamp(h.Since)) // the table's writer keeps the error
		return
	}
	row(w, "TIME", "WHAT", "TARGET", "GROUP", "CAUSE", "RULE", "POD", "UID")
	for _, e := range h.Entries {
		row(w, stamp(e.Time), e.What, e.Target, groupName(e.TargetGroup), e.Why, ruleName(e.Rule), e.Pod, e.UID)
	}
}

// stamp is a time as tables show it.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
