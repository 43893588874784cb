package registrar

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// about says what the work's next changes are of: hints of bindings.
func (r *Registrar) about(w *groupWork, bs []binding.Binding, hs []*hint) {
	w.Bindings, w.Cause, w.Rule = bs, hs[0].cause(), hs[0].bind.Rule
	w.Lag = func(c plan.Change) (time.Duration, bool) {
		if h := hintFor(hs, c, w.Group.Family); h != nil {
			return r.Now().Sub(h.Detail.ObservedAt), true
		}
		return 0, false
	}
}

func (h *hint) cause() targetevent.Cause {
	return targetevent.Cause{Kind: targetevent.Hint, EventID: h.EventID, MessageID: h.msg.ID}
}

// caused puts causes on changes: the hint of each, or the first, whose reading
// showed it.
func caused(hs []*hint, f claim.Family, changes []plan.Change) []plan.Change {
	out := slices.Clone(changes)
	for i := range out {
		c := &out[i]
		h, reason := hs[0], "" // read along with the hints' pods
		if own := hintFor(hs, *c, f); own != nil {
			h, reason = own, string(own.Detail.Reason)
		}
		c.Cause = plan.Cause{Kind: string(targetevent.Hint), EventID: h.EventID, MessageID: h.msg.ID, Reason: reason}
	}
	return out
}

// hintFor returns the hint of the change's pod, or one that touches its address.
func hintFor(hs []*hint, c plan.Change, f claim.Family) *hint {
	if h := hintOf(hs, c.UID); h != nil {
		return h
	}
	for _, h := range hs {
		if h.touches(c.ID, f) {
			return h
		}
	}
	return nil
}

// invalid tells of a binding that covers nothing.
func (r *Registrar) invalid(ctx context.Context, ev targetevent.BindingInvalid) {
	r.hands.Send(ctx, r.hands.Invalid(nil, ev))
}

// problem is the event about a hint's binding.
func problem(m queue.Message, msg binding.Message, err error) targetevent.BindingInvalid {
	return targetevent.BindingInvalid{
		Cause: targetevent.Cause{Kind: targetevent.Hint, EventID: msg.EventID, MessageID: m.ID},
		Rule:  msg.Rule, TargetGroup: msg.Binding.Group.ARN, Mode: string(msg.Binding.Mode), Problem: err.Error(),
	}
}

// faultyRule tells of a rule of the bus that can't be understood (it covers
// nothing; the rest goes on).
func (r *Registrar) faultyRule(rule binding.Rule, err error) {
	r.invalid(context.Background(), targetevent.BindingInvalid{Cause: targetevent.Cause{Kind: targetevent.Hint}, Rule: rule.ARN, Problem: err.Error()})
}

func (r *Registrar) logOutcome(ctx context.Context, m queue.Message, o outcome) {
	level := slog.LevelDebug
	if o.bury != "" || o.result == Expired || o.result == Refused {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("message_id", m.ID), slog.String("result", string(o.result)), slog.Int("receives", m.Receives)}
	if o.err != nil {
		attrs = append(attrs, slog.String("err", o.err.Error()))
	}
	if o.again > 0 {
		attrs = append(attrs, slog.Float64("again_seconds", o.again.Seconds()))
	}
	r.Log.LogAttrs(ctx, level, "message handled", attrs...)
}
