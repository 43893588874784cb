package targetgroup_test

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

func web24(third int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.64.%d.0/24", third))
}

// The words by which ELB asks for a zone; %.0s eats the address.
var zoneWords = []string{
	"The IP address '%s' is outside the VPC 'vpc-1': you must specify an Availability Zone, or 'all'",
	"You must specify a valid Availability Zone or select 'all' for the IP address '%s'",
	"The Availability Zone is required for IP address '%s'",
}

const inside, far, farther = "10.64.1.", "192.168.5.", "192.168.6."

func key(id string) claim.Key { return claim.Key{ID: id, Port: 8080} }

func outsideVPC(words string) *service {
	return &service{asks: words, outside: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}}
}

func TestZoneOutsideTheVPC_P013(t *testing.T) {
	for _, words := range zoneWords {
		t.Run(words, func(t *testing.T) {
			s := outsideVPC(words)
			c := serve(t, s)
			steps := []struct{ name, id, calls, want string }{
				{"inside: none is sent (I7)", inside + "7", "1", inside + "7"},
				{"outside: sent when asked for", far + "7", "1 1", far + "7=all"},
				{"P014 remembered for its neighbours", far + "8", "1", far + "8=all"},
				{"not for others", farther + "7", "1 1", farther + "7=all"},
				{"still none inside", inside + "8", "1", inside + "8"},
			}
			for _, tt := range steps {
				ks := []claim.Key{key(tt.id)}
				r := c.Register(t.Context(), web, ks, binding.ZoneAuto)
				calls := strings.ReplaceAll(strings.Join(s.take(), " "), "RegisterTargets ", "")
				if got := s.zonesOf(ks); got != tt.want || calls != tt.calls || r.Err() != nil {
					t.Errorf("%s: %s in calls of %q, error %v; want %s in %q", tt.name, got, calls, r.Err(), tt.want, tt.calls)
				}
			}
		})
	}
}

func TestZones(t *testing.T) {
	in, out := keys("10.64.1.0", 100), keys("192.168.5.0", 100)
	zoned := func(ks []claim.Key, zone string) []string {
		var all []string
		for _, k := range ks {
			all = append(all, strings.TrimSuffix(k.ID+"="+zone, "="))
		}
		return all
	}
	tests := map[string]struct {
		zone, outsideZone string
		ks                []claim.Key
		calls             int
	}{
		"all outside":                              {binding.ZoneAuto, "all", out, 2},
		"all inside":                               {binding.ZoneAuto, "all", in, 1},
		"half and half":                            {binding.ZoneAuto, "all", slices.Concat(in, out), 6},
		"in turns":                                 {"", "all", turns(in, out), 6},
		"a zone is the outside's only (I7)":        {"eu-west-1b", "eu-west-1b", slices.Concat(in, out), 6},
		"so is the word all":                       {binding.ZoneAll, "all", slices.Concat(in, out), 6},
		"with several networks on either side":     {"", "all", slices.Concat(in, out, keys("10.64.9.0", 50), keys("192.168.7.0", 50)), 12},
		"an explicit zone, and nothing is outside": {"eu-west-1a", "", in, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := outsideVPC(zoneWords[0])
			c := serve(t, s)
			r := c.Register(t.Context(), web, tt.ks, tt.zone)
			var want []string
			for _, k := range tt.ks {
				zone := ""
				if strings.HasPrefix(k.ID, "192.168.") {
					zone = tt.outsideZone
				}
				want = append(want, zoned([]claim.Key{k}, zone)...)
			}
			if got := s.zonesOf(tt.ks); got != strings.Join(want, ", ") || r.Err() != nil {
				t.Fatalf("error %v, held %s", r.Err(), got)
			}
			if r.Calls > tt.calls {
				t.Errorf("%d calls, want at most %d", r.Calls, tt.calls)
			}
			s.take()
			if r := c.Register(t.Context(), web, tt.ks, tt.zone); r.Err() != nil || r.Calls > 2 {
				t.Errorf("once more: %d calls, error %v; want each chunk right at once", r.Calls, r.Err())
			}
		})
	}
}

func turns(a, b []claim.Key) []claim.Key {
	var out []claim.Key
	for i := range a {
		out = append(out, a[i], b[i])
	}
	return out
}

func TestZoneMemoryThatIsWrong_P014(t *testing.T) {
	s := outsideVPC(zoneWords[0])
	s.outside = []netip.Prefix{netip.MustParsePrefix("10.64.1.128/25")} // a subnet ends within the /24
	c := serve(t, s)
	for _, id := range []string{"10.64.1.200", "10.64.1.7", "10.64.1.201", "10.64.1.8"} {
		if r := c.Register(t.Context(), web, []claim.Key{key(id)}, ""); r.Err() != nil || r.Calls > 2 {
			t.Errorf("%s: %d calls, error %v; want it in after at most one retry", id, r.Calls, r.Err())
		}
	}
}

// What the second try fails with is what counts: the zone was put right.
func TestErrorOfTheSecondTry(t *testing.T) {
	tests := map[string]struct {
		second string
		want   error
	}{
		"throttled":         {"!Throttling: Rate exceeded", targetgroup.ErrThrottled},
		"quota":             {"!TooManyTargets: of the group", targetgroup.ErrQuota},
		"another fault":     {"!InvalidTarget: a load balancer's own", targetgroup.ErrInvalidTarget},
		"neither zone fits": {"!ValidationError: The Availability Zone 'all' is not valid", targetgroup.ErrInvalidTarget},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &service{answer: map[string]func(url.Values) string{"RegisterTargets": func(v url.Values) string {
				if members(v)[0].zone == "" {
					return "!ValidationError: " + fmt.Sprintf(zoneWords[0], far+"7")
				}
				return tt.second
			}}}
			k := key(far + "7")
			r := serve(t, s).Register(t.Context(), web, []claim.Key{k}, "")
			if !errors.Is(r.Failed[k], tt.want) {
				t.Errorf("failed with %v, want %v", r.Failed[k], tt.want)
			}
		})
	}
}

func TestZoneIsNeverSentForInstances_I7(t *testing.T) {
	s := &service{answer: map[string]func(url.Values) string{"RegisterTargets": func(v url.Values) string {
		if members(v)[0].zone != "" {
			return "!ValidationError: a zone"
		}
		return ""
	}}}
	ks := []claim.Key{{ID: "i-0000000000000000a", Port: 30080}}
	if r := serve(t, s).Register(t.Context(), web, ks, "eu-west-1a"); r.Err() != nil {
		t.Error(r.Err())
	}
}
