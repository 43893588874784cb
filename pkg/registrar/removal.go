package registrar

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/reconcile"
)

// removals takes out of the group what nobody claims any more among the touched
// addresses, and returns how many keys went. It asks again before it acts: which
// rules there are, who has the address, and whether removals are allowed. What
// can't be answered holds (I8).
func (r *Registrar) removals(ctx context.Context, w *groupWork, hs []*hint, pods []claim.Seen, ids map[string]bool, v claim.View, current map[claim.Key]plan.Target) int {
	cands := candidates(ids, v.Keys(), current)
	if len(cands) == 0 {
		return 0
	}
	all, err := r.rules.Fresh(ctx)
	if err != nil {
		r.cannotRemove(hs, w.Group, cands, err)
		return 0
	}
	bs, whole := r.bindingsOf(ctx, w, all.Bindings, nil)
	if len(bs) == 0 { // no binding names the group any more: not ours (I8)
		return 0
	}
	// By the rules as they are now: whoever has an address is asked for before it goes.
	if cands = candidates(ids, r.look(w, bs, pods).Keys(), current); len(cands) == 0 {
		return 0
	}
	lim, err := r.tags.Limits(ctx, r.Config.BusARN, r.Rules, w.API, w.Group, bs)
	if err != nil {
		r.cannotRemove(hs, w.Group, cands, err)
		return 0
	}
	_, doubt := all.Faulty(w.Group.ARN) // the pods that such a rule claims can't be told from others
	lim.Complete = whole && !doubt
	at := r.Now()
	owners, err := r.owners(ctx, w, bs, hs, cands)
	if err != nil {
		r.cannotRemove(hs, w.Group, cands, err)
		return 0
	}
	everyone := append(owners.all(), pods...)
	v = r.look(w, bs, everyone)
	changes, err := r.judged(ctx, w, bs, hs, v, everyone, ids, current, lim)
	if err == nil {
		changes.Deregister, err = r.confirmed(ctx, w, bs, hs, changes.Deregister, at)
	}
	if err != nil {
		r.cannotRemove(hs, w.Group, cands, err)
		return 0
	}
	return r.deregister(ctx, w, hs, bs, changes, current)
}

// judged is the plan for the touched keys that nobody claims.
func (r *Registrar) judged(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, v claim.View, everyone []claim.Seen,
	ids map[string]bool, current map[claim.Key]plan.Target, lim plan.Limits) (plan.Changes, error) {
	evidence, err := r.evidence(ctx, w, bs, hs, v, everyone, candidates(ids, v.Keys(), current))
	if err != nil {
		return plan.Changes{}, err
	}
	changes := plan.Diff(nil, evidence, current, lim)
	w.Partial = true
	if !slices.ContainsFunc(changes.Deregister, unwitnessed) {
		return changes, nil
	}
	if evidence, err = r.everything(ctx, w, bs, hs, everyone, current); err != nil {
		return plan.Changes{}, err
	}
	if current, err = w.API.Health(ctx, w.Group); err != nil { // others may have made removals meanwhile
		return plan.Changes{}, err
	}
	changes = plan.Diff(nil, evidence, current, lim)
	w.Partial = slices.ContainsFunc(changes.Held, foreign) // which no plan of resync holds
	changes.Deregister = slices.DeleteFunc(changes.Deregister, func(c plan.Change) bool { return !ids[c.ID] })
	return changes, nil
}

// confirmed asks once more who has the addresses, if it was asked too long ago,
// and returns the changes whose keys still nobody claims (I3).
func (r *Registrar) confirmed(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, cs []plan.Change, at time.Time) ([]plan.Change, error) {
	if len(cs) == 0 || r.Now().Sub(at) <= reconcile.DecisionMaxAge {
		return cs, nil
	}
	owners, err := r.owners(ctx, w, bs, hs, reconcile.KeysOf(cs))
	if err != nil {
		return nil, err
	}
	claimed := r.look(w, bs, owners.all()).Keys()
	return slices.DeleteFunc(cs, func(c plan.Change) bool { return claimed[c.Key] }), nil
}

func unwitnessed(c plan.Change) bool { return c.Witness == plan.Unwitnessed }
func foreign(c plan.Change) bool     { return c.Hold == plan.HeldForeign }

// everything is the evidence for all of the group's unclaimed keys. What goes
// without a witness is limited for the group, not for the hints that happen to
// share a batch: several instances that each know of one must all see the many.
func (r *Registrar) everything(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, known []claim.Seen, current map[claim.Key]plan.Target) (map[claim.Key]plan.Evidence, error) {
	o := &owned{pods: map[[2]string]claim.Seen{}}
	for _, p := range known {
		o.add(p.Cluster, p)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, name := range r.clustersOf(bs) {
		for i := range bs {
			g.Go(func() error { return o.bySelection(gctx, name, r.Clusters[name], &bs[i]) })
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	pods := o.all()
	v := r.look(w, bs, pods)
	claimed := v.Keys()
	var cands []claim.Key
	for k := range current {
		if !claimed[k] {
			cands = append(cands, k)
		}
	}
	return r.evidence(ctx, w, bs, hs, v, pods, cands)
}

// candidates returns the group's keys with a touched address that nobody
// claims, provided one of them is there to be removed; draining ones come along,
// since they count against the limit.
func candidates(ids map[string]bool, claimed map[claim.Key]bool, current map[claim.Key]plan.Target) []claim.Key {
	var out []claim.Key
	present := false
	for k, t := range current {
		if ids[k.ID] && !claimed[k] {
			out = append(out, k)
			present = present || t.Health != plan.Draining
		}
	}
	if !present {
		return nil
	}
	return out
}

// cannotRemove gives the hints that touch the keys the error that kept their
// removal from being decided. Registrations are not concerned (I6).
func (r *Registrar) cannotRemove(hs []*hint, g claim.Group, keys []claim.Key, err error) {
	failed := make(map[claim.Key]error, len(keys))
	for _, k := range keys {
		failed[k] = err
	}
	r.blame(hs, g, failed)
}

// deregister carries out the removals of a plan and tells of the held ones. What
// an emptied binding lets go later is left to resync.
func (r *Registrar) deregister(ctx context.Context, w *groupWork, hs []*hint, bs []binding.Binding, c plan.Changes, current map[claim.Key]plan.Target) int {
	r.about(w, bs, hs)
	c.Held = caused(hs, w.Group.Family, c.Held)
	r.hold(ctx, w, hs, c, current)
	done := r.hands.Deregister(ctx, &w.Work, caused(hs, w.Group.Family, c.Deregister), current)
	r.forgetGone(w.Group, done.Failed)
	if len(done.Made)+len(done.Failed) == 0 {
		return 0
	}
	w.removed = reconcile.KeysOf(done.Made)
	w.leaveOpen(w.removed)
	r.blame(hs, w.Group, done.Failed)
	return len(done.Made)
}

// hold tells of held removals and lets their hints come again: a witness may
// appear, or the claims may return.
func (r *Registrar) hold(ctx context.Context, w *groupWork, hs []*hint, c plan.Changes, current map[claim.Key]plan.Target) {
	if len(c.Held) == 0 {
		return
	}
	r.hands.Held(ctx, &w.Work, c, current)
	for _, ch := range c.Held {
		for _, h := range hs {
			switch {
			case !h.touches(ch.ID, w.Group.Family):
			case ch.Hold == plan.HeldForeign: // by the owner's will: waiting changes nothing
			default:
				h.outcome = again(Held, waitFor(waitHeld, h.age(r.Now())), errHeld(ch.Hold))
			}
		}
	}
}

type errHeld plan.HoldReason

func (e errHeld) Error() string { return "removal held: " + string(e) }
