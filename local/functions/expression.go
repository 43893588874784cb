package functions

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// An expression tells when a rule fires next, strictly after a time.
type expression interface {
	Next(after time.Time) time.Time
}

// parseExpression reads a ScheduleExpression of EventBridge: rate(5 minutes) or
// cron(0/5 8-18 ? * MON-FRI *). Of cron's special forms L, W and # and of years
// other than * it knows none: it says so.
func parseExpression(text string) (expression, error) {
	switch {
	case strings.HasPrefix(text, "rate(") && strings.HasSuffix(text, ")"):
		return parseRate(text)
	case strings.HasPrefix(text, "cron(") && strings.HasSuffix(text, ")"):
		return parseCron(text)
	}
	return nil, fmt.Errorf("schedule %q: want rate(N minutes|hours|days) or cron(MINUTES HOURS DAY-OF-MONTH MONTH DAY-OF-WEEK YEAR)", text)
}

type every time.Duration

func (e every) Next(after time.Time) time.Time { return after.Add(time.Duration(e)) }

var rateForm = regexp.MustCompile(`^rate\(([1-9][0-9]{0,4}) (minute|hour|day)(s?)\)$`)

func parseRate(text string) (expression, error) {
	f := rateForm.FindStringSubmatch(text)
	if f == nil || (f[1] == "1") != (f[3] == "") {
		return nil, fmt.Errorf("schedule %q: want rate(1 minute), rate(2 minutes), hours or days alike", text)
	}
	n, _ := strconv.Atoi(f[1]) // digits, as matched
	unit := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[f[2]]
	return every(time.Duration(n) * unit), nil
}

func parseCron(text string) (expression, error) {
	f := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(text, "cron("), ")"))
	if len(f) != 6 {
		return nil, fmt.Errorf("schedule %q: want six fields, found %d", text, len(f))
	}
	if (f[2] == "?") == (f[4] == "?") {
		return nil, fmt.Errorf("schedule %q: want ? in either day-of-month or day-of-week", text)
	}
	if f[5] != "*" {
		return nil, fmt.Errorf("schedule %q: year %q: only * is known here", text, f[5])
	}
	days, err := weekdays(f[4])
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", text, err)
	}
	s, err := cron.ParseStandard(strings.Join([]string{"CRON_TZ=UTC", f[0], f[1], f[2], f[3], days}, " "))
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", text, err)
	}
	return s, nil
}

var dayNumber = regexp.MustCompile(`[0-9]+`)

// weekdays turns EventBridge's numbers, 1 to 7 from Sunday, into cron's, 0 to 6.
// The number after a slash is a step and stays.
func weekdays(field string) (string, error) {
	days, step, hasStep := strings.Cut(field, "/")
	var bad error
	days = dayNumber.ReplaceAllStringFunc(days, func(s string) string {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 7 {
			bad = fmt.Errorf("day-of-week %s: want 1 (SUN) to 7 (SAT)", s)
		}
		return strconv.Itoa(n - 1)
	})
	if hasStep {
		days += "/" + step
	}
	return days, bad
}
