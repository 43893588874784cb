package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestExpressions(t *testing.T) {
	const after = "2026-03-04T10:17:30Z" // a Wednesday
	tests := map[string]struct {
		text string
		want string // next time, or part of the error
	}{
		"rate of one":          {"rate(1 minute)", "2026-03-04T10:18:30Z"},
		"rate of many":         {"rate(5 minutes)", "2026-03-04T10:22:30Z"},
		"hours":                {"rate(2 hours)", "2026-03-04T12:17:30Z"},
		"a day":                {"rate(1 day)", "2026-03-05T10:17:30Z"},
		"plural of one":        {"rate(1 minutes)", "rate(1 minute)"},
		"singular of many":     {"rate(5 minute)", "rate(2 minutes)"},
		"rate of none":         {"rate(0 minutes)", "rate(1 minute)"},
		"seconds":              {"rate(30 seconds)", "rate(1 minute)"},
		"cron":                 {"cron(0 12 * * ? *)", "2026-03-04T12:00:00Z"},
		"cron step":            {"cron(0/5 * * * ? *)", "2026-03-04T10:20:00Z"},
		"cron names":           {"cron(15 10 ? * MON-FRI *)", "2026-03-05T10:15:00Z"},
		"cron numbers of days": {"cron(0 8 ? * 1 *)", "2026-03-08T08:00:00Z"}, // 1 is Sunday
		"cron last day":        {"cron(0 8 ? * 7 *)", "2026-03-07T08:00:00Z"},
		"cron day 0":           {"cron(0 8 ? * 0 *)", "want 1 (SUN) to 7 (SAT)"},
		"cron two days":        {"cron(0 12 * * * *)", "want ? in either"},
		"cron five fields":     {"cron(0 12 * * ?)", "want six fields"},
		"cron year":            {"cron(0 12 * * ? 2027)", "only * is known"},
		"cron last":            {"cron(0 12 L * ? *)", "L"},
		"nothing":              {"", "want rate("},
		"at":                   {"at(2026-03-04T10:17:30)", "want rate("},
	}
	at, err := time.Parse(time.RFC3339, after)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			x, err := parseExpression(tt.text)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %s", err, tt.want)
				}
				return
			}
			if got := x.Next(at).UTC().Format(time.RFC3339); got != tt.want {
				t.Errorf("next at %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzParseExpression(f *testing.F) {
	for _, seed := range []string{"rate(5 minutes)", "cron(0/5 8-18 ? * MON-FRI *)", "cron(0 8 ? * 1 *)", "cron(0 0 30 2 ? *)"} {
		f.Add(seed)
	}
	at := time.Unix(1_800_000_000, 0)
	f.Fuzz(func(t *testing.T, text string) {
		x, err := parseExpression(text)
		if err != nil {
			return
		}
		if next := x.Next(at); !next.IsZero() && !next.After(at) {
			t.Errorf("%q fires at %s, not after %s", text, next, at)
		}
	})
}

// noted notes asynchronous invocations.
type noted struct {
	mu    sync.Mutex
	calls []string // FUNCTION PAYLOAD
	err   error
}

func (n *noted) Invoke(context.Context, string, []byte) (Result, error) {
	return Result{}, errors.New("a schedule invokes asynchronously")
}

func (n *noted) InvokeAsync(_ context.Context, name string, payload []byte) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, name+" "+string(payload))
	return "id", n.err
}

// until is a clock that ends the context once it stands at its end.
func until(t *testing.T, c *clock, end time.Time) (context.Context, func(context.Context, time.Duration) error) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, func(ctx context.Context, d time.Duration) error {
		if c.Now().Add(d).After(end) {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		return c.sleep(ctx, d)
	}
}

const scheduleARN = "arn:aws:events:eu-west-1:111122223333:rule/probe"

func TestSchedulerFires(t *testing.T) {
	start := time.Date(2026, 3, 4, 10, 17, 30, 0, time.UTC)
	tests := map[string]struct {
		scale float64
		took  time.Duration
		want  int
	}{
		"in real time": {1, 5*time.Minute + time.Second, 5},
		"60 times":     {60, 5*time.Second + time.Millisecond, 5},
		"not yet":      {1, 59 * time.Second, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, n := &clock{now: start}, &noted{}
			ctx, wait := until(t, c, start.Add(tt.took))
			s := &Scheduler{Invoker: n, Scale: tt.scale, Now: c.Now, Sleep: wait}
			if err := s.Run(ctx, Schedule{RuleARN: scheduleARN, Expression: "rate(1 minute)", Function: "prober", Input: []byte(`{"endpoints":1}`)}); err != nil {
				t.Fatal(err)
			}
			if len(n.calls) != tt.want || s.Fired(scheduleARN) != tt.want {
				t.Errorf("fired %d times (%d counted), want %d", len(n.calls), s.Fired(scheduleARN), tt.want)
			}
			for _, call := range n.calls {
				if call != `prober {"endpoints":1}` {
					t.Errorf("invoked %s", call)
				}
			}
		})
	}
}

func TestSchedulerLeavesOutMissedFirings(t *testing.T) {
	start := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	c, n := &clock{now: start}, &noted{}
	ctx, wait := until(t, c, start.Add(12*time.Minute))
	slept := false
	s := &Scheduler{Invoker: n, Now: c.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		if !slept { // the machine sleeps for ten minutes in the first wait
			slept = true
			d = 10*time.Minute + 30*time.Second
		}
		return wait(ctx, d)
	}}
	if err := s.Run(ctx, Schedule{RuleARN: scheduleARN, Expression: "rate(1 minute)", Function: "prober"}); err != nil {
		t.Fatal(err)
	}
	if len(n.calls) != 3 { // at 10.5, 11 and 12 minutes
		t.Errorf("fired %d times, want 3", len(n.calls))
	}
}

func TestScheduledEvent(t *testing.T) {
	var e struct {
		ID, Source, Account, Region, Time string
		DetailType                        string `json:"detail-type"`
		Resources                         []string
		Detail                            map[string]any
	}
	at := time.Date(2026, 3, 4, 10, 17, 30, 5, time.FixedZone("", 3600))
	if err := json.Unmarshal(scheduledEvent(scheduleARN, at), &e); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(e.Source, e.Account, e.Region, e.Time, e.DetailType, e.Resources, e.Detail)
	want := fmt.Sprint("aws.events", "111122223333", "eu-west-1", "2026-03-04T09:17:30Z", "Scheduled Event", []string{scheduleARN}, map[string]any{})
	if got != want || e.ID == "" || e.Detail == nil {
		t.Errorf("event %+v", e)
	}
}

func TestSchedulerNamesEveryBadSchedule(t *testing.T) {
	s := &Scheduler{Invoker: &noted{}}
	err := s.Run(t.Context(), Schedule{RuleARN: "a", Expression: "rate(1 minutes)"}, Schedule{RuleARN: "b", Expression: "cron(0 0 30 2 ? *)"})
	if err == nil || !strings.Contains(err.Error(), "rule a: ") || !strings.Contains(err.Error(), "rule b: ") {
		t.Errorf("error %v", err)
	}
}
