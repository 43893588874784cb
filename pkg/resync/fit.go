package resync

import (
	"slices"

	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// fitRound shortens the lists of an event about a round until the bus takes it.
// What it counts stays as it is, and it says how many findings it leaves out.
func fitRound(ev targetevent.ResyncCompleted) targetevent.ResyncCompleted {
	all := len(ev.Findings) + ev.Truncated
	ev.Findings = ev.Findings[:min(len(ev.Findings), targetevent.MaxListed)]
	for i := range ev.Findings {
		ev.Findings[i].Reason = reconcile.Brief(ev.Findings[i].Reason)
	}
	ev.Problems = ev.Problems[:min(len(ev.Problems), maxProblems)]
	for i := range ev.Problems {
		ev.Problems[i] = reconcile.Brief(ev.Problems[i])
	}
	for i := range ev.Clusters {
		ev.Clusters[i].Error = reconcile.Brief(ev.Clusters[i].Error)
	}
	if ev.Request != nil { // it is whoever sent it who decides how long it is
		q := *ev.Request
		q.Groups = slices.Clone(q.Groups[:min(len(q.Groups), targetevent.MaxListed)])
		q.ID, q.Approve, q.By, q.Reason = reconcile.Brief(q.ID), reconcile.Brief(q.Approve), reconcile.Brief(q.By), reconcile.Brief(q.Reason)
		for i, arn := range q.Groups {
			q.Groups[i] = reconcile.Brief(arn)
		}
		ev.Request = &q
	}
	for !reconcile.Fits(ev) && len(ev.Findings) > 0 {
		ev.Findings = ev.Findings[:len(ev.Findings)/2]
	}
	ev.Truncated = all - len(ev.Findings)
	return ev
}

// fitChange does the same for an event about a rule: its lists of keys get shorter,
// and the counts beside them stay.
func fitChange(ev targetevent.BindingChanged) targetevent.BindingChanged {
	for most := targetevent.MaxListed; !reconcile.Fits(ev) && most > 0; {
		most /= 2
		for i := range ev.Effects {
			e := &ev.Effects[i]
			e.Gained, e.Lost, e.Held = e.Gained[:min(len(e.Gained), most)], e.Lost[:min(len(e.Lost), most)], e.Held[:min(len(e.Held), most)]
		}
	}
	for !reconcile.Fits(ev) && len(ev.Effects) > 0 { // groups with counts alone: more than a rule can name
		ev.Effects = ev.Effects[:len(ev.Effects)/2]
	}
	return ev
}
