package podevent

import (
	"maps"
	"slices"
	"time"
)

// Operation is what the API server was asked to do to the pod.
type Operation string

// The operations that may change a claim.
const (
	Update       Operation = "Update"       // UPDATE pods
	StatusUpdate Operation = "StatusUpdate" // UPDATE pods/status
	Delete       Operation = "Delete"       // DELETE pods
	Evict        Operation = "Evict"        // CREATE pods/eviction
)

// Change is one change of a pod as it was observed.
//
// Updates have both pods and a delete the old one. An eviction has the pod as
// it was read afterwards in New, or, if it was gone by then, the pod as it was
// read last in Old.
type Change struct {
	Cluster     string
	Operation   Operation
	Old, New    *Pod
	Grace       *int64 // seconds, of a delete; nil where the request leaves it to the pod
	At          time.Time
	Webhook     Webhook
	Annotations AllowList
}

// Observe returns the events that a change makes: none if no claim can have
// changed by it, two for a change of labels or allowed annotations (one with
// the old, one with the new ones), else one.
//
// A pod that had no address before and has none afterwards makes no event:
// nothing can be registered for it. Where the new pod has lost its address, the
// event carries the old one (P047).
func Observe(c Change) []Event {
	switch c.Operation {
	case Update, StatusUpdate:
		return c.updated()
	case Delete:
		return c.deleted()
	case Evict:
		return c.evicted()
	default:
		return nil
	}
}

func (c Change) updated() []Event {
	if c.Old == nil || c.New == nil || c.addressless() {
		return nil
	}
	if c.relabelled() {
		return c.relabelledPair()
	}
	if reason := c.reason(); reason != "" {
		return []Event{c.event(c.New, reason)}
	}
	return nil
}

// reason is the one that says most about what happened, or "".
func (c Change) reason() Reason {
	old, pod := c.Old, c.New
	switch {
	case pod.Finished() && !old.Finished():
		return Finished
	case pod.Terminating:
		// An eviction takes effect without being seen, so whatever is seen of
		// a terminating pod afterwards tells of it once more.
		return Terminating
	case pod.Finished():
		return ""
	case !slices.Equal(pod.PodIPs, old.PodIPs) && len(pod.PodIPs) > 0:
		return IPAssigned
	case len(pod.PodIPs) == 0 && len(old.PodIPs) > 0,
		old.Ready && !pod.Ready, old.ContainersReady && !pod.ContainersReady:
		return NotReady
	case pod.Ready && !old.Ready, pod.ContainersReady && !old.ContainersReady:
		return Ready
	default:
		return ""
	}
}

func (c Change) deleted() []Event {
	c.New = nil // an update's, if anything
	if c.Old == nil || c.addressless() {
		return nil
	}
	reason := Terminating
	if c.Grace != nil && *c.Grace == 0 {
		reason = Deleted
	}
	e := c.event(c.Old, reason)
	e.Terminating = true
	if c.Grace != nil {
		e.DeletionGracePeriodSeconds = c.Grace
	}
	if c.Old.Terminating {
		e.Previous = &Previous{Terminating: true}
	}
	return []Event{e}
}

func (c Change) evicted() []Event {
	pod := c.New
	if pod == nil {
		pod = c.Old
	}
	if pod == nil || c.addressless() || c.New != nil && !c.New.Terminating {
		return nil // unknown, nothing to register, or refused
	}
	e := c.event(pod, Evicted)
	e.Terminating = true
	return []Event{e}
}

func (c Change) relabelled() bool {
	return !maps.Equal(c.Old.Labels, c.New.Labels) ||
		!maps.Equal(c.Annotations.Filter(c.Old.Annotations), c.Annotations.Filter(c.New.Annotations))
}

// relabelledPair differs in labels and annotations alone, so that the rule that
// selected the pod and the rule that selects it now both hear of the change,
// with the same state and the same previous.
func (c Change) relabelledPair() []Event {
	after := c.event(c.New, Relabelled)
	before := after
	before.Labels = c.Old.Labels
	before.Annotations = c.Annotations.Filter(c.Old.Annotations)
	return []Event{before.normal(), after}
}

// event describes the pod, and in previous what was before.
func (c Change) event(p *Pod, reason Reason) Event {
	e := FromPod(c.Cluster, p, c.Annotations, c.At)
	e.Reason = reason
	e.Webhook = c.Webhook
	if c.Old == nil || c.New == nil {
		return e
	}
	// The version before the change: the event is settled by any other one.
	e.ResourceVersion = c.Old.ResourceVersion
	if len(e.PodIPs) == 0 {
		e.PodIP, e.PodIPs = c.Old.PodIP(), slices.Clone(c.Old.PodIPs)
	}
	e.Previous = c.previous()
	return e
}

func (c Change) previous() *Previous {
	var p Previous
	changed := false
	if !slices.Equal(c.Old.PodIPs, c.New.PodIPs) && len(c.Old.PodIPs) > 0 {
		p.PodIP, p.PodIPs = c.Old.PodIP(), slices.Clone(c.Old.PodIPs)
		changed = true
	}
	if !maps.Equal(c.Old.Labels, c.New.Labels) {
		p.Labels = c.Old.Labels
		changed = true
	}
	if c.Old.Terminating {
		p.Terminating = true
		changed = true
	}
	if !changed {
		return nil
	}
	return &p
}

func (c Change) addressless() bool {
	return (c.Old == nil || len(c.Old.PodIPs) == 0) && (c.New == nil || len(c.New.PodIPs) == 0)
}
