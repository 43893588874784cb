package claim_test

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/podevent"
)

var seldom = rapid.SampledFrom([]bool{false, false, false, false, true})

// anyPod draws pods with addresses of both families, good and bad.
var anyPod = rapid.Custom(func(t *rapid.T) *podevent.Pod {
	address := rapid.SampledFrom([]string{"10.64.1.7", "fd00::7", "10.64.1.8", "FD00::8", "::ffff:10.64.1.9", "fe80::1%eth0", "10.65.1.7", "10.64.1", "x"})
	p := &podevent.Pod{
		PodIPs: rapid.SliceOfN(address, 1, 4).Draw(t, "ips"), Phase: rapid.SampledFrom([]string{"Running", "Running", "Pending", "Unknown", "Succeeded", "Failed"}).Draw(t, "phase"),
		Ready: rapid.Bool().Draw(t, "ready"), ContainersReady: rapid.Bool().Draw(t, "containers"),
		Terminating: seldom.Draw(t, "terminating"), HostNetwork: rapid.Bool().Draw(t, "host"),
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"http", "admin"}), 0, 2, rapid.ID).Draw(t, "ports") {
		p.Ports = append(p.Ports, podevent.Port{Name: name, ContainerPort: rapid.Int32Range(1, 65535).Draw(t, name)})
	}
	return p
})

var anyBinding = rapid.Custom(func(t *rapid.T) *binding.Binding {
	b := &binding.Binding{
		RegisterWhen: rapid.SampledFrom([]binding.RegisterWhen{binding.HasIP, binding.ContainersReady, binding.Ready}).Draw(t, "when"),
		Empty:        seldom.Draw(t, "empty"),
	}
	for _, cidr := range rapid.SliceOfN(rapid.SampledFrom([]string{"0.0.0.0/0", "10.64.0.0/16", "fd00::/64"}), 0, 2).Draw(t, "cidrs") {
		b.PodCIDRs = append(b.PodCIDRs, netip.MustParsePrefix(cidr))
	}
	switch rapid.IntRange(0, 2).Draw(t, "port") {
	case 0:
		b.Port.Number = rapid.Int32Range(1, 65535).Draw(t, "number")
	case 1:
		b.Port.Name = rapid.SampledFrom([]string{"http", "admin", "https"}).Draw(t, "name")
	}
	return b
})

var anyGroup = rapid.Custom(func(t *rapid.T) claim.Group {
	return claim.Group{
		Type:   rapid.SampledFrom([]claim.TargetType{claim.IP, claim.IP, claim.IP, claim.IP, claim.Instance, "lambda"}).Draw(t, "type"),
		Family: rapid.SampledFrom([]claim.Family{claim.IPv4, claim.IPv6}).Draw(t, "family"),
		Port:   rapid.Int32Range(0, 65535).Draw(t, "own port"),
	}
})

// Whatever a pod's status says: a claim is on an address of the group's family
// that is the pod's own and within podCIDRs, by a live pod, with a port.
func TestClaims_I4_I7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, b, g := anyPod.Draw(t, "pod"), anyBinding.Draw(t, "binding"), anyGroup.Draw(t, "group")
		k, refusal := claim.Of(p, b, g)
		if again, same := claim.Of(p, b, g); again != k || same != refusal {
			t.Fatalf("once %v %q, then %v %q", k, refusal, again, same)
		}
		if (refusal == claim.None) == (k == claim.Key{}) {
			t.Fatalf("key %v with refusal %q", k, refusal)
		}
		if refusal != claim.None {
			return
		}
		switch {
		case p.Terminating, p.Finished():
			t.Fatal("I4: a pod at its end claims a key")
		case b.Empty, g.Type != claim.IP:
			t.Fatal("a key that nobody may claim")
		case k.Port < 1 || k.Port > 65535:
			t.Fatalf("I7: port %d", k.Port)
		case b.RegisterWhen == binding.Ready && !p.Ready, b.RegisterWhen == binding.ContainersReady && !p.ContainersReady:
			t.Fatal("a pod that is not ready claims a key")
		}
		addr := netip.MustParseAddr(k.ID)
		if addr.Is4() != (g.Family == claim.IPv4) || addr.Is4In6() || addr.Zone() != "" || addr.String() != k.ID {
			t.Fatalf("address %s in a group of %s", k.ID, g.Family)
		}
		if !slices.Contains(claim.Addresses(p.PodIPs, g.Family), k.ID) {
			t.Fatalf("address %s is none of %v", k.ID, p.PodIPs)
		}
		if !claim.Allowed(addr, b.PodCIDRs) {
			t.Fatalf("address %s is outside %v", k.ID, b.PodCIDRs)
		}
	})
}

// What ends a claim ends it whatever else is so, and a stricter registerWhen
// never claims more.
func TestStrictness_I4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, b, g := anyPod.Draw(t, "pod"), anyBinding.Draw(t, "binding"), anyGroup.Draw(t, "group")
		p.ContainersReady = p.ContainersReady || p.Ready // as kubelets say it
		order := []binding.RegisterWhen{binding.HasIP, binding.ContainersReady, binding.Ready}
		before := true
		for _, when := range order {
			b.RegisterWhen = when
			_, refusal := claim.Of(p, b, g)
			if refusal == claim.None && !before {
				t.Fatalf("claims under %s, and not under what asks for less", when)
			}
			before = refusal == claim.None
		}
		p.Terminating = true
		if k, refusal := claim.Of(p, b, g); refusal == claim.None {
			t.Fatalf("terminating, and claims %v", k)
		}
	})
}
