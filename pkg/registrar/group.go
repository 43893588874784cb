package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/reconcile"
)

const (
	// firstReread and lastReread span the waits between readings of a pod whose
	// change is not stored yet: admission answers some milliseconds before the
	// write is stored; other webhooks may take longer.
	firstReread = 10 * time.Millisecond
	lastReread  = 250 * time.Millisecond
	// rereadFor is how long an invocation goes on reading for a change.
	rereadFor = time.Second
	// refusedAfter: another webhook may hold a write for 30 s, and a conflict
	// repeats it. After twice that the change was refused (I1).
	refusedAfter = 60 * time.Second
	// maxRounds bounds "act, look again, act again" within one invocation. A
	// group that moves faster than that has hints of its own under way.
	maxRounds = 4
)

// groupWork is what one invocation has to do for one target group.
type groupWork struct {
	reconcile.Work
	hints   []*hint
	list    *listing           // pods of the binding, where a LIST was worth it
	read    time.Time          // when the pods were
	right   map[claim.Key]bool // claimed keys that the last round found or put in place
	added   []claim.Claim      // by the last round, to be read once more
	removed []claim.Key        // by the last round, to be asked for once more
	open    map[claim.Key]bool // keys that the last round could not see right yet
}

// group works off the hints of one group: those whose change is stored at once,
// the others as it shows.
func (r *Registrar) group(ctx context.Context, w *groupWork) {
	defer func() { r.hands.Send(ctx, w.Outbox) }()
	pending := w.hints
	wait := firstReread
	for until := r.Now().Add(rereadFor); ; {
		r.readPods(ctx, w, pending)
		var settled, left []*hint
		for _, h := range pending {
			switch {
			case h.outcome.result != "": // could not be read
			case h.settled:
				settled = append(settled, h)
			default:
				left = append(left, h)
			}
		}
		if len(settled) > 0 {
			r.settle(ctx, w, settled)
		}
		pending = left
		if len(pending) == 0 || r.Now().After(until) || r.Sleep(ctx, wait) != nil {
			break
		}
		wait = min(2*wait, lastReread)
	}
	for _, h := range pending {
		h.outcome = r.unsettled(h)
	}
}

func (r *Registrar) unsettled(h *hint) outcome {
	age := h.age(r.Now())
	if age > refusedAfter {
		return done(Refused)
	}
	return again(Unsettled, waitShort, fmt.Errorf("the change is not stored after %s", age.Round(time.Millisecond)))
}

// settle makes the group right for hints whose change is stored. Every hint has
// an outcome when it returns.
func (r *Registrar) settle(ctx context.Context, w *groupWork, hs []*hint) {
	if r.moot(hs) {
		for _, h := range hs {
			h.outcome = r.spared(h)
		}
		return
	}
	w.right, w.added = nil, nil
	for round := 1; len(hs) > 0; round++ {
		next, err := r.round(ctx, w, hs)
		if err == nil && next.again && next.after > 0 {
			err = r.Sleep(ctx, next.after)
		}
		if err != nil {
			for _, h := range hs {
				h.outcome = r.failure(h, err)
			}
			return
		}
		if !next.again || round == maxRounds {
			break
		}
		for _, h := range hs {
			h.outcome = outcome{}
		}
		r.readPods(ctx, w, hs) // the truth may have moved (I3)
		hs = unfinished(hs)
	}
	for _, h := range hs {
		if h.outcome.result == "" {
			h.outcome = r.settled(w, h)
		}
	}
}

// settled is the outcome of a hint after the last round.
func (r *Registrar) settled(w *groupWork, h *hint) outcome {
	if h.preferred {
		return again(Unreachable, waitShort, errors.New("registered on the event's word, to be verified"))
	}
	for k := range w.open {
		if h.touches(k.ID, w.Group.Family) {
			return again(Moving, waitShort, fmt.Errorf("%s keeps changing", k))
		}
	}
	return done(Done)
}

// leaveOpen marks keys that are to be looked at once more.
func (w *groupWork) leaveOpen(ks []claim.Key) {
	for _, k := range ks {
		w.open[k] = true
	}
}

// moot reports whether none of the hints can change a claim and the account's
// rate has no room for a look: such a look only repairs what resync would. What
// tells of an end is looked at in any case when it comes the second time, as an
// eviction may have told of it nowhere else.
func (r *Registrar) moot(hs []*hint) bool {
	for _, h := range hs {
		if !h.changesNoClaim() || h.tellsOfAnEnd() && h.age(r.Now()) >= sparedFor {
			return false
		}
	}
	return !r.spare.AllowN(r.Now(), 1)
}

// sparedFor is the age from which a hint that changes no claim counts as moot:
// it has come again once by then, to be looked at together with others.
const sparedFor = 4 * time.Second

func (r *Registrar) spared(h *hint) outcome {
	if h.age(r.Now()) < sparedFor {
		return again(Spared, waitSpare, nil)
	}
	return done(Moot)
}

// unreadable gives a hint the outcome of a failed reading, or under "prefer"
// lets the event stand in for the pod.
func (r *Registrar) unreadable(h *hint, err error) {
	if r.Config.Verify == VerifyPrefer && errors.Is(err, cluster.ErrUnreachable) && r.believable(h) {
		h.pod, h.settled, h.preferred = podOf(h.Detail), true, true
		return
	}
	h.outcome = r.failure(h, err)
}

// preferMaxAge is how old an event may be that is believed while the API server
// is out of reach: older ones may be replays.
const preferMaxAge = 30 * time.Second

// believable reports whether the event may stand in for its pod: young, of a
// living pod, under a binding that limits addresses.
func (r *Registrar) believable(h *hint) bool {
	return h.age(r.Now()) < preferMaxAge && len(h.bind.PodCIDRs) > 0 && !h.Detail.Terminating
}
