package reconcile

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// operation is one of the two things that are done to targets, in the words of
// logs, ELB and metrics.
type operation struct{ verb, call, total, lag string }

var (
	registering   = operation{"register", "RegisterTargets", telemetry.RegistrationsTotal, telemetry.EventToRegisterSeconds}
	deregistering = operation{"deregister", "DeregisterTargets", telemetry.DeregistrationsTotal, telemetry.DeleteToDeregisterSeconds}
)

// failure is a change that was refused.
type failure struct {
	plan.Change
	err error
}

// tell tells of changes that were made, or would have been, and of failed ones:
// those of a failure that lasts once a witness window.
func (h *Hands) tell(ctx context.Context, w *Work, op operation, cs []plan.Change, failed []failure, current map[claim.Key]plan.Target, wouldDo bool) {
	for _, c := range cs {
		h.log(ctx, w, op, c, wouldDo)
	}
	if len(failed) > 0 {
		h.Meter.Count(op.total, float64(len(failed)), telemetry.DimResult, "failed")
		failed = h.news(w, op, failed)
	}
	for _, f := range failed {
		h.Log.WarnContext(ctx, "a change failed", "operation", op.verb, "target_group", w.Group.ARN, "target", f.Key.String(), "err", f.err)
	}
	for len(cs)+len(failed) > 0 { // several where one would be too large for the bus
		n := min(len(cs), targetevent.MaxListed)
		m := min(len(failed), targetevent.MaxListed-n)
		ev := w.changed(op, cs[:n], failed[:m])
		ev.Mode, ev.WouldDo, ev.Counts, ev.At = modeName(wouldDo), wouldDo, counts(w, current), h.Now().UTC()
		w.Outbox = h.Entry(w.Outbox, targetevent.DetailTypeTargetsChanged, w.Group.ARN, ev)
		cs, failed = cs[n:], failed[m:]
	}
}

// changed is the event about one decision, or a part of it.
func (w *Work) changed(op operation, cs []plan.Change, failed []failure) targetevent.TargetsChanged {
	ev := targetevent.TargetsChanged{Schema: targetevent.Schema, TargetGroup: w.Group.ARN, Registered: []targetevent.Key{}, Deregistered: []targetevent.Key{}}
	if op == registering {
		ev.Registered = EventKeys(cs)
	} else {
		ev.Deregistered = EventKeys(cs)
	}
	of := slices.Clone(cs)
	for _, f := range failed {
		ev.Failed = append(ev.Failed, targetevent.Failure{Key: targetevent.Key{ID: f.ID, Port: f.Port}, Operation: op.verb, Error: Brief(f.err.Error())})
		of = append(of, f.Change)
	}
	ev.Cause, ev.Rule = w.causeOf(of)
	return ev
}

// log writes one line a mutation and counts it.
func (h *Hands) log(ctx context.Context, w *Work, op operation, c plan.Change, wouldDo bool) {
	result := "done"
	if wouldDo {
		result = "would-do"
	}
	attrs := []slog.Attr{
		slog.String("verb", op.verb), slog.String("result", result), slog.String("target_group", w.Group.ARN), slog.String("target", c.Key.String()),
		slog.String("cluster", c.Cluster), slog.String("pod", c.Pod), slog.String("uid", c.UID), slog.String("node", c.Node),
		slog.String("rule", c.Rule), slog.String("health", string(c.Was)), slog.String("witness", string(c.Witness)),
		slog.String("cause", c.Cause.Kind), slog.String("event_id", c.Cause.EventID), slog.String("message_id", c.Cause.MessageID), slog.String("reason", c.Cause.Reason),
	}
	if c.Cause.RunID != "" {
		attrs = append(attrs, slog.String("run_id", c.Cause.RunID), slog.Int("round", c.Cause.Round), slog.String("request", c.Cause.Request))
	}
	if w.Lag != nil {
		if lag, known := w.Lag(c); known {
			attrs = append(attrs, slog.Float64("duration_seconds", lag.Seconds()))
			if !wouldDo && lag >= 0 {
				h.Meter.Observe(op.lag, lag.Seconds())
			}
		}
	}
	h.Log.LogAttrs(ctx, slog.LevelInfo, "target changed", attrs...)
	h.Meter.Count(op.total, 1, telemetry.DimResult, result)
}

// Held tells of held removals: always by the metrics, by an event when the plan
// is new, and once more when a key has been held for a witness window (I9).
func (h *Hands) Held(ctx context.Context, w *Work, held plan.Changes, current map[claim.Key]plan.Target) {
	if len(held.Held) == 0 {
		return
	}
	h.Meter.Count(telemetry.TargetsHeld, float64(len(held.Held)))
	now, hash := h.Now(), held.Hash(w.Group.ARN)
	of := h.holds.meet(w.Group.ARN, held.Held, hash, w.Cause.Request != "", now)
	if of.overdue > 0 {
		h.Meter.Count(telemetry.TargetsHeldOverdue, float64(of.overdue))
	}
	if !of.tell {
		return
	}
	if w.Partial {
		hash = ""
	}
	cs := zoned(w.Bindings, held.Held)
	observed := !slices.ContainsFunc(cs, func(c plan.Change) bool { return !h.Observes(w, c) })
	for _, c := range cs {
		h.Log.WarnContext(ctx, "removal held", "target_group", w.Group.ARN, "target", c.Key.String(), "cluster", c.Cluster, "pod", c.Pod,
			"uid", c.UID, "node", c.Node, "rule", c.Rule, "witness", string(c.Witness), "why", string(c.Hold), "plan", hash, "overdue", of.overdue > 0)
	}
	for part := range slices.Chunk(cs, targetevent.MaxListed) { // of one plan and hash; whole it might be too large for the bus
		cause, rule := w.causeOf(part)
		w.Outbox = h.Entry(w.Outbox, targetevent.DetailTypeRemovalHeld, w.Group.ARN, targetevent.RemovalHeld{
			Schema: targetevent.Schema, Cause: cause, Rule: rule, TargetGroup: w.Group.ARN, Mode: modeName(observed), WouldDo: observed,
			Held: EventKeys(part), Hash: hash, Overdue: of.overdue > 0, Since: of.since.UTC(), Counts: counts(w, current), At: now.UTC(),
		})
	}
}

// Invalid counts a binding that covers nothing, or not this pod, each time, and
// appends the event to those that leave once for each rule and problem within the
// witness window.
func (h *Hands) Invalid(to []bus.Entry, ev targetevent.BindingInvalid) []bus.Entry {
	h.Meter.Count(telemetry.BindingsInvalid, 1)
	now := h.Now()
	if !h.told.once(ev.Rule+"\x00"+ev.Problem, now) {
		return to
	}
	h.Log.Warn("binding covers nothing", "rule", ev.Rule, "err", ev.Problem)
	ev.Schema, ev.At = targetevent.Schema, now.UTC()
	return h.Entry(to, targetevent.DetailTypeBindingInvalid, ev.TargetGroup, ev)
}

// Entry appends an event to those that leave at the end of the work.
func (h *Hands) Entry(to []bus.Entry, detailType, resource string, detail any) []bus.Entry {
	text, err := json.Marshal(detail)
	if err != nil {
		h.Log.Error("event can't be written", "detail_type", detailType, "err", err)
		return to
	}
	e := bus.Entry{Source: targetevent.Source, DetailType: detailType, Detail: text}
	if resource != "" {
		e.Resources = []string{resource}
	}
	return append(to, e)
}

// Send puts events on the bus. What they tell of has been done and logged: one
// that can't be sent must not undo or repeat it.
func (h *Hands) Send(ctx context.Context, entries []bus.Entry) {
	if len(entries) == 0 {
		return
	}
	if _, err := h.Events.Put(ctx, entries); err != nil {
		h.Log.WarnContext(ctx, "events not sent", "count", len(entries), "err", err)
	}
}
