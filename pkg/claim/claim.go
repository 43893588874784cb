// Package claim answers one question: which target keys does a pod claim under
// a binding, now? It knows pods, nodes, bindings and groups as data and talks to
// nothing (I1, I2, I4). It says nothing of what a target group holds; comparing
// the two is pkg/plan's work.
package claim

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Key is what ELB knows a target by: an IP address or an instance id, and the
// port, which is explicit in every call (I7).
type Key struct {
	ID   string
	Port int32
}

// String writes the key as "id:port", with brackets around an IPv6 address.
func (k Key) String() string {
	if a, err := netip.ParseAddr(k.ID); err == nil {
		return netip.AddrPortFrom(a, uint16(k.Port)).String()
	}
	return fmt.Sprintf("%s:%d", k.ID, k.Port)
}

// Compare orders keys by id, then by port.
func Compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Port, b.Port))
}

// TargetType is what a group's targets are named by.
type TargetType string

// The target types that elbridge serves; a group of another type is a binding
// that cannot be understood.
const (
	IP       TargetType = "ip"
	Instance TargetType = "instance"
)

// Family is the address family of an ip group, fixed when it was made.
type Family string

// The address families, in ELB's own words.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Group is what decides about claims on a target group.
type Group struct {
	ARN    string
	Type   TargetType
	Family Family
	Port   int32 // the group's own port
}

// Claim is a pod's claim on a key, with what an audit line must name (I10).
type Claim struct {
	Key
	Cluster string
	Pod     string // namespace/name
	UID     string
	Node    string
	Rule    string // ARN of the rule whose binding selects the pod
}

// Refusal says why a pod claims nothing under a binding that selects it.
type Refusal string

// The refusals. Pending means "ask again later", the others end the matter
// until the pod or the binding changes.
const (
	None            Refusal = ""
	RefusedEmpty    Refusal = "binding is emptied"
	Terminating     Refusal = "pod is terminating"
	Finished        Refusal = "pod is finished"
	Pending         Refusal = "pod has no address of the group's family yet"
	NotReady        Refusal = "pod is not ready"
	Outside         Refusal = "address is outside podCIDRs"
	NoPort          Refusal = "pod declares no container port of that name"
	InvalidAddress  Refusal = "pod has a malformed address"
	InstanceUnready Refusal = "instance groups are not yet supported"
)

// Of returns the key that pod claims in group g under binding b, which selects
// it. A terminating or finished pod claims nothing (I4), nor does one without
// an address; registerWhen says whether readiness counts.
func Of(pod *podevent.Pod, b *binding.Binding, g Group) (Key, Refusal) {
	switch {
	case g.Type != IP:
		return Key{}, InstanceUnready
	case b.Empty:
		return Key{}, RefusedEmpty
	case pod.Terminating:
		return Key{}, Terminating
	case pod.Finished():
		return Key{}, Finished
	case b.RegisterWhen == binding.ContainersReady && !pod.ContainersReady,
		b.RegisterWhen == binding.Ready && !pod.Ready:
		return Key{}, NotReady
	}
	addr, refusal := address(pod.PodIPs, g.Family)
	if refusal != None {
		return Key{}, refusal
	}
	if !Allowed(addr, b.PodCIDRs) {
		return Key{}, Outside
	}
	port, ok := port(pod, b, g)
	if !ok {
		return Key{}, NoPort
	}
	return Key{ID: addr.String(), Port: port}, None
}

// Addresses returns the addresses of the group's family among ips, in ELB's
// spelling. Malformed ones are left out: nothing was ever registered for them.
func Addresses(ips []string, f Family) []string {
	var out []string
	for _, s := range ips {
		if a, err := netip.ParseAddr(s); err == nil && family(a) == f {
			out = append(out, a.Unmap().WithZone("").String())
		}
	}
	return out
}

// Allowed reports whether addr may be registered under podCIDRs; no CIDRs allow
// every address.
func Allowed(addr netip.Addr, cidrs []netip.Prefix) bool {
	for _, c := range cidrs {
		if c.Contains(addr) {
			return true
		}
	}
	return len(cidrs) == 0
}

// address picks the pod's address of family f over the whole list: its order is
// the cluster's primary family, not the group's.
func address(ips []string, f Family) (netip.Addr, Refusal) {
	refusal := Pending
	for _, s := range ips {
		a, err := netip.ParseAddr(s)
		if err != nil {
			refusal = InvalidAddress
			continue
		}
		if a = a.Unmap().WithZone(""); family(a) == f {
			return a, None
		}
	}
	return netip.Addr{}, refusal
}

func family(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// port is the binding's number, the container port of the binding's name, or
// the group's own. With host networking the container port is the host port.
func port(pod *podevent.Pod, b *binding.Binding, g Group) (int32, bool) {
	switch {
	case b.Port.Number != 0:
		return b.Port.Number, true
	case b.Port.Name == "":
		return g.Port, g.Port != 0
	}
	for _, p := range pod.Ports {
		if p.Name == b.Port.Name {
			return p.ContainerPort, true
		}
	}
	return 0, false
}
