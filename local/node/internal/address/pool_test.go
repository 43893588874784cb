package address_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/local/node/internal/address"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newPool(t testing.TB, cooldown time.Duration) (*address.Pool, *clock) {
	t.Helper()
	c := &clock{time.Unix(1000, 0)}
	p := address.NewPool(cooldown, c.Now)
	if err := p.AddNode("a", netip.MustParsePrefix("10.64.1.0/28")); err != nil {
		t.Fatal(err)
	}
	return p, c
}

func TestPool(t *testing.T) {
	p, c := newPool(t, 30*time.Second)
	next := func(want string) {
		t.Helper()
		got, err := p.Next("a")
		if err != nil || got.String() != want {
			t.Errorf("next is %s, %v, want %s", got, err, want)
		}
	}
	addr := netip.MustParseAddr
	next("10.64.1.4") // the first four and the last are the VPC's
	next("10.64.1.5")
	p.Release(addr("10.64.1.4"))
	next("10.64.1.6")
	for range 8 {
		if _, err := p.Next("a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Next("a"); !errors.Is(err, address.ErrExhausted) {
		t.Errorf("an address is given that cools down: %v", err)
	}
	c.now = c.now.Add(30 * time.Second)
	next("10.64.1.4")

	if err := p.Take(addr("10.64.1.4")); !errors.Is(err, address.ErrInUse) {
		t.Errorf("taken twice: %v", err)
	}
	p.Release(addr("10.64.1.4"))
	if err := p.Take(addr("10.64.1.4")); err != nil {
		t.Errorf("P049 a chosen address has to wait: %v", err)
	}
	p.Release(addr("10.64.1.99")) // nobody's
}

func TestAddNodeRefuses(t *testing.T) {
	p, _ := newPool(t, 0)
	for _, bad := range []string{"10.64.1.0/24", "10.64.2.0/29", "10.64.2.1/24", "fd00::/64"} {
		if err := p.AddNode("b", netip.MustParsePrefix(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if _, err := p.Next("b"); err == nil {
		t.Error("a node without a range has an address")
	}
}

func TestSecond(t *testing.T) {
	for in, want := range map[string]string{"10.64.1.7": "fd00::107", "10.64.0.11": "fd00::b", "10.64.255.255": "fd00::ffff"} {
		if got := address.Second(netip.MustParseAddr(in)); got.String() != want {
			t.Errorf("Second(%s) = %s, want %s", in, got, want)
		}
	}
}

// Whatever happens, no address has two owners, and none is given out while it
// cools down unless it was chosen.
func TestPoolProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cooldown = 30 * time.Second
		c := &clock{time.Unix(1000, 0)}
		p := address.NewPool(cooldown, c.Now)
		if err := p.AddNode("a", netip.MustParsePrefix("10.64.1.0/28")); err != nil {
			t.Fatal(err)
		}
		owned, released := map[netip.Addr]bool{}, map[netip.Addr]time.Time{}
		any11 := rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{10, 64, 1, rapid.ByteRange(4, 14).Draw(t, "last byte")})
		})
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				a, err := p.Next("a")
				if err != nil {
					for i := byte(4); i <= 14; i++ {
						b := netip.AddrFrom4([4]byte{10, 64, 1, i})
						if at, ok := released[b]; !owned[b] && (!ok || !c.now.Before(at.Add(cooldown))) {
							t.Fatalf("exhausted though %s is free", b)
						}
					}
					return
				}
				if at, ok := released[a]; owned[a] || (ok && c.now.Before(at.Add(cooldown))) {
					t.Fatalf("%s is owned %v, released at %v, now %v", a, owned[a], at, c.now)
				}
				owned[a] = true
			},
			"take": func(t *rapid.T) {
				a := any11.Draw(t, "address")
				if err := p.Take(a); (err == nil) == owned[a] {
					t.Fatalf("Take(%s) = %v, owned %v", a, err, owned[a])
				}
				owned[a] = true
				delete(released, a)
			},
			"release": func(t *rapid.T) {
				a := any11.Draw(t, "address")
				p.Release(a)
				if owned[a] {
					released[a] = c.now
				}
				delete(owned, a)
			},
			"wait": func(t *rapid.T) {
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
			},
		})
	})
}
