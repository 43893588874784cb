// Package podmatch matches pod events that are at hand as Go values: what a
// pattern says of one is what it says of the event's JSON on the bus, which is
// never written. It is pure, and the only place that knows both the fields of a
// pod event and the builder of events.
package podmatch

import (
	"fmt"
	"time"

	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Envelope is what of an event's envelope is not in the pod event itself.
type Envelope struct{ ID, Account, Region string }

// Event is the event that patterns match: the pod event as it stands on the bus,
// cut where it would have been too large.
func Event(e *podevent.Event, env Envelope) (*eventpattern.Event, error) {
	b := eventpattern.NewBuilder()
	if err := build(b.Root(), e, env); err != nil {
		return nil, err
	}
	return b.Event(), nil
}

// A Matcher tells which patterns of a set match pod events, one after the other.
// It belongs to one goroutine; Matchers may share a set.
type Matcher struct {
	set     *eventpattern.Set
	env     Envelope
	builder *eventpattern.Builder
	hits    []int
}

// New returns a Matcher for events with that envelope.
func New(set *eventpattern.Set, env Envelope) *Matcher {
	return &Matcher{set: set, env: env, builder: set.NewBuilder()}
}

// Match returns the indices of the patterns that match, ascending. They are valid
// until the next call.
func (m *Matcher) Match(e *podevent.Event) ([]int, error) {
	if err := build(m.builder.Root(), e, m.env); err != nil {
		return nil, err
	}
	m.hits = m.set.AppendMatches(m.hits[:0], m.builder.Event())
	return m.hits, nil
}

// build writes what Event.Envelope and Envelope.JSON of podevent write.
func build(o eventpattern.Object, e *podevent.Event, env Envelope) error {
	if mayBeCut(e) {
		detail, err := e.Encode()
		if err != nil {
			return err
		}
		short, err := podevent.Decode(detail)
		if err != nil {
			return fmt.Errorf("what was encoded can't be decoded: %w", err)
		}
		e = &short
	}
	o.String("version", "0")
	o.String("id", env.ID)
	o.String("detail-type", podevent.DetailTypePodStateChange)
	o.String("source", podevent.Source)
	o.String("account", env.Account)
	o.String("region", env.Region)
	if o.Wants("time") {
		o.String("time", e.ObservedAt.UTC().Format(time.RFC3339))
	}
	if o.Wants("resources") {
		o.Strings("resources", e.Resources())
	}
	detail(o.Object("detail"), e)
	return nil
}

// observedAtLayout is that of detail.observedAt.
const observedAtLayout = "2006-01-02T15:04:05.000Z07:00"

func detail(o eventpattern.Object, e *podevent.Event) {
	o.Int("schema", int64(e.Schema))
	o.String("cluster", e.Cluster)
	o.String("namespace", e.Namespace)
	o.String("name", e.Name)
	o.String("uid", e.UID)
	o.String("resourceVersion", e.ResourceVersion)
	optional(o, "podIP", e.PodIP)
	o.Strings("podIPs", e.PodIPs)
	optional(o, "hostIP", e.HostIP)
	o.Bool("hostNetwork", e.HostNetwork)
	optional(o, "nodeName", e.NodeName)
	optional(o, "phase", e.Phase)
	o.Bool("ready", e.Ready)
	o.Bool("containersReady", e.ContainersReady)
	o.Bool("terminating", e.Terminating)
	if e.DeletionGracePeriodSeconds != nil {
		o.Int("deletionGracePeriodSeconds", *e.DeletionGracePeriodSeconds)
	}
	texts(o.Object("labels"), e.Labels)
	texts(o.Object("annotations"), e.Annotations)
	if e.Owner != nil {
		owner := o.Object("owner")
		owner.String("kind", e.Owner.Kind)
		owner.String("name", e.Owner.Name)
	}
	optional(o, "serviceAccount", e.ServiceAccount)
	ports(o, e.Ports)
	if e.Previous != nil {
		previous(o.Object("previous"), e.Previous)
	}
	o.String("reason", string(e.Reason))
	if o.Wants("observedAt") {
		o.String("observedAt", e.ObservedAt.UTC().Format(observedAtLayout))
	}
	webhook := o.Object("webhook")
	webhook.String("version", e.Webhook.Version)
	webhook.String("instance", e.Webhook.Instance)
	if e.Cut != nil {
		cut(o.Object("cut"), e.Cut)
	}
}

func ports(o eventpattern.Object, ports []podevent.Port) {
	if len(ports) == 0 {
		return
	}
	all := o.Array("ports")
	for i, p := range ports {
		port := all.Object(i)
		optional(port, "name", p.Name)
		port.Int("containerPort", int64(p.ContainerPort))
		if p.HostPort != 0 {
			port.Int("hostPort", int64(p.HostPort))
		}
		port.String("protocol", p.Protocol)
	}
}

func previous(o eventpattern.Object, p *podevent.Previous) {
	optional(o, "podIP", p.PodIP)
	o.Strings("podIPs", p.PodIPs)
	texts(o.Object("labels"), p.Labels)
	if p.Terminating {
		o.Bool("terminating", true)
	}
}

func cut(o eventpattern.Object, c *podevent.Cut) {
	for _, of := range []struct {
		key string
		n   int
	}{{"annotations", c.Annotations}, {"ports", c.Ports}, {"labels", c.Labels}} {
		if of.n != 0 {
			o.Int(of.key, int64(of.n))
		}
	}
}

func texts(o eventpattern.Object, m map[string]string) {
	for k, v := range m {
		o.String(k, v)
	}
}

func optional(o eventpattern.Object, key, value string) {
	if value != "" {
		o.String(key, value)
	}
}

// mayBeCut reports whether the event might be larger than podevent lets it be:
// a byte of text takes six at most (\u0000), and so does an entry's punctuation.
func mayBeCut(e *podevent.Event) bool {
	const most, fields, port = podevent.MaxBytes / 6, 2000, 200
	n := fields + len(e.Ports)*port + weight(e.Labels) + weight(e.Annotations)
	for _, p := range e.Ports {
		n += len(p.Name)
	}
	for _, s := range []string{e.Cluster, e.Namespace, e.Name, e.UID, e.ResourceVersion, e.PodIP, e.HostIP, e.NodeName, e.Phase, e.ServiceAccount} {
		n += len(s)
	}
	for _, ip := range e.PodIPs {
		n += len(ip) + 1
	}
	if e.Owner != nil {
		n += len(e.Owner.Kind) + len(e.Owner.Name)
	}
	if e.Previous != nil {
		n += len(e.Previous.PodIP) + weight(e.Previous.Labels)
		for _, ip := range e.Previous.PodIPs {
			n += len(ip) + 1
		}
	}
	return n+len(e.Webhook.Version)+len(e.Webhook.Instance)+len(e.Reason) > most
}

func weight(m map[string]string) int {
	n := 0
	for k, v := range m {
		n += len(k) + len(v) + 1
	}
	return n
}
