package registrar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/queue"
)

// Result is how a hint ended, or why it comes again.
type Result string

// The results; those from spared on bring the message back.
const (
	Done         Result = "done"         // what it touched is right
	Moot         Result = "moot"         // it could change no claim, and the account's rate was needed elsewhere
	RuleGone     Result = "rule-gone"    // its rule exists no more, is disabled or names another group now
	Refused      Result = "refused"      // the change it told of was never stored
	Expired      Result = "expired"      // too old; resync has the group
	Foreign      Result = "foreign"      // not an event of ours: dead letter
	Malformed    Result = "malformed"    // can't be read: dead letter
	Invalid      Result = "invalid"      // its binding covers nothing: dead letter
	Replayed     Result = "replayed"     // from an archive: yesterday's hint says nothing of today
	Spared       Result = "spared"       // as moot, but young enough to be looked at with others a little later
	Unsettled    Result = "unsettled"    // the change is not stored yet
	Moving       Result = "moving"       // what it touches was not seen to stay in the end
	Unreachable  Result = "unreachable"  // API server or AWS out of reach
	Unauthorized Result = "unauthorized" // the API server or AWS refuses us
	Throttled    Result = "throttled"
	Quota        Result = "quota"
	Held         Result = "held" // a removal without a witness waits for one (I9)
)

// outcome is a result with what to do about the message: acknowledge it (the
// zero value of both), bury it with a reason, or let it come again after a wait.
type outcome struct {
	result Result
	bury   string
	again  time.Duration
	err    error // for the log
	// expired is the ARN of the group of a hint that came too late, where known.
	expired string
}

func done(r Result) outcome { return outcome{result: r} }
func bury(r Result, reason error) outcome {
	return outcome{result: r, bury: reason.Error(), err: reason}
}
func again(r Result, w wait, err error) outcome { return outcome{result: r, again: w.draw(), err: err} }

// wait is a range from which a message's wait is drawn, so that messages which
// failed together don't come back together.
type wait struct{ least, most time.Duration }

func (w wait) draw() time.Duration {
	return w.least + rand.N(w.most-w.least+1)
}

// The waits. SQS counts in whole seconds; design: 2 to 30 s with jitter, and as
// short as SQS can where a person waits for the change.
var (
	waitShort = wait{time.Second, 2 * time.Second}       // not stored yet, throttled, out of reach
	waitSpare = wait{5 * time.Second, 6 * time.Second}   // little jitter: to be looked at with others of its group
	waitHeld  = wait{4 * time.Second, 8 * time.Second}   // a witness may appear any moment
	waitLong  = wait{15 * time.Second, 30 * time.Second} // needs a person or a quota
)

// waitFor lets the wait grow once a hint is older than a minute: what lasted so
// long will not end in the next second.
func waitFor(w wait, age time.Duration) wait {
	if age > time.Minute {
		return waitLong
	}
	return w
}

// hint is a pod event as the registrar sees it: "the claims on these keys may
// have changed".
type hint struct {
	index int // in the batch
	msg   queue.Message
	binding.Message
	since time.Time // when it entered the bus or the queue, whichever is earlier
	bind  *binding.Binding

	pod       *podevent.Pod // as read, nil if gone
	gone      bool          // 404, or another UID has the name
	settled   bool          // the read shows the change or what came after it
	preferred bool          // built from the event: the API server is out of reach
	outcome   outcome
}

// age of the hint by the clocks of EventBridge and SQS; a pod event's own
// observedAt is whatever its sender wrote.
func (h *hint) age(now time.Time) time.Duration { return now.Sub(h.since) }

// ids returns the addresses the hint touches, new and previous.
func (h *hint) ids(f claim.Family) []string {
	ips := append([]string{}, h.Detail.PodIPs...)
	if h.Detail.PodIP != "" {
		ips = append(ips, h.Detail.PodIP)
	}
	if p := h.Detail.Previous; p != nil {
		ips = append(ips, p.PodIPs...)
		if p.PodIP != "" {
			ips = append(ips, p.PodIP)
		}
	}
	if h.pod != nil {
		ips = append(ips, h.pod.PodIPs...)
	}
	return claim.Addresses(ips, f)
}

// changesNoClaim reports whether the event can't change a claim by itself: the
// pod was ending before, or readiness moved, the binding doesn't ask for it, and
// address and labels stayed.
func (h *hint) changesNoClaim() bool {
	if p := h.Detail.Previous; p != nil {
		return p.Terminating && p.PodIP == "" && p.Labels == nil
	}
	readiness := h.Detail.Reason == podevent.Ready || h.Detail.Reason == podevent.NotReady
	return readiness && h.bind.RegisterWhen == binding.HasIP && !h.Detail.Terminating
}

// tellsOfAnEnd reports whether the event is about a pod that is being deleted.
func (h *hint) tellsOfAnEnd() bool { return h.Detail.Terminating }

// see takes a reading of the pod and judges whether the hint is settled (I1).
func (h *hint) see(p *podevent.Pod) {
	ev := h.Detail
	h.pod, h.gone = p, p == nil || p.UID != ev.UID
	if h.gone {
		h.pod = nil
	}
	h.settled = h.gone || p.Terminating || p.ResourceVersion != ev.ResourceVersion
}

// read turns a message into a hint, or says why it is none.
func (r *Registrar) read(ctx context.Context, index int, m queue.Message) (*hint, outcome) {
	msg, err := binding.ParseMessage([]byte(m.Body))
	switch {
	case errors.Is(err, binding.ErrForeign):
		return nil, bury(Foreign, err)
	case err != nil:
		if msg.Rule != "" { // what is wrong is the rule's: it can be named
			r.invalid(ctx, problem(m, msg, err))
		}
		return nil, bury(Malformed, err)
	}
	if _, known := r.Clusters[msg.Detail.Cluster]; !known {
		return nil, bury(Foreign, fmt.Errorf("cluster %q is not among those this registrar serves", msg.Detail.Cluster))
	}
	if msg.ReplayName != "" {
		return nil, outcome{result: Replayed, err: fmt.Errorf("replayed by %s", msg.ReplayName)}
	}
	h := &hint{index: index, msg: m, Message: msg, since: msg.Time}
	if h.since.IsZero() || (!m.Sent.IsZero() && m.Sent.Before(h.since)) {
		h.since = m.Sent
	}
	if age := h.age(r.Now()); age > r.Config.HintMaxAge {
		return nil, outcome{result: Expired, expired: msg.Binding.Group.ARN, err: fmt.Errorf("hint is %s old", age.Round(time.Second))}
	}
	return h, outcome{}
}
