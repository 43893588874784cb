// Package vpc maps the addresses that pods and nodes of the local stack publish
// to the loopback addresses where they really listen. Everything on this machine
// that wants to reach a pod dials through it, so nothing is ever sent to a
// published address.
package vpc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// The address space of the local stack. EndpointSlices refuse loopback
// addresses, so pods publish these.
var (
	// PodCIDR holds pods and nodes: 10.64.a.b listens on 127.64.a.b.
	PodCIDR = netip.MustParsePrefix("10.64.0.0/16")
	// PodCIDR6 is the second family: fd00::a:b (the last 32 bits, 16 of them
	// used) listens on 127.65.x.y, where x.y are the last two bytes.
	PodCIDR6 = netip.MustParsePrefix("fd00::/64")
	// ServiceCIDR is the cluster IPs' range; they are loopback addresses already.
	ServiceCIDR = netip.MustParsePrefix("127.96.0.0/16")
)

// Loopback returns the loopback address behind a published one. Loopback
// addresses stand for themselves; anything else is refused.
func Loopback(a netip.Addr) (netip.Addr, error) {
	a = a.Unmap()
	switch {
	case a.IsLoopback():
		return a, nil
	case PodCIDR.Contains(a):
		b := a.As4()
		return netip.AddrFrom4([4]byte{127, 64, b[2], b[3]}), nil
	case PodCIDR6.Contains(a):
		b := a.As16()
		for _, high := range b[8:14] {
			if high != 0 {
				return netip.Addr{}, fmt.Errorf("address %s: the local stack uses fd00::0 to fd00::ffff", a)
			}
		}
		return netip.AddrFrom4([4]byte{127, 65, b[14], b[15]}), nil
	}
	return netip.Addr{}, fmt.Errorf("address %s is not of the local stack: want one of %s, %s or 127.0.0.0/8", a, PodCIDR, PodCIDR6)
}

// HostPort is Loopback for "host:port".
func HostPort(address string) (string, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return "", fmt.Errorf("address %q: want ip:port", address)
	}
	a, err := Loopback(ap.Addr())
	if err != nil {
		return "", err
	}
	return netip.AddrPortFrom(a, ap.Port()).String(), nil
}

// Dial connects to a published address. Its form fits http.Transport.DialContext.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	real, err := HostPort(address)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, network, real)
}
