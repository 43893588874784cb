package functions

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

const scheduleARN = "arn:aws:events:eu-west-1:111122223333:rule/probe"

// book is a bus's rules; it notes what fires, and when, relative to its start.
type book struct {
	rules map[string]string
	start time.Time
	fired []string // NAME@AFTER
	err   error
}

func (b *book) Rules() map[string]string { return b.rules }

func (b *book) Fire(arn string, at time.Time) error {
	name := arn[strings.LastIndex(arn, "/")+1:]
	b.fired = append(b.fired, fmt.Sprintf("%s@%s", name, at.Sub(b.start)))
	return b.err
}

// keepTime runs a scheduler on a clock of its own, which stands still after
// took; before each wait, step is asked.
func keepTime(t *testing.T, b *book, scale float64, took time.Duration, step func(passed time.Duration) (extra time.Duration)) string {
	t.Helper()
	c := &clock{now: b.start}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &Scheduler{Rules: b.Rules, Fire: b.Fire, Scale: scale, Now: c.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		if step != nil {
			d += step(c.Now().Sub(b.start))
		}
		if c.Now().Add(d).After(b.start.Add(took)) {
			cancel()
			return ctx.Err()
		}
		return c.sleep(ctx, d)
	}}
	s.Run(ctx)
	return strings.Join(b.fired, " ")
}

func newBook(expression string) *book {
	return &book{rules: map[string]string{scheduleARN: expression}, start: time.Date(2026, 3, 4, 10, 17, 30, 0, time.UTC)}
}

func TestSchedulerFires(t *testing.T) {
	tests := map[string]struct {
		expression string
		scale      float64
		took       time.Duration
		want       string
	}{
		"in real time":  {"rate(1 minute)", 1, 3*time.Minute + time.Second, "probe@1m0s probe@2m0s probe@3m0s"},
		"60 times":      {"rate(1 minute)", 60, 3*time.Second + time.Millisecond, "probe@1m0s probe@2m0s probe@3m0s"},
		"very fast":     {"rate(1 hour)", 3600, 2*time.Second + time.Millisecond, "probe@1h0m0s probe@2h0m0s"},
		"not yet":       {"rate(1 minute)", 1, 59 * time.Second, ""},
		"cron":          {"cron(0/10 * * * ? *)", 1, 15 * time.Minute, "probe@2m30s probe@12m30s"},
		"never":         {"cron(0 0 30 2 ? *)", 1, time.Minute, ""},
		"no expression": {"rate(1 minutes)", 1, 5 * time.Minute, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := keepTime(t, newBook(tt.expression), tt.scale, tt.took, nil); got != tt.want {
				t.Errorf("fired %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSchedulerGoesOnAfterAnError(t *testing.T) {
	b := newBook("rate(1 minute)")
	b.err = errors.New("no such rule")
	if got, want := keepTime(t, b, 1, 2*time.Minute, nil), "probe@1m0s probe@2m0s"; got != want {
		t.Errorf("fired %s, want %s", got, want)
	}
}

func TestSchedulerLeavesOutMissedFirings(t *testing.T) {
	slept := false
	got := keepTime(t, newBook("rate(1 minute)"), 1, 13*time.Minute, func(passed time.Duration) time.Duration {
		if slept || passed < 90*time.Second {
			return 0
		}
		slept = true
		return 10 * time.Minute // the machine sleeps
	})
	if want := "probe@1m0s probe@2m0s probe@12m0s probe@13m0s"; got != want {
		t.Errorf("fired %s, want %s", got, want)
	}
}

func TestSchedulerFollowsTheRules(t *testing.T) {
	b := newBook("rate(1 minute)")
	got := keepTime(t, b, 1, 10*time.Minute, func(passed time.Duration) time.Duration {
		switch passed {
		case 90 * time.Second: // seen a second later
			b.rules = map[string]string{scheduleARN: "rate(2 minutes)", "arn/other": "rate(3 minutes)"}
		case 6 * time.Minute:
			b.rules = map[string]string{"arn/other": "rate(3 minutes)"}
		case 8 * time.Minute:
			b.rules = nil
		}
		return 0
	})
	if want := "probe@1m0s probe@3m31s other@4m31s probe@5m31s other@7m31s"; got != want {
		t.Errorf("fired %s, want %s", got, want)
	}
}
