package claim_test

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// pod reads "10.64.1.7 fd00::7 ready http:8080 Failed": addresses, ports by
// name, a phase, and the words ready, containers (are ready), terminating, host
// (network).
func pod(text string) *podevent.Pod {
	p := &podevent.Pod{Namespace: "shop", Name: "web-0", UID: "u", Phase: "Running"}
	for _, w := range strings.Fields(text) {
		name, port, named := strings.Cut(w, ":")
		n, err := strconv.ParseInt(port, 10, 32)
		switch {
		case w == "ready":
			p.Ready, p.ContainersReady = true, true
		case w == "containers":
			p.ContainersReady = true
		case w == "terminating":
			p.Terminating = true
		case w == "host":
			p.HostNetwork = true
		case strings.ToUpper(w[:1]) == w[:1] && strings.ToLower(w[1:]) == w[1:] && w[0] >= 'A':
			p.Phase = w
		case named && err == nil && netipIs(w) == "":
			p.Ports = append(p.Ports, podevent.Port{Name: name, ContainerPort: int32(n), Protocol: "TCP"})
		default:
			p.PodIPs = append(p.PodIPs, strings.TrimPrefix(w, "ip="))
		}
	}
	return p
}

func netipIs(s string) string {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.String()
	}
	return ""
}

// bind reads "9999", "http", "Ready", "in=10.64.0.0/16", "empty".
func bind(text string) *binding.Binding {
	b := &binding.Binding{RegisterWhen: binding.HasIP, MinTargets: 1, MaxRemovalPercent: 20}
	for _, w := range strings.Fields(text) {
		cidr, within := strings.CutPrefix(w, "in=")
		n, err := strconv.ParseInt(w, 10, 32)
		switch {
		case within:
			b.PodCIDRs = append(b.PodCIDRs, netip.MustParsePrefix(cidr))
		case w == "empty":
			b.Empty = true
		case err == nil:
			b.Port.Number = int32(n)
		case w == "Ready" || w == "ContainersReady" || w == "HasIP":
			b.RegisterWhen = binding.RegisterWhen(w)
		default:
			b.Port.Name = w
		}
	}
	return b
}

// group reads "v4 8080", "v6 8080", "instance 80".
func group(text string) claim.Group {
	kind, port, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseInt(port, 10, 32) // none is 0
	g := claim.Group{ARN: "arn:group", Type: claim.IP, Family: claim.IPv4, Port: int32(n)}
	switch kind {
	case "v6":
		g.Family = claim.IPv6
	case "instance", "lambda", "alb":
		g.Type = claim.TargetType(kind)
	}
	return g
}
