package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// driftRow is what is known of one kind of drift in one group.
type driftRow struct {
	Kind        string    `json:"kind"`
	TargetGroup string    `json:"targetGroup"`
	Repaired    int       `json:"repaired"`
	WouldRepair int       `json:"wouldRepair"` // in observe mode, or in a dry round
	Held        int       `json:"held"`        // targets, however often that was told
	Failed      int       `json:"failed"`
	Reported    int       `json:"reported"` // targets that resync does nothing about now, or the group itself
	Last        time.Time `json:"last"`
	Entries     []entry   `json:"entries"`
}

// driftResult is what `elbridge drift` says.
type driftResult struct {
	Since time.Time  `json:"since"`
	Drift []driftRow `json:"drift"`
}

func driftCommand(s *shared) *cobra.Command {
	o := &logOptions{shared: s}
	var kind string
	cmd := &cobra.Command{
		Use: "drift", Short: "Show what resync found different, and what became of it", Args: cobra.NoArgs,
		Long: `Drift sums up what rounds of resync found in target groups that no event explained, from the
audit log: a line for each kind of drift and group, with how many targets were repaired, held,
failed or only reported, and when that was last. -o json has every single one.

The audit log is a log group that a rule on the bus feeds: docs/history.md.

Exit codes: 0 shown, also if there was nothing; 1 an error, also where events could not be
read: the others are shown; 130 interrupted.`,
		Example: `  elbridge drift
  elbridge drift --since 168h --kind extra
  elbridge drift --group ingress -o json | jq '.drift[] | select(.held > 0)'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := knownKind(kind); err != nil {
				return err
			}
			log, err := o.open(ctx)
			if err != nil {
				return err
			}
			d, faults, err := o.drift(ctx, log, time.Now(), kind)
			if err != nil {
				return unlessInterrupted(ctx, err)
			}
			return errors.Join(write(cmd.OutOrStdout(), o.output, d, d.table), faults)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "one kind of drift, as missing or extra (default: all)")
	o.add(cmd)
	return cmd
}

// driftKinds are what entries may be asked for by.
var driftKinds = []drift.Kind{drift.Missing, drift.DrainingWanted, drift.Extra, drift.WrongPort, drift.UnhealthyUnclaimed, drift.Emptied,
	drift.WrongZone, drift.ZoneOff, drift.NoListener, drift.GroupDeleted, drift.Unbound, drift.Flapping}

// knownKind keeps a mistyped kind from reading as if there were no drift.
func knownKind(kind string) error {
	if kind == "" || kind == string(targetevent.Resync) || slices.Contains(driftKinds, drift.Kind(kind)) {
		return nil
	}
	return fmt.Errorf("--kind %s: want one of %s", kind, strings.Trim(fmt.Sprint(driftKinds), "[]"))
}

// ofRounds are the events that rounds put. What a change of a rule does is no drift.
var ofRounds = []string{targetevent.DetailTypeTargetsChanged, targetevent.DetailTypeRemovalHeld, targetevent.DetailTypeResyncCompleted}

func (o *logOptions) drift(ctx context.Context, log auditLog, now time.Time, kind string) (d driftResult, faults, err error) {
	q := o.query(now, ofRounds...)
	events, incomplete, err := readLog(ctx, log, q)
	if err != nil {
		return d, nil, err
	}
	all, unread := entries(events)
	all = slices.DeleteFunc(all, func(e entry) bool {
		return e.Cause.Kind == targetevent.Hint || !inGroup(e.TargetGroup, o.group) || kind != "" && driftKind(e) != kind
	})
	return driftResult{Since: q.From, Drift: sumDrift(all)}, errors.Join(append(unread, incomplete)...), nil
}

// driftKind is the kind of an entry's drift; a round that names none is resync's.
func driftKind(e entry) string { return cmp.Or(e.Cause.Drift, string(e.Cause.Kind)) }

// sumDrift counts entries by kind and group. Repairs and failures are counted as
// often as they happened; what stays is told again and again, and counted once for
// each target.
func sumDrift(all []entry) []driftRow {
	type key struct{ kind, group string }
	rows := map[key]*driftRow{}
	standing := map[[4]string]bool{} // kind, group, what, target
	for _, e := range all {
		k := key{driftKind(e), e.TargetGroup}
		r := rows[k]
		if r == nil {
			r = &driftRow{Kind: k.kind, TargetGroup: k.group}
			rows[k] = r
		}
		r.Entries = append(r.Entries, e)
		if e.Time.After(r.Last) {
			r.Last = e.Time
		}
		counted := [4]string{k.kind, k.group, e.What, e.Target}
		again := standing[counted]
		standing[counted] = true
		switch {
		case e.Error != "":
			r.Failed++
		case e.What == "registered" || e.What == "deregistered":
			r.Repaired++
		case again:
		case e.What == "held":
			r.Held++
		case e.What == "reported" || e.What == "waiting":
			r.Reported++
		default:
			r.WouldRepair++
		}
	}
	out := make([]driftRow, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b driftRow) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.TargetGroup, b.TargetGroup))
	})
	return out
}

func (d driftResult) table(w io.Writer) {
	if len(d.Drift) == 0 {
		_, _ = fmt.Fprintf(w, "no drift since %s\n", stamp(d.Since)) // the table's writer keeps the error
		return
	}
	row(w, "KIND", "GROUP", "REPAIRED", "WOULD", "HELD", "FAILED", "REPORTED", "LAST")
	for _, r := range d.Drift {
		row(w, r.Kind, groupName(r.TargetGroup), strconv.Itoa(r.Repaired), strconv.Itoa(r.WouldRepair), strconv.Itoa(r.Held), strconv.Itoa(r.Failed), strconv.Itoa(r.Reported), stamp(r.Last))
	}
}
