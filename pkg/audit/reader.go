package audit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"
)

// bounds are what one reading may cost. A page may be empty and have another one
// behind it, so that only a number of pages bounds their number.
type bounds struct{ pages, events, bytes int }

// most is two minutes of pages, at the five a second that every account has at
// least (quotas), as many events as a full page has, and memory that a function has.
var most = bounds{pages: 600, events: 10_000, bytes: 64 << 20}

// firstDay is the earliest time from which the log can be read backwards (API
// reference). elbridge is younger.
var firstDay = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// What a reading may meet. The errors say what to do.
var (
	ErrNoLog      = errors.New("no audit log")
	ErrDenied     = errors.New("not allowed to read the audit log")
	ErrThrottled  = errors.New("the audit log is read too often")
	ErrIncomplete = errors.New("more of the audit log than is read at once")
)

// API is what the reader uses of the CloudWatch Logs client.
type API interface {
	FilterLogEvents(context.Context, *cloudwatchlogs.FilterLogEventsInput, ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error)
}

// Reader reads the events in one log group.
type Reader struct {
	api     API
	group   string
	most    bounds
	skipped atomic.Int64
}

// New returns a reader of the log group of that name.
func New(api API, logGroup string) *Reader { return &Reader{api: api, group: logGroup, most: most} }

// Skipped is how many lines that are no events the reader has met so far.
func (r *Reader) Skipped() int64 { return r.skipped.Load() }

// Events returns the events that a query asks for, oldest first and each once,
// however often it was delivered. With a limit it is the newest ones. If a page
// can't be read there are no events; with ErrIncomplete they are the newest of
// those that were asked for.
func (r *Reader) Events(ctx context.Context, q Query) ([]Event, error) {
	q, err := q.check()
	if err != nil {
		return nil, err
	}
	found := &finding{query: q, most: r.most, seen: map[string]bool{}}
	in := r.input(q)
	for range r.most.pages {
		out, err := r.api.FilterLogEvents(ctx, in)
		if err != nil {
			return nil, r.fault(err)
		}
		r.skipped.Add(found.take(out.Events))
		if found.full || found.limited() || aws.ToString(out.NextToken) == "" {
			return found.result(r.group)
		}
		in.NextToken = out.NextToken
	}
	found.full = true
	return found.result(r.group)
}

func (r *Reader) input(q Query) *cloudwatchlogs.FilterLogEventsInput {
	from := q.From.Truncate(precision) // events have no more
	if from.Before(firstDay) {
		from = firstDay
	}
	in := &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &r.group, StartFromHead: aws.Bool(false), StartTime: aws.Int64(from.UnixMilli())}
	if !q.To.IsZero() {
		in.EndTime = aws.Int64(max(q.To.UnixMilli(), from.UnixMilli()))
	}
	if p := q.pattern(); p != "" {
		in.FilterPattern = &p
	}
	return in
}

// finding is what a reading has found so far, the newest first.
type finding struct {
	query  Query
	most   bounds
	seen   map[string]bool
	events []Event
	bytes  int
	full   bool
}

// take keeps what was asked for and counts what is no event.
func (f *finding) take(lines []types.FilteredLogEvent) (skipped int64) {
	for _, line := range lines {
		e, ok := decode(aws.ToString(line.Message))
		switch {
		case !ok:
			skipped++
			continue
		case f.seen[e.ID] || !f.query.keeps(e):
			continue
		}
		if f.full = f.enough(); f.full {
			return skipped
		}
		f.seen[e.ID] = true
		f.events = append(f.events, e)
		f.bytes += len(aws.ToString(line.Message))
	}
	return skipped
}

// enough says whether there is no room for another event.
func (f *finding) enough() bool {
	return f.limited() || len(f.events) >= f.most.events || f.bytes >= f.most.bytes
}

// limited says whether as many were found as were asked for.
func (f *finding) limited() bool { return f.query.Limit > 0 && len(f.events) >= f.query.Limit }

func (f *finding) result(group string) ([]Event, error) {
	sortByTime(f.events)
	if f.full && !f.limited() {
		return f.events, fmt.Errorf("%w: %d events of %s in %d pages or %d MiB at most: ask for a shorter time, a target group or an address",
			ErrIncomplete, f.most.events, group, f.most.pages, f.most.bytes>>20)
	}
	return f.events, nil
}

// fault says what an error of the API means here.
func (r *Reader) fault(err error) error {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return fmt.Errorf("reading log group %s: %w", r.group, err)
	}
	switch answer.ErrorCode() {
	case "ResourceNotFoundException":
		return fmt.Errorf("%w: log group %s does not exist in this account and region: make it, and a rule on the bus that feeds it (docs/history.md): %w", ErrNoLog, r.group, err)
	case "AccessDeniedException", "AccessDenied", "UnrecognizedClientException":
		return fmt.Errorf("%w: allow logs:FilterLogEvents on log group %s: %w", ErrDenied, r.group, err)
	case "ThrottlingException", "Throttling", "TooManyRequestsException":
		return fmt.Errorf("%w: log group %s: try again in a moment: %w", ErrThrottled, r.group, err)
	}
	return fmt.Errorf("reading log group %s: %w", r.group, err)
}
