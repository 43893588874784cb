package claim_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/claim"
)

func TestOf(t *testing.T) {
	tests := map[string]struct {
		pod, binding, group string
		want                string // the key, or the refusal
	}{
		"a pod with an address": {"10.64.1.7", "", "v4 8080", "10.64.1.7:8080"},

		// Addresses.
		"no address yet":                      {"", "", "v4 8080", string(claim.Pending)},
		"IPv4 of a dual-stack pod":            {"10.64.1.7 fd00::7", "", "v4 8080", "10.64.1.7:8080"},
		"IPv6 of a dual-stack pod":            {"10.64.1.7 fd00::7", "", "v6 8080", "[fd00::7]:8080"},
		"IPv4, second in the list":            {"fd00::7 10.64.1.7", "", "v4 8080", "10.64.1.7:8080"},
		"none of the group's family":          {"10.64.1.7", "", "v6 8080", string(claim.Pending)},
		"the first of several":                {"10.64.1.7 10.64.1.8", "", "v4 8080", "10.64.1.7:8080"},
		"IPv6 in another spelling":            {"FD00:0:0:0:0:0:0:7", "", "v6 8080", "[fd00::7]:8080"},
		"IPv4 written as IPv6":                {"::ffff:10.64.1.7", "", "v4 8080", "10.64.1.7:8080"},
		"and it is no IPv6":                   {"::ffff:10.64.1.7", "", "v6 8080", string(claim.Pending)},
		"with a zone":                         {"fe80::1%eth0", "", "v6 8080", "[fe80::1]:8080"},
		"malformed":                           {"10.64.1", "", "v4 8080", string(claim.InvalidAddress)},
		"malformed by leading zeros":          {"010.64.1.7", "", "v4 8080", string(claim.InvalidAddress)},
		"no address at all":                   {"ip=localhost", "", "v4 8080", string(claim.InvalidAddress)},
		"malformed beside a good one":         {"10.64.1 10.64.1.7", "", "v4 8080", "10.64.1.7:8080"},
		"malformed, the other family is good": {"10.64.1 fd00::7", "", "v4 8080", string(claim.InvalidAddress)},
		"the host's network":                  {"10.64.0.11 host http:80", "http", "v4 8080", "10.64.0.11:80"},

		// podCIDRs.
		"inside":                         {"10.64.1.7", "in=10.64.0.0/16", "v4 8080", "10.64.1.7:8080"},
		"outside":                        {"10.65.1.7", "in=10.64.0.0/16", "v4 8080", string(claim.Outside)},
		"in one of them":                 {"10.65.1.7", "in=10.64.0.0/16 in=10.65.0.0/16", "v4 8080", "10.65.1.7:8080"},
		"at their edges":                 {"10.64.255.255", "in=10.64.0.0/16", "v4 8080", "10.64.255.255:8080"},
		"just past them":                 {"10.65.0.0", "in=10.64.0.0/16", "v4 8080", string(claim.Outside)},
		"only of the other family":       {"10.64.1.7 fd00::7", "in=fd00::/64", "v4 8080", string(claim.Outside)},
		"IPv6 inside":                    {"10.64.1.7 fd00::7", "in=fd00::/64", "v6 8080", "[fd00::7]:8080"},
		"IPv4 written as IPv6 is inside": {"::ffff:10.64.1.7", "in=10.64.0.0/16", "v4 8080", "10.64.1.7:8080"},
		"the host's network is outside":  {"10.64.0.11 host", "in=10.64.1.0/24", "v4 8080", string(claim.Outside)},

		// Ports.
		"by number":              {"10.64.1.7 http:8081", "9999", "v4 8080", "10.64.1.7:9999"},
		"by name":                {"10.64.1.7 http:8081 admin:9000", "admin", "v4 8080", "10.64.1.7:9000"},
		"by a name not declared": {"10.64.1.7 http:8081", "https", "v4 8080", string(claim.NoPort)},
		"by name, no ports":      {"10.64.1.7", "http", "v4 8080", string(claim.NoPort)},
		"the group's own":        {"10.64.1.7 http:8081", "", "v4 8080", "10.64.1.7:8080"},
		"neither has one":        {"10.64.1.7", "", "v4", string(claim.NoPort)},

		// I4 and registerWhen.
		"I4 terminating":                           {"10.64.1.7 ready terminating", "", "v4 8080", string(claim.Terminating)},
		"I4 terminating, whatever registerWhen":    {"10.64.1.7 ready terminating", "Ready", "v4 8080", string(claim.Terminating)},
		"P046 failed, with its address":            {"10.64.1.7 Failed", "", "v4 8080", string(claim.Finished)},
		"P046 succeeded":                           {"10.64.1.7 Succeeded", "", "v4 8080", string(claim.Finished)},
		"pending, with an address":                 {"10.64.1.7 Pending", "", "v4 8080", "10.64.1.7:8080"},
		"P052 not ready under HasIP":               {"10.64.1.7", "HasIP", "v4 8080", "10.64.1.7:8080"},
		"I4 dead container under ContainersReady":  {"10.64.1.7", "ContainersReady", "v4 8080", string(claim.NotReady)},
		"containers ready under ContainersReady":   {"10.64.1.7 containers", "ContainersReady", "v4 8080", "10.64.1.7:8080"},
		"I4 containers ready alone, under Ready":   {"10.64.1.7 containers", "Ready", "v4 8080", string(claim.NotReady)},
		"ready under Ready":                        {"10.64.1.7 ready", "Ready", "v4 8080", "10.64.1.7:8080"},
		"not ready, no address: not ready decides": {"", "Ready", "v4 8080", string(claim.NotReady)},

		"I8 emptied on purpose":      {"10.64.1.7 ready", "empty", "v4 8080", string(claim.RefusedEmpty)},
		"groups of another type":     {"10.64.1.7", "", "lambda 8080", string(claim.InstanceUnready)},
		"instance groups, as of now": {"10.64.1.7", "", "instance 8080", string(claim.InstanceUnready)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k, refusal := claim.Of(pod(tt.pod), bind(tt.binding), group(tt.group))
			got := string(refusal)
			if refusal == claim.None {
				got = k.String()
			} else if k != (claim.Key{}) {
				t.Errorf("refused with key %v", k)
			}
			if got != tt.want {
				t.Errorf("Of(%q, %q, %q) = %q, want %q", tt.pod, tt.binding, tt.group, got, tt.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	tests := map[string]struct {
		ips    string
		family claim.Family
		want   string
	}{
		"of IPv4":          {"10.64.1.7 fd00::7 10.64.1.8", claim.IPv4, "10.64.1.7 10.64.1.8"},
		"of IPv6":          {"10.64.1.7 FD00::0007", claim.IPv6, "fd00::7"},
		"in ELB's writing": {"::ffff:10.64.1.7", claim.IPv4, "10.64.1.7"},
		"malformed":        {"10.64.1 x 010.1.1.1", claim.IPv4, ""},
		"none":             {"", claim.IPv4, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(claim.Addresses(strings.Fields(tt.ips), tt.family), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAllowed(t *testing.T) {
	addr := netip.MustParseAddr
	if !claim.Allowed(addr("203.0.113.1"), nil) {
		t.Error("without podCIDRs an address is refused")
	}
	if claim.Allowed(netip.Addr{}, []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}) {
		t.Error("no address is within a range")
	}
}

func TestKeys(t *testing.T) {
	ks := []claim.Key{{ID: "i-0000000000000000a", Port: 80}, {ID: "fd00::7", Port: 80}, {ID: "10.64.1.7", Port: 9000}, {ID: "10.64.1.7", Port: 80}}
	slices.SortFunc(ks, claim.Compare)
	var got []string
	for _, k := range ks {
		got = append(got, k.String())
	}
	if want := "10.64.1.7:80 10.64.1.7:9000 [fd00::7]:80 i-0000000000000000a:80"; strings.Join(got, " ") != want {
		t.Errorf("in order %v, want %s", got, want)
	}
}
