package registrar

import (
	"context"
	"errors"
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
		if b.Group.ARN == w.Group.ARN {
			of = append(of, *b)
			continue
		}
		if b.Group.ARN != "" {
			continue
		}
		g, err := r.describe(ctx, b)
		switch {
		case errors.Is(err, targetgroup.ErrNotFound):
		case errors.Is(err, targetgroup.ErrAmbiguous): // it covers nothing, and may have meant this group until a moment ago
			tags, err := r.tags.Group(ctx, w.API, w.Group.ARN)
			whole = whole && err == nil && !b.Group.Carried(tags)
		case err != nil:
			whole = false
		case g.ARN == w.Group.ARN:
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

// look asks of each pod what it claims under each binding (I2).
func (r *Registrar) look(w *groupWork, bs []binding.Binding, pods []claim.Seen) claim.View {
	events := make([]*eventpattern.Event, len(pods)) // nil: selected by nobody
	for i, p := range pods {
		var err error
		if events[i], err = r.event(w, p); err != nil {
			r.Log.Error("pod can't be matched", "cluster", p.Cluster, "pod", p.Namespace+"/"+p.Name, "err", err)
		}
	}
	v := claim.Look(bs, w.Group, pods, func(pod, bind int) bool {
		return events[pod] != nil && bs[bind].Pattern.Matches(events[pod])
	})
	for _, p := range v.Portless {
		w.Outbox = r.hands.Invalid(w.Outbox, noPort(w, &bs[p.Binding], p))
	}
	return v
}

// noPort is the event about a port name that a selected pod does not declare.
func noPort(w *groupWork, b *binding.Binding, p claim.Portless) targetevent.BindingInvalid {
	return targetevent.BindingInvalid{
		Cause: w.hints[0].cause(),
		Rule:  b.Rule, TargetID: b.TargetID, TargetGroup: w.Group.ARN, Mode: string(b.Mode),
		Problem: p.Problem(b.Port.Name),
	}
}

// event is the event that the webhook would send of the pod now; rules select
// live pods through it.
func (r *Registrar) event(w *groupWork, p claim.Seen) (*eventpattern.Event, error) {
	msg := w.hints[0].Message
	e := podevent.FromPod(p.Cluster, p.Pod, r.Config.Annotations, r.Now())
	return podmatch.Event(&e, podmatch.Envelope{ID: msg.EventID, Account: msg.Account, Region: msg.Region})
}
