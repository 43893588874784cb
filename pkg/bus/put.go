package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"github.com/elbridge/elbridge/pkg/internal/pause"
)

const (
	// MaxEntries is how many entries a call of PutEvents takes (API model).
	MaxEntries = 10
	// MaxCallBytes is what all entries of a call may weigh together: "less than
	// 256 KB" in the API model, raised to 1 MB in January 2026. The smaller
	// reading of the smaller limit holds everywhere.
	MaxCallBytes = 256_000
)

// Codes of unsent entries that no service gave.
const (
	CodeTooLarge    = "EntryTooLarge"    // alone larger than MaxCallBytes: never called for
	CodeUnreachable = "Unreachable"      // no answer, or none that can be understood
	CodeInterrupted = "ContextCancelled" // the caller's context ended first
)

// PutAPI is what the publisher uses of the EventBridge client.
type PutAPI interface {
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Entry is one event to put. Its time is the moment of the observation.
type Entry struct {
	Source     string
	DetailType string
	Detail     []byte // JSON
	Resources  []string
	Time       time.Time
}

// Size is what the entry counts for, by the formula in the EventBridge guide.
func (e Entry) Size() int {
	n := len(e.Source) + len(e.DetailType) + len(e.Detail)
	if !e.Time.IsZero() {
		n += 14
	}
	for _, r := range e.Resources {
		n += len(r)
	}
	return n
}

// Unsent is an entry that was not accepted, and why.
type Unsent struct {
	Entry
	Index   int    // in the entries given to Put
	Code    string // EventBridge's, or one of the codes above
	Message string
}

// Retry says how Put deals with entries and calls that fail for now. Put is the
// only one that retries: the SDK's own retries are turned off.
type Retry struct {
	Attempts       int           // calls per chunk at most; 0 is 4, less than 0 is until the context ends
	AttemptTimeout time.Duration // of one call
	Base, Cap      time.Duration // wait before the second call, and at most; jittered down to a half
}

// defaultRetry suits a caller that has seconds, such as a function.
var defaultRetry = Retry{Attempts: 4, AttemptTimeout: 3 * time.Second, Base: 50 * time.Millisecond, Cap: time.Second}

// Publisher puts events on one bus.
type Publisher struct {
	api   PutAPI
	bus   string
	retry Retry
}

// NewPublisher returns a publisher for the bus of that name or ARN. Zero fields
// of retry take their defaults: 4 calls of at most 3 s, waits from 50 ms to 1 s.
func NewPublisher(api PutAPI, bus string, retry Retry) *Publisher {
	if retry.Attempts == 0 {
		retry.Attempts = defaultRetry.Attempts
	}
	if retry.AttemptTimeout <= 0 {
		retry.AttemptTimeout = defaultRetry.AttemptTimeout
	}
	if retry.Base <= 0 {
		retry.Base = defaultRetry.Base
	}
	if retry.Cap <= 0 {
		retry.Cap = defaultRetry.Cap
	}
	return &Publisher{api: api, bus: bus, retry: retry}
}

// Put sends all entries, in calls of at most MaxEntries and MaxCallBytes, and
// sends those again that failed for now. It returns the entries that were not
// accepted, each with the reason; err sums them up and is nil if there are none.
// An entry may arrive twice, as a call whose answer was lost is repeated.
func (p *Publisher) Put(ctx context.Context, entries []Entry) (unsent []Unsent, err error) {
	var chunk []pending
	size := 0
	flush := func() {
		if len(chunk) > 0 {
			unsent = append(unsent, p.putChunk(ctx, chunk)...)
		}
		chunk, size = nil, 0
	}
	for i, e := range entries {
		n := e.Size()
		if n > MaxCallBytes {
			unsent = append(unsent, Unsent{Entry: e, Index: i, Code: CodeTooLarge,
				Message: fmt.Sprintf("%d bytes: want at most %d", n, MaxCallBytes)})
			continue
		}
		if len(chunk) == MaxEntries || size+n > MaxCallBytes {
			flush()
		}
		chunk = append(chunk, pending{index: i, entry: e})
		size += n
	}
	flush()
	return unsent, p.summary(unsent, len(entries))
}

func (p *Publisher) summary(unsent []Unsent, all int) error {
	if len(unsent) == 0 {
		return nil
	}
	first := unsent[0]
	return fmt.Errorf("putting events on bus %s: %d of %d not sent, the first with %s: %s",
		p.bus, len(unsent), all, first.Code, first.Message)
}

// pending is an entry on its way, with the reason why the last call failed it.
type pending struct {
	index         int
	entry         Entry
	code, message string
}

func (q pending) unsent() Unsent {
	return Unsent{Entry: q.entry, Index: q.index, Code: q.code, Message: q.message}
}

// putChunk calls until every entry is accepted, refused for good or given up.
func (p *Publisher) putChunk(ctx context.Context, chunk []pending) (unsent []Unsent) {
	for attempt := 1; ; attempt++ {
		again, refused := p.call(ctx, chunk)
		for _, q := range refused {
			unsent = append(unsent, q.unsent())
		}
		if len(again) == 0 {
			return unsent
		}
		chunk = again
		if p.retry.Attempts > 0 && attempt >= p.retry.Attempts || pause.For(ctx, p.retry.delay(attempt)) != nil {
			for _, q := range chunk {
				unsent = append(unsent, q.unsent())
			}
			return unsent
		}
	}
}

// call makes one call and sorts what was not accepted.
func (p *Publisher) call(ctx context.Context, chunk []pending) (again, refused []pending) {
	attempt, cancel := context.WithTimeout(ctx, p.retry.AttemptTimeout)
	defer cancel()
	out, err := p.api.PutEvents(attempt, p.input(chunk), noRetries)
	switch {
	case err != nil:
		code, message := reason(err)
		if ctx.Err() != nil {
			code = CodeInterrupted
		}
		all := failed(chunk, code, message)
		if ctx.Err() == nil && retryable(err) {
			return all, nil
		}
		return nil, all
	case out.FailedEntryCount == 0: // always present, so only its value tells (P085)
		return nil, nil
	case len(out.Entries) != len(chunk):
		return failed(chunk, CodeUnreachable, fmt.Sprintf("%d results for %d entries", len(out.Entries), len(chunk))), nil
	}
	for i, result := range out.Entries {
		if result.ErrorCode == nil {
			continue
		}
		q := chunk[i]
		q.code, q.message = *result.ErrorCode, aws.ToString(result.ErrorMessage)
		if retryableEntry[q.code] {
			again = append(again, q)
		} else {
			refused = append(refused, q)
		}
	}
	return again, refused
}

// retryableEntry holds the codes of single entries that may pass later (API model).
var retryableEntry = map[string]bool{
	"InternalFailure":     true,
	"InternalException":   true,
	"ThrottlingException": true,
}

func (p *Publisher) input(chunk []pending) *eventbridge.PutEventsInput {
	in := &eventbridge.PutEventsInput{Entries: make([]types.PutEventsRequestEntry, len(chunk))}
	for i, q := range chunk {
		in.Entries[i] = types.PutEventsRequestEntry{
			EventBusName: aws.String(p.bus),
			Source:       aws.String(q.entry.Source),
			DetailType:   aws.String(q.entry.DetailType),
			Detail:       aws.String(string(q.entry.Detail)),
			Resources:    q.entry.Resources,
		}
		if !q.entry.Time.IsZero() {
			in.Entries[i].Time = aws.Time(q.entry.Time)
		}
	}
	return in
}

func failed(chunk []pending, code, message string) []pending {
	all := make([]pending, len(chunk))
	for i, q := range chunk {
		q.code, q.message = code, message
		all[i] = q
	}
	return all
}

// noRetries leaves retrying to putChunk, which alone sees failed entries.
func noRetries(o *eventbridge.Options) { o.Retryer = aws.NopRetryer{} }

// retryable reports whether a whole call may pass later. Whatever the service
// did not answer, credentials that could not be fetched included, may.
func retryable(err error) bool {
	api, answered := errors.AsType[smithy.APIError](err)
	if !answered {
		return true
	}
	return retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary ||
		api.ErrorFault() == smithy.FaultServer || expired[api.ErrorCode()]
}

// expired holds the codes of calls whose signature or credentials were too old:
// the next call signs anew.
var expired = map[string]bool{"ExpiredToken": true, "ExpiredTokenException": true, "RequestExpired": true, "RequestTimeTooSkewed": true}

func reason(err error) (code, message string) {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode(), api.ErrorMessage()
	}
	return CodeUnreachable, err.Error()
}

// delay doubles from Base to Cap, less a random half at most.
func (r Retry) delay(attempt int) time.Duration {
	d := r.Cap
	if shift := attempt - 1; shift < 30 && r.Base<<shift < r.Cap {
		d = r.Base << shift
	}
	return d - rand.N(d/2+1)
}
