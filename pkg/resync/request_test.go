package resync_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

// lag is one missing and one extra target, made after the first rounds.
func (w *world) lag() {
	w.serve(6)
	w.two()
	w.start()
	w.rounds(2)
	w.web().drop("10.0.1.1")
	w.web().hold("10.9.9.9")
}

// TestRequests: a round that an operator asked for is worked off at once, and
// answered, with who asked.
func TestRequests_I10(t *testing.T) {
	t.Run("all groups", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			w.pass(5 * time.Second)
			w.request(`"request":{"id":"r1","by":"kim"}`)
			w.wantTold(1, "round 3 request run=run-1 groups=2 repaired=2 dryRun=false request=r1 by=kim sender=AROAEXAMPLE:kim @25s")
			w.wantTold(1, "changed web +10.0.1.1 kind=drift run=run-1 round=3 request=r1")
			w.wantTold(1, "changed web -10.9.9.9 kind=drift run=run-1 round=3 request=r1")
		})
	})
	t.Run("one group", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			w.request(`"request":{"id":"r1","groups":["` + arnOf("api") + `"]}`)
			w.wantTold(1, "round 3 request groups=1 unread=0 found=0")
			w.wantTold(0, "changed web -")
		})
	})
	t.Run("a dry run changes nothing and answers; the next round is not put off by it", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			w.pass(10 * time.Second)
			before := w.web().holds()
			w.request(`"request":{"id":"r1"},"dryRun":true`)
			w.web().wantHolds(before)
			w.wantTold(1, "round 3 request found=2 repaired=0 dryRun=true request=r1")
			w.wantTold(1, "finding web missing would-register 10.0.1.1")
			w.wantTold(1, "finding web extra would-deregister 10.9.9.9")
			w.wantTold(0, "changed web -")
			w.rounds(1)
			w.wantTold(1, "changed web +10.0.1.1 @40s")
		})
	})
	t.Run("a dry run tells no hold", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			w.web().hold("10.9.9.1", "10.9.9.2", "10.9.9.3")
			w.request(`"request":{"id":"r1"},"dryRun":true`)
			w.wantTold(0, "held web")
			w.wantSome("finding web extra held 10.9.9.1")
			w.rounds(1)
			w.wantSome("held web 10.9.9.1")
		})
	})
	t.Run("a group that no rule names", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			w.request(`"request":{"id":"r1","groups":["` + arnOf("nobody") + `"]}`)
			w.wantTold(1, "round 3 request groups=0")
			w.wantTold(1, "problem target group "+arnOf("nobody")+": no rule")
		})
	})
	t.Run("what is not understood is buried, with the reason", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			for body, want := range map[string]string{
				`round`: "not JSON", `{"schema":2}`: "schema 2: want 1", `{"schema":1,"trigger":"x"}`: `trigger "x"`,
				`{"schema":1,"trigger":"request"}`:                 "request.id: missing",
				`{"source":"elbridge","detail-type":"Pod Gone"}`:   "Pod Gone",
				`{"source":"aws.ec2","detail-type":"x"}`:           "aws.ec2",
				`{"schema":1,"trigger":"request","request":["x"]}`: "not JSON",
			} {
				id := w.send(body)
				w.pass(time.Second)
				var got string
				w.do(func() { got = w.buried[id] })
				if !strings.Contains(got, want) {
					t.Errorf("%s was buried as %q, want %q", body, got, want)
				}
			}
			if n := w.metric("resync_requests_total", "result", "malformed"); n != 0 {
				t.Errorf("%v before the round's end", n) // metrics leave with the round
			}
			w.rounds(1)
			if n := w.metric("resync_requests_total", "result", "malformed"); n != 7 {
				t.Errorf("resync_requests_total malformed = %v, want 7", n)
			}
			w.wantTold(0, "round request run=")
		})
	})
	t.Run("hints that expired, and the webhook's events, hurry and no more", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			w.send(`{"schema":1,"trigger":"hint-expired","request":{"id":"e1","groups":["` + arnOf("web") + `","` + arnOf("nobody") + `"],"approve":"x","reason":"y"}}`)
			w.send(`{"source":"elbridge","detail-type":"Webhook Started","detail":{}}`)
			w.send(`{"source":"elbridge","detail-type":"Events Dropped","detail":{}}`)
			w.pass(10 * time.Second)
			w.wantTold(0, "round 3")
			w.rounds(1)
			w.wantTold(1, "round 3 schedule groups=2 repaired=2 @40s")
			if len(w.deleted) != 3 {
				t.Errorf("%d messages were taken off the queue, want 3", len(w.deleted))
			}
		})
	})
	t.Run("one that waited for long is not worked off", func(t *testing.T) {
		story(t, func(w *world) {
			w.lag()
			w.sendAgo(11*time.Minute, `{"schema":1,"trigger":"request","request":{"id":"r1"}}`)
			w.pass(25 * time.Second)
			w.wantTold(0, "round request run=")
		})
	})
}

// TestRunLength: a run ends at its length, or a reserve before its invocation
// does; another goes on where it ended.
func TestRunLength(t *testing.T) {
	tests := map[string]struct {
		length, deadline, want time.Duration
	}{
		"its length":              {2 * time.Minute, 15 * time.Minute, 2 * time.Minute},
		"the invocation's end":    {13 * time.Minute, time.Minute, 50 * time.Second},
		"no time left":            {13 * time.Minute, 5 * time.Second, 0},
		"no deadline is at hand":  {2 * time.Minute, 0, 2 * time.Minute},
		"a deadline that is over": {2 * time.Minute, -time.Second, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.config.RunLength = tt.length
				ctx, cancel := context.WithCancel(w.t.Context())
				if tt.deadline != 0 {
					ctx, cancel = context.WithTimeout(w.t.Context(), tt.deadline)
				}
				defer cancel()
				w.serve(3)
				began := time.Now()
				r := w.instance()
				r.Run(ctx, "only")
				if took := time.Since(began); took != tt.want {
					t.Errorf("the run took %s, want %s", took, tt.want)
				}
				w.web().drop("10.0.1.2")
				began = time.Now()
				r.Run(w.t.Context(), "next")
				if took := time.Since(began); took != tt.length {
					t.Errorf("the next run took %s, want %s", took, tt.length)
				}
				w.web().wantHolds("10.0.1.1 10.0.1.2 10.0.1.3")
				w.wantTold(1, "changed web +10.0.1.2 run=next")
			})
		})
	}
}

// TestRequestAtTheEnd: whoever asks for a round that the run's end cuts short is
// told to ask again.
func TestRequestAtTheEnd(t *testing.T) {
	story(t, func(w *world) {
		w.config.RunLength = time.Minute
		w.r = w.instance()
		w.serve(3)
		w.start()
		w.rounds(2)
		slow := func(ctx context.Context, _ string) error {
			time.Sleep(10 * time.Second)
			return ctx.Err()
		}
		w.do(func() { w.groups["web"].onCall = slow })
		w.pass(35 * time.Second)
		w.request(`"request":{"id":"r1"}`)
		w.wantTold(1, "round request run=run-1 request=r1")
		w.wantTold(1, "problem the run ended before")
	})
}

// TestRunEndsMidway_I10: what was done when the run ended is told of; a round that
// was cut short is no partial one.
func TestRunEndsMidway_I10(t *testing.T) {
	story(t, func(w *world) {
		w.config.RunLength = 30 * time.Second
		w.serve(3)
		w.two()
		w.web().onCall = func(_ context.Context, operation string) error {
			if operation == "register" {
				time.Sleep(27*time.Second + 500*time.Millisecond) // begun at 3 s
			}
			return nil
		}
		w.web().drop("10.0.1.2")
		w.instance().Run(w.t.Context(), "only")
		w.wantSome("failed web register 10.0.1.2")
		if n := w.metric("groups_unread"); n != 0 {
			t.Errorf("%v groups count as unread because the run ended", n)
		}
	})
}
