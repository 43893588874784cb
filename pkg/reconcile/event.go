package reconcile

import (
	"cmp"
	"slices"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// causeOf is the cause and the rule behind changes, of which there are some:
// those of the first that an event or a difference of its own speaks for, or else
// of the first.
func (w *Work) causeOf(cs []plan.Change) (targetevent.Cause, string) {
	c := cs[max(0, slices.IndexFunc(cs, func(c plan.Change) bool { return c.Cause.Reason != "" }))]
	rule := cmp.Or(c.Rule, w.Rule)
	if c.Cause.Kind == "" {
		return w.Cause, rule
	}
	return causeOf(c.Cause), rule
}

func causeOf(c plan.Cause) targetevent.Cause {
	out := targetevent.Cause{Kind: targetevent.CauseKind(c.Kind), EventID: c.EventID, MessageID: c.MessageID,
		RunID: c.RunID, Round: c.Round, Request: c.Request}
	if out.Kind != targetevent.Hint { // a hint's reason is of its pod event
		out.Drift = c.Reason
	}
	return out
}

func modeName(wouldDo bool) string {
	if wouldDo {
		return string(binding.Observe)
	}
	return string(binding.Manage)
}

// EventKeys are changes as events name them.
func EventKeys(cs []plan.Change) []targetevent.Key {
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

func counts(w *Work, current map[claim.Key]plan.Target) targetevent.Counts {
	c := targetevent.Counts{Claimed: w.Claimed}
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
