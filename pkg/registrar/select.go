package registrar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// bindingsOf returns the bindings among bs that name the group, the hints' own
// included where bs doesn't know their rule yet: a cold start need not read 300
// rules before it registers. whole is false if a reference could not be
// resolved, so that it is not known whether it names this group.
func (r *Registrar) bindingsOf(ctx context.Context, w *groupWork, bs []binding.Binding, hs []*hint) (of []binding.Binding, whole bool) {
	whole = true
	for i := range bs {
		b := &bs[i]
		if b.Group.ARN == w.g.ARN {
			of = append(of, *b)
			continue
		}
		if b.Group.ARN != "" {
			continue
		}
		g, err := r.describe(ctx, b)
		switch {
		case errors.Is(err, targetgroup.ErrNotFound), errors.Is(err, targetgroup.ErrAmbiguous):
		case err != nil:
			whole = false
		case g.ARN == w.g.ARN:
			of = append(of, *b)
		}
	}
	for _, h := range hs {
		if !slices.ContainsFunc(of, func(b binding.Binding) bool { return b.Rule == h.bind.Rule }) {
			of = append(of, *h.bind)
		}
	}
	return of, whole
}

// view is what some pods claim of a group, all its bindings considered.
type view struct {
	claims    []claim.Claim            // by enabled bindings: to be registered
	protected map[claim.Key]bool       // claimed under a disabled rule: not registered, not removed (I8)
	rules     map[string]string        // by UID, the rule that selects the pod; one that manages, if any does
	within    map[string]bool          // UIDs with an address within the podCIDRs of a binding that selects them
	refusals  map[string]claim.Refusal // by UID, of selected pods that claim nothing
}

// look asks of each pod what it claims under each binding (I2).
func (r *Registrar) look(w *groupWork, bs []binding.Binding, pods []seen) view {
	v := view{protected: map[claim.Key]bool{}, rules: map[string]string{}, within: map[string]bool{}, refusals: map[string]claim.Refusal{}}
	for _, p := range pods {
		e, err := r.event(w, p)
		if err != nil {
			r.Log.Error("pod can't be matched", "cluster", p.cluster, "pod", p.Namespace+"/"+p.Name, "err", err)
			continue
		}
		for i := range bs {
			b := &bs[i]
			if !b.Pattern.Matches(e) {
				continue
			}
			if v.rules[p.UID] == "" || b.Mode == binding.Manage && modeOf(bs, v.rules[p.UID]) == binding.Observe {
				v.rules[p.UID] = b.Rule
			}
			v.within[p.UID] = v.within[p.UID] || inCIDRs(p.Pod, b)
			k, refusal := claim.Of(p.Pod, b, w.g)
			switch {
			case refusal != claim.None:
				v.refusals[p.UID] = refusal
				if refusal == claim.NoPort {
					w.outbox = r.invalidEntry(w.outbox, noPort(w, b, p))
				}
			case !b.Enabled:
				v.protected[k] = true
			default:
				v.claims = append(v.claims, claim.Claim{Key: k, Cluster: p.cluster, Pod: p.Namespace + "/" + p.Name,
					UID: p.UID, Node: p.NodeName, Rule: b.Rule})
			}
		}
	}
	// One rule's word for a key, whatever order the pods came in (I3); one that
	// manages, if any does.
	observed := func(c claim.Claim) int {
		if modeOf(bs, c.Rule) == binding.Observe {
			return 1
		}
		return 0
	}
	slices.SortFunc(v.claims, func(a, b claim.Claim) int {
		return cmp.Or(claim.Compare(a.Key, b.Key), cmp.Compare(observed(a), observed(b)), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.UID, b.UID))
	})
	return v
}

// noPort is the event about a port name that a selected pod does not declare.
func noPort(w *groupWork, b *binding.Binding, p seen) targetevent.BindingInvalid {
	msg := w.hints[0]
	return targetevent.BindingInvalid{
		Cause: targetevent.Cause{Kind: targetevent.Hint, EventID: msg.EventID, MessageID: msg.msg.ID},
		Rule:  b.Rule, TargetID: b.TargetID, TargetGroup: w.g.ARN, Mode: string(b.Mode),
		Problem: fmt.Sprintf("port %q: %s, such as %s/%s in cluster %s", b.Port.Name, claim.NoPort, p.Namespace, p.Name, p.cluster),
	}
}

// event is the event that the webhook would send of the pod now; rules select
// live pods through it.
func (r *Registrar) event(w *groupWork, p seen) (*eventpattern.Event, error) {
	msg := w.hints[0].Message
	e := podevent.FromPod(p.cluster, p.Pod, r.Config.Annotations, r.Now())
	return podmatch.Event(&e, podmatch.Envelope{ID: msg.EventID, Account: msg.Account, Region: msg.Region})
}

// inCIDRs reports whether the binding has podCIDRs and one holds an address of
// the pod.
func inCIDRs(p *podevent.Pod, b *binding.Binding) bool {
	for _, a := range addrs(p.PodIPs) {
		if len(b.PodCIDRs) > 0 && claim.Allowed(a, b.PodCIDRs) {
			return true
		}
	}
	return false
}

// keys returns the keys that v claims, protected ones included.
func (v view) keys() map[claim.Key]bool {
	out := make(map[claim.Key]bool, len(v.claims)+len(v.protected))
	for _, c := range v.claims {
		out[c.Key] = true
	}
	for k := range v.protected {
		out[k] = true
	}
	return out
}
