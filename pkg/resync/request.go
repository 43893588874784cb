package resync

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// Triggers of a round.
const (
	TriggerSchedule       = "schedule"
	TriggerRequest        = queue.TriggerRequest
	TriggerHintExpired    = queue.TriggerHintExpired
	TriggerWebhookStarted = "webhook-started"
	TriggerEventsDropped  = "events-dropped"
)

// wish is a request as a round works it off.
type wish struct {
	trigger string
	request targetevent.Request
	dryRun  bool
}

// asked reports whether an operator waits for the answer.
func (w wish) asked() bool { return w.trigger == TriggerRequest }

// readWish reads a message of the queue. Its error says what would be right.
func readWish(m queue.Message) (wish, error) {
	var in struct {
		queue.Request
		Source     string `json:"source"`
		DetailType string `json:"detail-type"`
	}
	if err := json.Unmarshal([]byte(m.Body), &in); err != nil {
		return wish{}, fmt.Errorf("not JSON: %w", err)
	}
	switch {
	case in.Source == podevent.Source && in.DetailType == podevent.DetailTypeWebhookStarted:
		return wish{trigger: TriggerWebhookStarted}, nil
	case in.Source == podevent.Source && in.DetailType == podevent.DetailTypeEventsDropped:
		return wish{trigger: TriggerEventsDropped}, nil
	case in.Source != "":
		return wish{}, fmt.Errorf("event %q of source %q: want %s or %s of %s", in.DetailType, in.Source,
			podevent.DetailTypeWebhookStarted, podevent.DetailTypeEventsDropped, podevent.Source)
	case in.Schema != targetevent.Schema:
		return wish{}, fmt.Errorf("schema %d: want %d", in.Schema, targetevent.Schema)
	case in.Trigger != TriggerRequest && in.Trigger != TriggerHintExpired:
		return wish{}, fmt.Errorf("trigger %q: want %s or %s", in.Trigger, TriggerRequest, TriggerHintExpired)
	case in.Request.Request.ID == "":
		return wish{}, fmt.Errorf("request.id: missing")
	case in.Request.Request.Approve != "" && strings.TrimSpace(in.Request.Request.Reason) == "":
		return wish{}, fmt.Errorf("request.reason: missing: an approval says why")
	}
	in.Request.Request.Sender = m.Sender
	return wish{trigger: in.Trigger, request: in.Request.Request, dryRun: in.DryRun}, nil
}

// maxRequestAge is how old a request may be that is still worked off: whoever
// waits for the answer has given up, and an approval is of what was seen then.
const maxRequestAge = 10 * time.Minute

// receive waits for requests until the given moment and returns what came, each
// removed from the queue: a request is a wish, and one that is lost with its
// function is made again by the person who waits, or by the next round.
func (r *Resync) receive(ctx context.Context, until time.Time) []wish {
	for {
		left := until.Sub(r.Now())
		if left <= 0 || left > r.Config.Interval || ctx.Err() != nil { // more is left only by a clock that was turned back
			return nil
		}
		if r.Inbox == nil || left < leastPoll/2 { // SQS counts whole seconds; less would be no wait
			_ = r.Sleep(ctx, left) // ctx is looked at above
			continue
		}
		ms, err := r.Inbox.Receive(ctx, min(left, maxPoll))
		if err != nil {
			if ctx.Err() == nil {
				r.Log.WarnContext(ctx, "requests not read", "err", err)
			}
			_ = r.Sleep(ctx, min(left, inboxPause))
			continue
		}
		if ws := r.wishes(ctx, ms); len(ws) > 0 {
			return ws
		}
	}
}

const (
	// maxPoll is SQS's longest wait for a message.
	maxPoll = 20 * time.Second
	// leastPoll is SQS's shortest one: it asks all of the queue's servers.
	leastPoll = time.Second
	// inboxPause keeps an unreadable queue from being asked without end.
	inboxPause = 2 * time.Second
)

// wishes reads messages and takes them off the queue; those that can't be
// understood are buried, with the reason.
func (r *Resync) wishes(ctx context.Context, ms []queue.Message) []wish {
	var out []wish
	for _, m := range ms {
		w, err := readWish(m)
		result := "taken"
		switch {
		case err != nil:
			result = "malformed"
			r.Log.WarnContext(ctx, "request not understood", "message_id", m.ID, "sender", m.Sender, "err", err)
			if err := r.Inbox.Bury(ctx, m, err.Error()); err != nil {
				r.Log.WarnContext(ctx, "request could not be buried, it comes again", "message_id", m.ID, "err", err)
				continue
			}
		case !m.Sent.IsZero() && r.Now().Sub(m.Sent) > maxRequestAge:
			result = "expired"
		default:
			out = append(out, w)
		}
		r.Meter.Count(telemetry.RequestsTotal, 1, telemetry.DimResult, result)
		if err := r.Inbox.Delete(ctx, m); err != nil {
			r.Log.WarnContext(ctx, "request was read, but stays in the queue", "message_id", m.ID, "err", err)
		}
	}
	return out
}
