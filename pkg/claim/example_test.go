package claim_test

import (
	"fmt"
	"net/netip"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// One pod of two families, under one binding, in two groups.
func Example() {
	pod := &podevent.Pod{
		Namespace: "ingress", Name: "skipper-0", UID: "1b5f", Phase: "Running", Ready: true,
		PodIPs: []string{"fd00::7", "10.64.1.7"},
		Ports:  []podevent.Port{{Name: "http", ContainerPort: 9999, Protocol: "TCP"}},
	}
	b := &binding.Binding{Port: binding.Port{Name: "http"}, RegisterWhen: binding.Ready, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.64.0.0/16")}}

	for _, family := range []claim.Family{claim.IPv4, claim.IPv6} {
		key, refusal := claim.Of(pod, b, claim.Group{Type: claim.IP, Family: family, Port: 80})
		if refusal != claim.None {
			fmt.Println(family, "nothing:", refusal)
			continue
		}
		fmt.Println(family, key)
	}
	pod.Terminating = true
	_, refusal := claim.Of(pod, b, claim.Group{Type: claim.IP, Family: claim.IPv4, Port: 80})
	fmt.Println(refusal)
	// Output:
	// ipv4 10.64.1.7:9999
	// ipv6 nothing: address is outside podCIDRs
	// pod is terminating
}
