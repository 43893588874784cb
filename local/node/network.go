package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/address"
	"github.com/elbridge/elbridge/local/node/internal/proxy"
	"github.com/elbridge/elbridge/local/vpc"
)

// reservePort is a UDP port that nobody uses; whoever has it on the loopback
// address behind a pod address owns that address on this machine. So several
// stacks can run side by side.
const reservePort = 65535

// foreignLimit is how many addresses of other stacks are passed over in one go.
const foreignLimit = 512

// takeAddress takes the address chosen for this pod, or the node's next one.
func (w *worker) takeAddress(ctx context.Context) error {
	pod := w.current()
	if pod.Spec.HostNetwork {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rt.PodIPs = w.rt.NodeIPs
		return nil
	}
	if !w.chosen.IsValid() {
		w.chosen, _ = w.host.agent.wishes.take(pod)
	}
	a, claim, err := w.host.agent.claimAddress(ctx, w.host.spec.Name, w.chosen)
	if err != nil {
		return err
	}
	w.chosen = netip.Addr{}
	w.address, w.claim = a, claim
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rt.PodIPs = []string{a.String(), address.Second(a).String()}
	return nil
}

// claimAddress takes an address from the pool, and on this machine.
func (a *agent) claimAddress(ctx context.Context, node string, chosen netip.Addr) (netip.Addr, net.PacketConn, error) {
	if chosen.IsValid() {
		if err := a.addresses.Take(chosen); err != nil {
			return netip.Addr{}, nil, err
		}
		claim, err := reserve(ctx, chosen)
		if err != nil {
			a.addresses.Release(chosen)
		}
		return chosen, claim, err
	}
	for range foreignLimit {
		ip, err := a.addresses.Next(node)
		if err != nil {
			return netip.Addr{}, nil, err
		}
		claim, err := reserve(ctx, ip)
		if err == nil {
			return ip, claim, nil
		}
		a.addresses.Release(ip)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return netip.Addr{}, nil, err
		}
	}
	return netip.Addr{}, nil, fmt.Errorf("node %s: other stacks on this machine have its addresses", node)
}

func reserve(ctx context.Context, ip netip.Addr) (net.PacketConn, error) {
	real, err := vpc.Loopback(ip)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	claim, err := lc.ListenPacket(ctx, "udp", netip.AddrPortFrom(real, reservePort).String())
	if err != nil {
		return nil, fmt.Errorf("address %s: another stack on this machine has it: %w", ip, err)
	}
	return claim, nil
}

// releaseAddress gives the address back; the status still names it.
func (w *worker) releaseAddress() {
	w.closeHostPorts()
	if w.claim != nil {
		_ = w.claim.Close()
		w.host.agent.addresses.Release(w.address)
		w.claim, w.address = nil, netip.Addr{}
	}
}

// published are the addresses the pod is known by.
func published(pod *v1.Pod) []netip.Addr {
	var all []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// openHostPorts forwards the node's ports that the pod asks for, all or none.
func (w *worker) openHostPorts() (err error) {
	pod := w.current()
	real, err := vpc.Loopback(w.host.spec.Address)
	if pod.Spec.HostNetwork || err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.closeHostPorts()
		}
	}()
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort == 0 || (p.Protocol != "" && p.Protocol != v1.ProtocolTCP) {
				continue
			}
			to := netip.AddrPortFrom(published(pod)[0], uint16(p.ContainerPort))
			f, err := proxy.Listen(w.ctx, netip.AddrPortFrom(real, uint16(p.HostPort)), func() (netip.AddrPort, bool) { return to, true })
			if err != nil {
				return fmt.Errorf("host port %d: %w", p.HostPort, err)
			}
			w.hostPorts = append(w.hostPorts, f)
		}
	}
	return nil
}

func (w *worker) closeHostPorts() {
	for _, f := range w.hostPorts {
		f.Close()
	}
	w.hostPorts = nil
}
