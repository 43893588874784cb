package smoke

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/elbridge/elbridge/local/stack"
	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// auditPoll is how often the audit log is read: each reading is a call.
const auditPoll = 200 * time.Millisecond

// clockSlack is by how much an event's time, which the log has in seconds, may be
// before the moment that it is looked for from.
const clockSlack = time.Second

// log reads events of one detail-type that name the group, put since a moment,
// from the audit log, until one of them is it.
func logged[T targetevent.TargetsChanged | targetevent.RemovalHeld | targetevent.BindingInvalid | targetevent.ResyncCompleted](
	ctx context.Context, r *Runner, since time.Time, detailType, group, what string, it func(T) bool) (found T, err error) {
	reader := audit.New(r.S.AWS.Logs, stack.AuditLog)
	err = wait.PollUntilContextCancel(ctx, auditPoll, true, func(ctx context.Context) (bool, error) {
		events, err := reader.Events(ctx, audit.Query{From: since.Add(-clockSlack), DetailTypes: []string{detailType}, TargetGroup: group})
		if err != nil {
			return false, err
		}
		for _, e := range events {
			if found, err = targetevent.Decode[T](e.Detail); err != nil {
				return false, err
			}
			if it(found) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return found, fmt.Errorf("an event %q with %s in the audit log: %w: %w", detailType, what, errNever, err)
	}
	return found, nil
}

// why returns the cause of a target's change, as the audit log has it: what kind
// of drift, found in which round of which run, or which hint. It is an error if
// the event does not say that.
func (r *Runner) why(ctx context.Context, since time.Time, group, key string, registered bool) (string, error) {
	var of targetevent.Key
	ev, err := logged(ctx, r, since, targetevent.DetailTypeTargetsChanged, group, key, func(ev targetevent.TargetsChanged) bool {
		keys := ev.Deregistered
		if registered {
			keys = ev.Registered
		}
		i := slices.IndexFunc(keys, func(k targetevent.Key) bool { return fmt.Sprintf("%s:%d", k.ID, k.Port) == key })
		if i >= 0 && !ev.At.Before(since) && !ev.WouldDo {
			of = keys[i]
			return true
		}
		return false
	})
	if err != nil {
		return "", err
	}
	return named(ev.Cause, of)
}

// named says a cause in words.
func named(c targetevent.Cause, of targetevent.Key) (string, error) {
	switch {
	case c.Kind == targetevent.Hint && c.EventID+of.EventID != "":
		return strings.TrimSpace("hint " + of.Reason), nil
	case c.Kind == targetevent.Drift && c.RunID != "" && c.Round > 0 && c.Drift+of.Reason != "":
		kind := c.Drift
		if kind == "" { // several kinds in one call
			kind = of.Reason
		}
		return fmt.Sprintf("drift %s, round %d", kind, c.Round), nil
	}
	return "", fmt.Errorf("a change of %s:%d whose cause names neither a hint nor a drift with run and round: %+v", of.ID, of.Port, c)
}

// held waits for the news that removals of the group were not made.
func (r *Runner) held(ctx context.Context, since time.Time, group string, n int) (targetevent.RemovalHeld, error) {
	return logged(ctx, r, since, targetevent.DetailTypeRemovalHeld, group, fmt.Sprintf("%d held", n), func(ev targetevent.RemovalHeld) bool {
		return !ev.At.Before(since) && len(ev.Held) == n && ev.Hash != ""
	})
}

// finding waits for a round that tells of such a difference of the group.
func (r *Runner) finding(ctx context.Context, since time.Time, group, drift string) error {
	_, err := logged(ctx, r, since, targetevent.DetailTypeResyncCompleted, group, drift, func(ev targetevent.ResyncCompleted) bool {
		return !ev.At.Before(since) && slices.ContainsFunc(ev.Findings, func(f targetevent.Finding) bool { return f.TargetGroup == group && f.Drift == drift })
	})
	return err
}

// rounds is how long n rounds of resync take.
func (r *Runner) rounds(n int) time.Duration { return time.Duration(n) * r.S.Config.ResyncInterval }

// elbridge runs the operator's tool on the stack.
func (r *Runner) elbridge(ctx context.Context, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(r.S.Config.Binaries, "elbridge"), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = []string{"HOME=" + os.TempDir()}
	for name, value := range r.S.Env() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("elbridge %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}
