package vpc_test

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/local/vpc"
)

func TestHostPort(t *testing.T) {
	for in, want := range map[string]string{
		"10.64.1.7:8080":       "127.64.1.7:8080",
		"[fd00::1ff]:8080":     "127.65.1.255:8080",
		"127.96.0.10:8443":     "127.96.0.10:8443",
		"[::ffff:10.64.1.7]:1": "127.64.1.7:1",
		"[::1]:80":             "[::1]:80",
	} {
		if got, err := vpc.HostPort(in); err != nil || got != want {
			t.Errorf("HostPort(%s) = %s, %v, want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"10.65.0.1:80":     "not of the local stack",
		"192.0.2.1:80":     "not of the local stack",
		"[fd00::1:0:1]:80": "fd00::0 to fd00::ffff",
		"[2001:db8::1]:80": "not of the local stack",
		"example.com:80":   "want ip:port",
		"10.64.1.7":        "want ip:port",
	} {
		if got, err := vpc.HostPort(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("HostPort(%s) = %s, %v, want an error with %q", in, got, err, want)
		}
	}
}

// TestLoopbackOnly draws addresses: whatever is asked for, nothing leaves the machine.
func TestLoopbackOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, ok := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		if rapid.Bool().Draw(t, "six") {
			a, ok = netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address6"))
		}
		if !ok {
			t.Fatal("no address")
		}
		if l, err := vpc.Loopback(a); err == nil && !l.IsLoopback() {
			t.Fatalf("Loopback(%s) = %s", a, l)
		}
	})
}
