package targetgroup_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

func TestChunks(t *testing.T) {
	tests := map[string]struct {
		n    int
		want string
	}{
		"P011 nothing is sent for nothing": {0, ""},
		"one":                              {1, "1"},
		"P001 200 in one call":             {200, "200"},
		"201":                              {201, "200 1"},
		"450":                              {450, "200 200 50"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &service{}
			c := serve(t, s)
			ks := keys("10.64.0.0", tt.n)
			for verb, do := range map[string]func() targetgroup.Result{
				"RegisterTargets":   func() targetgroup.Result { return c.Register(t.Context(), web, ks, binding.ZoneAuto) },
				"DeregisterTargets": func() targetgroup.Result { return c.Deregister(t.Context(), web, ks) },
			} {
				r := do()
				calls := s.take()
				if got := strings.ReplaceAll(strings.Join(calls, " "), verb+" ", ""); got != tt.want || r.Err() != nil || r.Calls != len(calls) {
					t.Errorf("%s: calls of %q targets (%d counted), error %v; want %q", verb, got, r.Calls, r.Err(), tt.want)
				}
			}
		})
	}
}

func TestAChunksFailureDoesNotStopTheNext_I6(t *testing.T) {
	s := &service{}
	turn := 0
	s.answer = map[string]func(url.Values) string{}
	s.answer["RegisterTargets"] = func(v url.Values) string {
		if turn++; turn == 2 {
			return "!Throttling: Rate exceeded"
		}
		return s.register(members(v))
	}
	ks := keys("10.64.0.0", 600)
	r := serve(t, s).Register(t.Context(), web, ks, binding.ZoneAuto)
	if got := s.missing(ks); len(got) != 200 || len(r.Failed) != 200 {
		t.Fatalf("%d are absent and %d failed, want the second 200", len(got), len(r.Failed))
	}
	if !errors.Is(r.Failed[ks[200]], targetgroup.ErrThrottled) || !errors.Is(r.Failed[ks[399]], targetgroup.ErrThrottled) {
		t.Errorf("failed with %v, want ErrThrottled", r.Failed[ks[200]])
	}
}

func TestBadTargetsAreIsolated_I6(t *testing.T) {
	tests := map[string]struct {
		bad   []int // of 200
		calls int   // at most
	}{
		"the first":     {[]int{0}, 17},
		"the last":      {[]int{199}, 17},
		"two together":  {[]int{99, 100}, 33},
		"three apart":   {[]int{3, 111, 150}, 50},
		"four together": {[]int{60, 61, 62, 63}, 50},
	}
	for verb, do := range map[string]func(*targetgroup.Client, []claim.Key) targetgroup.Result{
		"register": func(c *targetgroup.Client, ks []claim.Key) targetgroup.Result {
			return c.Register(t.Context(), web, ks, "")
		},
		"deregister": func(c *targetgroup.Client, ks []claim.Key) targetgroup.Result {
			return c.Deregister(t.Context(), web, ks)
		},
	} {
		for name, tt := range tests {
			t.Run(verb+" "+name, func(t *testing.T) {
				ks := keys("10.64.0.0", 200)
				s := &service{bad: map[string]fault{}}
				c := serve(t, s)
				if verb == "deregister" {
					c.Register(t.Context(), web, ks, "")
					s.take()
				}
				for _, i := range tt.bad {
					s.bad[ks[i].ID] = "InvalidTarget: not in the VPC"
				}
				r := do(c, ks)
				if len(r.Failed) != len(tt.bad) {
					t.Fatalf("%d failed, want %d", len(r.Failed), len(tt.bad))
				}
				for _, i := range tt.bad {
					if !errors.Is(r.Failed[ks[i]], targetgroup.ErrInvalidTarget) {
						t.Errorf("%v failed with %v, want ErrInvalidTarget", ks[i], r.Failed[ks[i]])
					}
				}
				left := len(s.missing(ks))
				if verb == "deregister" {
					left = 200 - left
				}
				if left != len(tt.bad) {
					t.Errorf("%d neighbours were not served", left-len(tt.bad))
				}
				if n := len(s.take()); n > tt.calls || n != r.Calls {
					t.Errorf("%d calls, %d counted; want at most %d", n, r.Calls, tt.calls)
				}
			})
		}
	}
}

// The more targets are bad, the more calls it takes to tell them from the good
// ones. A good one must neither be called bad meanwhile nor wait for ever.
func TestManyBadTargets_I6(t *testing.T) {
	ks := keys("10.64.0.0", 200)
	tests := map[string]func(i int) bool{
		"the first 40":     func(i int) bool { return i < 40 },
		"the last 40":      func(i int) bool { return i >= 160 },
		"every fifth":      func(i int) bool { return i%5 == 0 },
		"all but the last": func(i int) bool { return i < 199 },
		"all":              func(int) bool { return true },
	}
	for name, bad := range tests {
		t.Run(name, func(t *testing.T) {
			s := &service{bad: map[string]fault{}}
			c := serve(t, s)
			var good []claim.Key
			for i, k := range ks {
				if bad(i) {
					s.bad[k.ID] = "ValidationError: not a valid address"
				} else {
					good = append(good, k)
				}
			}
			for turn := 1; ; turn++ {
				r := c.Register(t.Context(), web, s.missing(ks), "")
				if r.Calls > 60 {
					t.Fatalf("turn %d: %d calls", turn, r.Calls)
				}
				for k, err := range r.Failed {
					if s.bad[k.ID] == "" && (errors.Is(err, targetgroup.ErrInvalidTarget) || !errors.Is(err, targetgroup.ErrUnavailable)) {
						t.Fatalf("turn %d: good target %v failed with %v, want ErrUnavailable", turn, k, err)
					}
				}
				if len(s.missing(good)) == 0 && turn > 1 {
					break
				}
				if turn == 12 {
					t.Fatalf("%d good targets are still not in", len(s.missing(good)))
				}
			}
		})
	}
}

func TestKnownBadTargetsCostLittle(t *testing.T) {
	ks := keys("10.64.0.0", 200)
	s := &service{bad: map[string]fault{ks[7].ID: "InvalidTarget: not in the VPC"}}
	c := serve(t, s)
	c.Register(t.Context(), web, ks, "")
	s.take()

	more := append(keys("10.64.1.0", 50), ks[7])
	r := c.Register(t.Context(), web, more, "")
	if got := strings.Join(s.take(), ", "); got != "RegisterTargets 50, RegisterTargets 1" {
		t.Errorf("calls %s, want the new ones together and the old one alone", got)
	}
	if len(r.Failed) != 1 || !errors.Is(r.Failed[ks[7]], targetgroup.ErrInvalidTarget) {
		t.Errorf("failed: %v", r.Failed)
	}

	delete(s.bad, ks[7].ID) // somebody put it right
	if r := c.Register(t.Context(), web, ks[7:8], ""); r.Err() != nil {
		t.Error(r.Err())
	}
	s.take()
	c.Register(t.Context(), web, ks[5:9], "")
	if got := strings.Join(s.take(), ", "); got != "RegisterTargets 4" {
		t.Errorf("calls %s, want one: nothing is held against a target that was accepted", got)
	}
}

func TestQuota_P010(t *testing.T) {
	for _, room := range []int{1, 2, 7, 100, 150, 199, 200} {
		t.Run(fmt.Sprint("room for ", room), func(t *testing.T) {
			s := &service{room: room}
			ks := keys("10.64.0.0", 200)
			r := serve(t, s).Register(t.Context(), web, ks, "")
			if got := 200 - len(s.missing(ks)); got != room || len(r.Failed) != 200-room {
				t.Errorf("%d got in and %d failed, want what fits: %d", got, len(r.Failed), room)
			}
			for k, err := range r.Failed {
				if !errors.Is(err, targetgroup.ErrQuota) {
					t.Fatalf("%v failed with %v, want ErrQuota", k, err)
				}
			}
			if r.Calls > 24 {
				t.Errorf("%d calls, want at most 24", r.Calls)
			}
		})
	}

	t.Run("full: 1,000 more cost a few calls", func(t *testing.T) {
		s := &service{room: 1}
		c := serve(t, s)
		c.Register(t.Context(), web, keys("10.64.9.0", 1), "")
		r := c.Register(t.Context(), web, keys("10.64.0.0", 1000), "")
		if len(r.Failed) != 1000 || r.Calls > 16 {
			t.Errorf("%d of 1,000 failed in %d calls, want all in at most 16", len(r.Failed), r.Calls)
		}
	})

	t.Run("one zone is full, the others are not", func(t *testing.T) {
		s := &service{full: web24(1)}
		c := serve(t, s)
		all := slices.Concat(keys("10.64.1.0", 67), keys("10.64.2.0", 67), keys("10.64.3.0", 66))
		for range 4 {
			c.Register(t.Context(), web, s.missing(all), "")
		}
		if got := s.missing(all[67:]); len(got) != 0 {
			t.Errorf("%d of the zones with room are not in", len(got))
		}
	})
}

func TestDeregister(t *testing.T) {
	s := &service{}
	c := serve(t, s)
	mine, other := claim.Key{ID: "10.64.1.7", Port: 9000}, claim.Key{ID: "10.64.1.7", Port: 8080}
	c.Register(t.Context(), web, []claim.Key{mine, other}, "")
	for range 2 { // absent the second time, which is no error
		if r := c.Deregister(t.Context(), web, []claim.Key{mine}); r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
	if len(s.missing([]claim.Key{mine})) != 1 || len(s.missing([]claim.Key{other})) != 0 {
		t.Errorf("held: %v; P056 wants the port as registered, I7 always one", s.held)
	}
}
