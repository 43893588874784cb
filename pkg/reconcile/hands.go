package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// Hands carry plans out and tell of them: each change in a line of the log and in
// the metrics, each decision in an event (I10). Where something is only observed
// they change nothing and tell what they would do (I19). Its fields are set once.
type Hands struct {
	Observe  bool            // everything is only observed
	Observed map[string]bool // clusters that are
	Events   Publisher
	Meter    *telemetry.Meter
	Log      *slog.Logger
	Now      func() time.Time

	told  told
	holds holds
}

// Work is one group with what is done about it.
type Work struct {
	Group    claim.Group
	API      Groups
	Bindings []binding.Binding // of the group: modes and zones
	Cause    targetevent.Cause // of what has no cause of its own
	Rule     string            // of what no rule is known to be behind
	Claimed  int               // keys of the group that are claimed, where all of them are known
	// Observe: changes of which no cluster is known are only told of, since one of
	// the group's clusters is only observed (I19).
	Observe bool
	// Partial: held removals are not all that the group has, so that no hash of theirs
	// would be one that resync finds again, and can be approved.
	Partial bool
	// Lag is the time since the event behind a change was observed, where it is
	// known. nil: it never is.
	Lag func(plan.Change) (time.Duration, bool)
	// Outbox holds the events that leave when the group is done, so that nobody's
	// registration waits for them.
	Outbox []bus.Entry
}

// Done is what became of changes.
type Done struct {
	Made, WouldDo []plan.Change
	Failed        map[claim.Key]error // never nil
	Calls         int                 // mutating calls sent
}

// Register carries out registrations, by zone.
func (h *Hands) Register(ctx context.Context, w *Work, changes []plan.Change) Done {
	d := Done{Failed: map[claim.Key]error{}}
	zones := byZone(h.part(w, changes, &d))
	h.tell(ctx, w, registering, d.WouldDo, nil, nil, true)
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		cs := zones[zone]
		res := w.API.Register(ctx, w.Group, KeysOf(cs), zone)
		made := h.called(registering, cs, res, &d)
		h.tell(ctx, w, registering, made, failures(cs, res), nil, false)
	}
	return d
}

// Deregister carries out removals. current is what the group held.
func (h *Hands) Deregister(ctx context.Context, w *Work, changes []plan.Change, current map[claim.Key]plan.Target) Done {
	d := Done{Failed: map[claim.Key]error{}}
	cs := h.part(w, changes, &d)
	h.tell(ctx, w, deregistering, d.WouldDo, nil, current, true)
	if len(cs) == 0 {
		return d
	}
	res := w.API.Deregister(ctx, w.Group, KeysOf(cs))
	made := h.called(deregistering, cs, res, &d)
	h.tell(ctx, w, deregistering, made, failures(cs, res), current, false)
	return d
}

// part puts zones on changes and returns those to be made; those only to be told
// of go to d (I19).
func (h *Hands) part(w *Work, changes []plan.Change, d *Done) (manage []plan.Change) {
	for _, c := range zoned(w.Bindings, changes) {
		if h.Observes(w, c) {
			d.WouldDo = append(d.WouldDo, c)
		} else {
			manage = append(manage, c)
		}
	}
	return manage
}

// Observes reports whether a change would only be told of: everything, its
// cluster or its rule is observed, or may be (I19).
func (h *Hands) Observes(w *Work, c plan.Change) bool {
	return h.Observe || h.Observed[c.Cluster] || c.Cluster == "" && w.Observe || binding.ModeOf(w.Bindings, c.Rule) == binding.Observe
}

// called counts a call, adds what became of its changes to d, and returns those
// that were made.
func (h *Hands) called(op operation, cs []plan.Change, res targetgroup.Result, d *Done) (made []plan.Change) {
	h.Meter.Count(telemetry.MutatingCallsTotal, float64(res.Calls), telemetry.DimOperation, op.call)
	for _, c := range cs {
		if res.Failed[c.Key] == nil {
			made = append(made, c)
		}
	}
	d.Made = append(d.Made, made...)
	d.Calls += res.Calls
	maps.Copy(d.Failed, res.Failed)
	return made
}

func failures(cs []plan.Change, res targetgroup.Result) []failure {
	var out []failure
	for _, c := range cs {
		if err := res.Failed[c.Key]; err != nil {
			out = append(out, failure{c, err})
		}
	}
	return out
}

// Zones returns the zone that the bindings name, by rule.
func Zones(bs []binding.Binding) map[string]string {
	out := make(map[string]string, len(bs))
	for i := range bs {
		out[bs[i].Rule] = bs[i].AvailabilityZone
	}
	return out
}

// zoned returns the changes with the zones that their rules have.
func zoned(bs []binding.Binding, changes []plan.Change) []plan.Change {
	zones := Zones(bs)
	out := slices.Clone(changes)
	for i := range out {
		out[i].Zone = zones[out[i].Rule]
	}
	return out
}

func byZone(changes []plan.Change) map[string][]plan.Change {
	out := map[string][]plan.Change{}
	for _, c := range changes {
		out[c.Zone] = append(out[c.Zone], c)
	}
	return out
}

// KeysOf returns the keys of changes, in their order.
func KeysOf(cs []plan.Change) []claim.Key {
	out := make([]claim.Key, len(cs))
	for i, c := range cs {
		out[i] = c.Key
	}
	return out
}
