package registrar

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// next says whether to look again, and after what wait.
type next struct {
	again bool
	after time.Duration
}

// round compares what the pods claim with what the group holds and acts, first
// registering, then deregistering (I6). An error is one that stopped everything;
// the failure of single keys is given to the hints they belong to.
func (r *Registrar) round(ctx context.Context, w *groupWork, hs []*hint) (next, error) {
	w.open = map[claim.Key]bool{}
	bs, _ := r.bindingsOf(ctx, w, r.rules.Cached(), hs)
	asked := w.removed
	pods, err := r.pods(ctx, w, bs, hs)
	if err != nil {
		return next{}, err
	}
	v := r.look(w, bs, pods)
	ids := touched(w, hs, pods, v)
	if w.isRight(v, ids) {
		return next{}, nil
	}
	current, err := w.API.Health(ctx, w.Group)
	if err != nil {
		if errors.Is(err, targetgroup.ErrNotFound) {
			r.groups.Forget(w.Group.ARN)
		}
		return next{}, err
	}
	if r.Now().Sub(w.read) > reconcile.DecisionMaxAge { // the pods may have moved on (I3)
		r.readPods(ctx, w, hs)
		hs = unfinished(hs)
		if len(hs) == 0 {
			return next{}, nil
		}
		pods = w.pods(hs)
		v = r.look(w, bs, pods)
		ids = touched(w, hs, pods, v)
	}
	if unasked := doubtful(w.Group, hs, v, current, asked); len(unasked) > 0 {
		owners, err := r.owners(ctx, w, bs, hs, unasked)
		if err != nil {
			r.cannotRemove(hs, w.Group, unasked, err)
		} else {
			pods = append(pods, owners.all()...)
			v = r.look(w, bs, pods)
		}
	}
	return r.act(ctx, w, hs, bs, pods, ids, v, current), nil
}

// pods returns the pods read for the hints, those registered by the last round,
// and whoever has the addresses that the last round removed (I3).
func (r *Registrar) pods(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint) ([]claim.Seen, error) {
	pods, err := r.readAdded(ctx, w, w.pods(hs))
	if err != nil || len(w.removed) == 0 {
		return pods, err
	}
	owners, err := r.owners(ctx, w, bs, hs, w.removed)
	if err != nil {
		return nil, err
	}
	w.removed = nil
	return append(pods, owners.all()...), nil
}

// act makes the changes of a round.
func (r *Registrar) act(ctx context.Context, w *groupWork, hs []*hint, bs []binding.Binding, pods []claim.Seen, ids map[string]bool, v claim.View, current map[claim.Key]plan.Target) next {
	w.right = map[claim.Key]bool{}
	for _, c := range v.Claims {
		t, held := current[c.Key]
		w.right[c.Key] = held && t.Health != plan.Draining
	}
	before := len(w.added)
	adds := plan.Diff(v.Claims, nil, current, plan.Limits{})
	var n next
	var failed map[claim.Key]error
	if len(adds.Register) > 0 {
		if n.after = r.pace.due(w.Group.ARN); n.after > 0 {
			n.again = true // what becomes due meanwhile goes into the same call
			w.leaveOpen(reconcile.KeysOf(adds.Register))
		} else {
			failed = r.register(ctx, w, hs, bs, adds.Register, &n)
		}
	}
	if r.removals(ctx, w, hs, pods, ids, v, current) > 0 {
		n.again = true
		if full := refusedByQuota(adds.Register, failed); len(full) > 0 { // removals made room (P010)
			for _, c := range full {
				delete(failed, c.Key)
			}
			maps.Copy(failed, r.register(ctx, w, hs, bs, full, &n))
		}
	}
	w.added = w.added[before:]
	r.blame(hs, w.Group, failed)
	return n
}

// doubtful returns the touched keys that no pod read so far claims and whose
// owners nobody may have asked for after they went: what drains, and, where a
// message comes once more, what is absent. The one who removed them may have
// ended before it looked again (I2, I3). The owners of asked are known.
func doubtful(g claim.Group, hs []*hint, v claim.View, current map[claim.Key]plan.Target, asked []claim.Key) []claim.Key {
	claimed, state := map[string]bool{}, map[string]plan.Health{}
	for _, k := range asked {
		claimed[k.ID] = true
	}
	for k := range v.Keys() {
		claimed[k.ID] = true
	}
	for k, t := range current {
		if state[k.ID] == "" || t.Health == plan.Draining {
			state[k.ID] = cmp.Or(t.Health, plan.Unavailable)
		}
	}
	var out []claim.Key
	for _, h := range hs {
		for _, id := range h.ids(g.Family) {
			lost := state[id] == plan.Draining || state[id] == "" && h.msg.Receives > 1
			if lost && !claimed[id] && !h.preferred {
				out = append(out, claim.Key{ID: id})
			}
		}
	}
	return out
}

// unfinished returns the hints that have no outcome yet.
func unfinished(hs []*hint) []*hint {
	return slices.DeleteFunc(slices.Clone(hs), func(h *hint) bool { return h.outcome.result != "" })
}

func refusedByQuota(changes []plan.Change, failed map[claim.Key]error) []plan.Change {
	var out []plan.Change
	for _, c := range changes {
		if errors.Is(failed[c.Key], targetgroup.ErrQuota) {
			out = append(out, c)
		}
	}
	return out
}

// isRight reports whether an earlier round of this invocation left every claim
// in place and nothing that was touched is unclaimed: then the group need not be
// described again.
func (w *groupWork) isRight(v claim.View, ids map[string]bool) bool {
	if w.right == nil {
		return false
	}
	claimed := map[string]bool{}
	for k := range v.Keys() {
		if !w.right[k] {
			return false
		}
		claimed[k.ID] = true
	}
	for id := range ids {
		if !claimed[id] {
			return false
		}
	}
	return true
}

// touched returns the addresses on which claims may have changed: the hints',
// those of pods read along that no longer claim theirs, and those that the last
// round registered.
func touched(w *groupWork, hs []*hint, pods []claim.Seen, v claim.View) map[string]bool {
	g, ids := w.Group, map[string]bool{}
	for _, c := range w.added {
		ids[c.ID] = true
	}
	for _, h := range hs {
		if h.preferred {
			continue // an event that was not verified removes nothing
		}
		for _, id := range h.ids(g.Family) {
			ids[id] = true
		}
	}
	for _, p := range pods {
		if v.Refusals[p.ID()] != claim.None {
			for _, id := range claim.Addresses(p.PodIPs, g.Family) {
				ids[id] = true
			}
		}
	}
	return ids
}

// register carries out registrations and returns what failed, by key.
func (r *Registrar) register(ctx context.Context, w *groupWork, hs []*hint, bs []binding.Binding, changes []plan.Change, n *next) map[claim.Key]error {
	r.about(w, bs, hs)
	done := r.hands.Register(ctx, &w.Work, caused(hs, w.Group.Family, changes))
	if done.Calls > 0 {
		r.pace.called(w.Group.ARN)
	}
	r.forgetGone(w.Group, done.Failed)
	for _, c := range done.Made {
		w.added = append(w.added, claim.Claim{Key: c.Key, Cluster: c.Cluster, Pod: c.Pod, UID: c.UID, Node: c.Node, Rule: c.Rule})
		if w.right[c.Key] = c.Was != plan.Draining; !w.right[c.Key] {
			w.leaveOpen([]claim.Key{c.Key}) // it is watched until it sticks (I5)
		}
		n.again = true
	}
	return done.Failed
}

// blame gives the failure of a key to the hints that touch it; a key without a
// hint in this batch has one under way.
func (r *Registrar) blame(hs []*hint, g claim.Group, failed map[claim.Key]error) {
	for k, err := range failed {
		for _, h := range hs {
			if h.touches(k.ID, g.Family) {
				h.outcome = r.failure(h, err)
			}
		}
	}
}

func (h *hint) touches(id string, f claim.Family) bool {
	return slices.Contains(h.ids(f), id)
}

// forgetGone drops what is remembered of a group that proved gone.
func (r *Registrar) forgetGone(g claim.Group, failed map[claim.Key]error) {
	for _, err := range failed {
		if errors.Is(err, targetgroup.ErrNotFound) {
			r.groups.Forget(g.ARN)
			return
		}
	}
}
