// Package proxy makes Services reachable as kube-proxy does: a pure table from
// Services and EndpointSlices to backends, and listeners on the cluster IPs that
// forward TCP to them. It never retries a connection at another backend.
package proxy

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// LowestPort is the lowest Service port that is proxied: ports below need rights
// that the local stack does without.
const LowestPort = 1024

// Table maps each cluster IP and port to the published addresses behind it,
// sorted. A frontend without backends is absent: a connection to it is refused.
type Table map[netip.AddrPort][]netip.AddrPort

type portKey struct{ namespace, service, port string }

// NewTable joins Services and EndpointSlices. Ready endpoints serve; if there is
// none, those that terminate but still serve do.
func NewTable(services []*v1.Service, slices []*discoveryv1.EndpointSlice) Table {
	ready, terminating := backends(slices)
	t := Table{}
	for _, svc := range services {
		ip, err := netip.ParseAddr(svc.Spec.ClusterIP)
		if err != nil || !ip.IsLoopback() {
			continue // headless, external, or not ours to listen on
		}
		for _, p := range svc.Spec.Ports {
			if (p.Protocol != "" && p.Protocol != v1.ProtocolTCP) || p.Port < LowestPort {
				continue
			}
			key := portKey{svc.Namespace, svc.Name, p.Name}
			serving := ready[key]
			if len(serving) == 0 {
				serving = terminating[key]
			}
			if len(serving) > 0 {
				t[netip.AddrPortFrom(ip, uint16(p.Port))] = unique(serving)
			}
		}
	}
	return t
}

func backends(all []*discoveryv1.EndpointSlice) (ready, terminating map[portKey][]netip.AddrPort) {
	ready, terminating = map[portKey][]netip.AddrPort{}, map[portKey][]netip.AddrPort{}
	for _, slice := range all {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		service := slice.Labels[discoveryv1.LabelServiceName]
		for _, p := range slice.Ports {
			if p.Port == nil || (p.Protocol != nil && *p.Protocol != v1.ProtocolTCP) {
				continue
			}
			key := portKey{slice.Namespace, service, deref(p.Name, "")}
			for _, e := range slice.Endpoints {
				if len(e.Addresses) == 0 {
					continue
				}
				a, err := netip.ParseAddr(e.Addresses[0])
				if err != nil {
					continue
				}
				backend := netip.AddrPortFrom(a, uint16(*p.Port))
				serving := deref(e.Conditions.Serving, deref(e.Conditions.Ready, true))
				switch {
				case deref(e.Conditions.Ready, true):
					ready[key] = append(ready[key], backend)
				case serving && deref(e.Conditions.Terminating, false):
					terminating[key] = append(terminating[key], backend)
				}
			}
		}
	}
	return ready, terminating
}

func unique(all []netip.AddrPort) []netip.AddrPort {
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all)
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
