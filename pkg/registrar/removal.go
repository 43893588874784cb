package registrar

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

// removals takes out of the group what nobody claims any more among the touched
// addresses, and returns how many keys went. It asks again before it acts: which
// rules there are, who has the address, and whether removals are allowed. What
// can't be answered holds (I8).
func (r *Registrar) removals(ctx context.Context, w *groupWork, hs []*hint, pods []seen, ids map[string]bool, v view, current map[claim.Key]plan.Target) int {
	cands := candidates(ids, v.keys(), current)
	if len(cands) == 0 {
		return 0
	}
	all, err := r.rules.fresh(ctx)
	if err != nil {
		r.cannotRemove(hs, w.g, cands, err)
		return 0
	}
	bs, whole := r.bindingsOf(ctx, w, all, nil)
	if len(bs) == 0 { // no binding names the group any more: not ours (I8)
		return 0
	}
	lim, err := r.limits(ctx, w, bs)
	if err != nil {
		r.cannotRemove(hs, w.g, cands, err)
		return 0
	}
	lim.Complete = whole
	at := r.Now()
	owners, err := r.owners(ctx, w, bs, hs, cands)
	if err != nil {
		r.cannotRemove(hs, w.g, cands, err)
		return 0
	}
	everyone := append(owners.all(), pods...)
	v = r.look(w, bs, everyone)
	changes, err := r.judged(ctx, w, bs, hs, v, everyone, ids, current, lim)
	if err == nil {
		changes.Deregister, err = r.confirmed(ctx, w, bs, hs, changes.Deregister, at)
	}
	if err != nil {
		r.cannotRemove(hs, w.g, cands, err)
		return 0
	}
	return r.deregister(ctx, w, hs, bs, changes, current)
}

// judged is the plan for the touched keys that nobody claims.
func (r *Registrar) judged(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, v view, everyone []seen,
	ids map[string]bool, current map[claim.Key]plan.Target, lim plan.Limits) (plan.Changes, error) {
	evidence, err := r.evidence(ctx, w, bs, hs, v, everyone, candidates(ids, v.keys(), current))
	if err != nil {
		return plan.Changes{}, err
	}
	changes := plan.Diff(nil, evidence, current, lim)
	if !slices.ContainsFunc(changes.Deregister, unwitnessed) {
		return changes, nil
	}
	if evidence, err = r.everything(ctx, w, bs, hs, everyone, current); err != nil {
		return plan.Changes{}, err
	}
	if current, err = w.api.Health(ctx, w.g); err != nil { // others may have made removals meanwhile
		return plan.Changes{}, err
	}
	changes = plan.Diff(nil, evidence, current, lim)
	changes.Deregister = slices.DeleteFunc(changes.Deregister, func(c plan.Change) bool { return !ids[c.ID] })
	return changes, nil
}

// confirmed asks once more who has the addresses, if it was asked too long ago,
// and returns the changes whose keys still nobody claims (I3).
func (r *Registrar) confirmed(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, cs []plan.Change, at time.Time) ([]plan.Change, error) {
	if len(cs) == 0 || r.Now().Sub(at) <= decisionMaxAge {
		return cs, nil
	}
	owners, err := r.owners(ctx, w, bs, hs, keysOf(cs))
	if err != nil {
		return nil, err
	}
	claimed := r.look(w, bs, owners.all()).keys()
	return slices.DeleteFunc(cs, func(c plan.Change) bool { return claimed[c.Key] }), nil
}

func unwitnessed(c plan.Change) bool { return c.Witness == plan.Unwitnessed }

// everything is the evidence for all of the group's unclaimed keys. What goes
// without a witness is limited for the group, not for the hints that happen to
// share a batch: several instances that each know of one must all see the many.
func (r *Registrar) everything(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint, known []seen, current map[claim.Key]plan.Target) (map[claim.Key]plan.Evidence, error) {
	o := &owned{pods: map[[2]string]seen{}}
	for _, p := range known {
		o.add(p.cluster, p)
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
	claimed := v.keys()
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

// limits are the strictest rails of the group's bindings, with the owner's and
// the operators' word on group and bus.
func (r *Registrar) limits(ctx context.Context, w *groupWork, bs []binding.Binding) (plan.Limits, error) {
	group, err := r.tags.of(ctx, w.g.ARN, w.api.Tags)
	if err != nil {
		return plan.Limits{}, err
	}
	busTags, err := r.tags.of(ctx, r.Config.BusARN, r.Rules.Tags)
	if err != nil {
		return plan.Limits{}, err
	}
	lim := plan.Limits{Owned: binding.Owns(group[binding.OwnerTag], r.Config.BusARN, w.g.ARN), Frozen: binding.Frozen(group) || binding.Frozen(busTags), MaxRemovalPercent: 100}
	for i := range bs {
		lim.MaxRemovalPercent = min(lim.MaxRemovalPercent, bs[i].MaxRemovalPercent)
		lim.MinTargets = max(lim.MinTargets, bs[i].MinTargets)
		lim.Owned = lim.Owned && !bs[i].KeepForeign
	}
	return lim, nil
}

// decisionMaxAge is the age of a reading that is still acted on (I3).
const decisionMaxAge = 2 * time.Second

// tagBook keeps tags as long as a decision is still acted on (I3).
type tagBook struct {
	now func() time.Time
	mu  sync.Mutex
	m   map[string]tagEntry
}

type tagEntry struct {
	tags map[string]string
	read time.Time
}

func (b *tagBook) of(ctx context.Context, arn string, read func(context.Context, string) (map[string]string, error)) (map[string]string, error) {
	b.mu.Lock()
	e, known := b.m[arn]
	b.mu.Unlock()
	if known && b.now().Sub(e.read) < decisionMaxAge {
		return e.tags, nil
	}
	at := b.now()
	tags, err := read(ctx, arn)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil || len(b.m) >= maxRemembered {
		b.m = map[string]tagEntry{}
	}
	b.m[arn] = tagEntry{tags, at}
	return tags, nil
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

// deregister carries out the removals of a plan and tells of the held ones.
func (r *Registrar) deregister(ctx context.Context, w *groupWork, hs []*hint, bs []binding.Binding, c plan.Changes, current map[claim.Key]plan.Target) int {
	c.Held, c.Deregister = attribute(bs, hs, w.g.Family, c.Held), attribute(bs, hs, w.g.Family, c.Deregister)
	r.hold(ctx, w, hs, c, current)
	manage, observe := r.byMode(bs, c.Deregister)
	r.report(ctx, w, hs, record{deregister: observe, wouldDo: true, current: current})
	if len(manage) == 0 {
		return 0
	}
	res := w.api.Deregister(ctx, w.g, keysOf(manage))
	r.forgetGone(w.g, res.Err())
	r.countCalls("DeregisterTargets", res)
	var gone []plan.Change
	for _, ch := range manage {
		if res.Failed[ch.Key] == nil {
			gone = append(gone, ch)
		}
	}
	w.removed = keysOf(gone)
	w.leaveOpen(w.removed)
	r.blame(hs, w.g, res.Failed)
	r.report(ctx, w, hs, record{deregister: gone, failed: res.Failed, operation: "deregister", current: current})
	return len(gone)
}

// hold tells of held removals and lets their hints come again: a witness may
// appear, or the claims may return.
func (r *Registrar) hold(ctx context.Context, w *groupWork, hs []*hint, c plan.Changes, current map[claim.Key]plan.Target) {
	if len(c.Held) == 0 {
		return
	}
	r.reportHeld(ctx, w, hs, c, current)
	for _, ch := range c.Held {
		for _, h := range hs {
			switch {
			case !h.touches(ch.ID, w.g.Family):
			case ch.Hold == plan.HeldForeign: // by the owner's will: waiting changes nothing
			default:
				h.outcome = again(Held, waitFor(waitHeld, h.age(r.Now())), errHeld(ch.Hold))
			}
		}
	}
}

type errHeld plan.HoldReason

func (e errHeld) Error() string { return "removal held: " + string(e) }
