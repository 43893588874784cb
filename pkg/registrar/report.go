package registrar

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// Publisher puts events on the bus.
type Publisher interface {
	Put(ctx context.Context, entries []bus.Entry) ([]bus.Unsent, error)
}

// record is one decision that was carried out, or would have been.
type record struct {
	register, deregister []plan.Change
	failed               map[claim.Key]error
	operation            string // of what failed
	wouldDo              bool
	current              map[claim.Key]plan.Target
}

// report tells of a decision with its cause (I10): one log line and one metric
// a key, and one event for all.
func (r *Registrar) report(ctx context.Context, w *groupWork, hs []*hint, rec record) {
	if len(rec.register)+len(rec.deregister)+len(rec.failed) == 0 {
		return
	}
	now := r.Now()
	r.logChanges(ctx, w, hs, rec.register, "register", telemetry.RegistrationsTotal, telemetry.EventToRegisterSeconds, rec.wouldDo)
	r.logChanges(ctx, w, hs, rec.deregister, "deregister", telemetry.DeregistrationsTotal, telemetry.DeleteToDeregisterSeconds, rec.wouldDo)
	cause, rule := causeOf(hs, append(slices.Clone(rec.register), rec.deregister...))
	ev := targetevent.TargetsChanged{
		Schema: targetevent.Schema, Cause: cause, Rule: rule, TargetGroup: w.g.ARN, Mode: modeName(rec.wouldDo), WouldDo: rec.wouldDo,
		Registered: eventKeys(rec.register), Deregistered: eventKeys(rec.deregister),
		Counts: counts(rec.current), At: now.UTC(),
	}
	for _, k := range slices.SortedFunc(maps.Keys(rec.failed), claim.Compare) {
		r.Log.WarnContext(ctx, "a change failed", "operation", rec.operation, "target_group", w.g.ARN, "target", k.String(), "err", rec.failed[k])
		ev.Failed = append(ev.Failed, targetevent.Failure{Key: targetevent.Key{ID: k.ID, Port: k.Port}, Operation: rec.operation, Error: rec.failed[k].Error()})
	}
	w.outbox = r.entry(w.outbox, targetevent.DetailTypeTargetsChanged, w.g.ARN, ev)
}

// logChanges writes one line a mutation and counts it.
func (r *Registrar) logChanges(ctx context.Context, w *groupWork, hs []*hint, cs []plan.Change, verb, total, lag string, wouldDo bool) {
	result := "done"
	if wouldDo {
		result = "would-do"
	}
	for _, c := range cs {
		attrs := []slog.Attr{
			slog.String("verb", verb), slog.String("result", result), slog.String("target_group", w.g.ARN), slog.String("target", c.Key.String()),
			slog.String("cluster", c.Cluster), slog.String("pod", c.Pod), slog.String("uid", c.UID), slog.String("node", c.Node),
			slog.String("rule", c.Rule), slog.String("health", string(c.Was)), slog.String("witness", string(c.Witness)),
			slog.String("cause", c.Cause.Kind), slog.String("event_id", c.Cause.EventID), slog.String("message_id", c.Cause.MessageID), slog.String("reason", c.Cause.Reason),
		}
		if h := hintFor(hs, c, w.g.Family); h != nil {
			seconds := r.Now().Sub(h.Detail.ObservedAt).Seconds()
			attrs = append(attrs, slog.Float64("duration_seconds", seconds))
			if !wouldDo && seconds >= 0 {
				r.Meter.Observe(lag, seconds)
			}
		}
		r.Log.LogAttrs(ctx, slog.LevelInfo, "target changed", attrs...)
		r.Meter.Count(total, 1, telemetry.DimResult, result)
	}
}

// reportHeld tells of held removals: always the metric, the event once for each
// plan within the witness window.
func (r *Registrar) reportHeld(ctx context.Context, w *groupWork, hs []*hint, c plan.Changes, current map[claim.Key]plan.Target) {
	r.Meter.Count(telemetry.TargetsHeld, float64(len(c.Held)))
	hash := c.Hash(w.g.ARN)
	if !r.told.first(hash) {
		return
	}
	cause, rule := causeOf(hs, c.Held)
	keys := eventKeys(c.Held)
	for _, ch := range c.Held {
		r.Log.WarnContext(ctx, "removal held", "target_group", w.g.ARN, "target", ch.Key.String(), "cluster", ch.Cluster, "pod", ch.Pod,
			"uid", ch.UID, "node", ch.Node, "rule", ch.Rule, "witness", string(ch.Witness), "why", string(ch.Hold), "plan", hash)
	}
	w.outbox = r.entry(w.outbox, targetevent.DetailTypeRemovalHeld, w.g.ARN, targetevent.RemovalHeld{
		Schema: targetevent.Schema, Cause: cause, Rule: rule, TargetGroup: w.g.ARN, Mode: modeName(false),
		Held: keys, Hash: hash, Counts: counts(current), At: r.Now().UTC(),
	})
}

// invalid tells of a binding that covers nothing, or not this pod.
func (r *Registrar) invalid(ctx context.Context, ev targetevent.BindingInvalid) {
	r.send(ctx, r.invalidEntry(nil, ev))
}

// invalidEntry counts each time, and appends the event once for each rule and
// problem within the witness window.
func (r *Registrar) invalidEntry(to []bus.Entry, ev targetevent.BindingInvalid) []bus.Entry {
	r.Meter.Count(telemetry.BindingsInvalid, 1)
	if !r.told.first(ev.Rule + "\x00" + ev.Problem) {
		return to
	}
	r.Log.Warn("binding covers nothing", "rule", ev.Rule, "err", ev.Problem)
	ev.Schema, ev.At = targetevent.Schema, r.Now().UTC()
	return r.entry(to, targetevent.DetailTypeBindingInvalid, ev.TargetGroup, ev)
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

// entry appends an event to those that leave at the end of the work.
func (r *Registrar) entry(to []bus.Entry, detailType, resource string, detail any) []bus.Entry {
	text, err := json.Marshal(detail)
	if err != nil {
		r.Log.Error("event can't be written", "detail_type", detailType, "err", err)
		return to
	}
	e := bus.Entry{Source: targetevent.Source, DetailType: detailType, Detail: text}
	if resource != "" {
		e.Resources = []string{resource}
	}
	return append(to, e)
}

// send puts events on the bus. What they tell of has been done and logged: one
// that can't be sent must not make its message come again.
func (r *Registrar) send(ctx context.Context, entries []bus.Entry) {
	if len(entries) == 0 {
		return
	}
	if _, err := r.Events.Put(ctx, entries); err != nil {
		r.Log.WarnContext(ctx, "events not sent", "count", len(entries), "err", err)
	}
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

func (r *Registrar) countCalls(operation string, res targetgroup.Result) {
	r.Meter.Count(telemetry.MutatingCallsTotal, float64(res.Calls), telemetry.DimOperation, operation)
}

// toldHolds remembers which held plans were told of, for the witness window.
type toldHolds struct {
	now func() time.Time
	mu  sync.Mutex
	at  map[string]time.Time
}

// holdWindow is the witness window: a hold that outlasts it is an alarm (I9).
const holdWindow = 3 * time.Minute

func (t *toldHolds) first(hash string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, told := t.at[hash]; told && t.now().Sub(at) < holdWindow {
		return false
	}
	if t.at == nil || len(t.at) >= maxRemembered {
		t.at = map[string]time.Time{}
	}
	t.at[hash] = t.now()
	return true
}

func modeName(wouldDo bool) string {
	if wouldDo {
		return string(binding.Observe)
	}
	return string(binding.Manage)
}

// causeOf names the hint and rule behind changes: those of the first change that
// has a hint, or else the first hint, whose reading showed the rest.
func causeOf(hs []*hint, cs []plan.Change) (targetevent.Cause, string) {
	h := hs[0]
	rule := h.bind.Rule
	for _, c := range cs {
		if own := hintOf(hs, c.UID); own != nil {
			h, rule = own, cmp.Or(c.Rule, own.bind.Rule)
			break
		}
	}
	return targetevent.Cause{Kind: targetevent.Hint, EventID: h.EventID, MessageID: h.msg.ID}, rule
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

func eventKeys(cs []plan.Change) []targetevent.Key {
	out := make([]targetevent.Key, 0, len(cs))
	for _, c := range cs {
		zone := c.Zone
		if zone == binding.ZoneAuto {
			zone = ""
		}
		out = append(out, targetevent.Key{ID: c.ID, Port: c.Port, Zone: zone, PodUID: c.UID, Pod: c.Pod, Cluster: c.Cluster, Node: c.Node,
			Witness: string(c.Witness), Reason: cmp.Or(string(c.Hold), c.Cause.Reason), Rule: c.Rule, EventID: c.Cause.EventID, MessageID: c.Cause.MessageID})
	}
	return out
}

func counts(current map[claim.Key]plan.Target) targetevent.Counts {
	var c targetevent.Counts
	for _, t := range current {
		switch t.Health {
		case plan.Draining:
			c.Draining++
			continue
		case plan.Healthy:
			c.Healthy++
		}
		c.Targets++
	}
	return c
}

func compareSeen(a, b seen) int {
	return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
