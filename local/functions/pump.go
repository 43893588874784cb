package functions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/time/rate"
)

const (
	startPollers  = 5 // batches at a time that Lambda begins with
	keepPollers   = 2 // that remain however often the function fails
	pollersPerMin = 300
	longPoll      = 20 * time.Second // SQS's longest wait
	batchSize     = 10               // the mapping's BatchSize, with a window of 0
	retryFirst    = 100 * time.Millisecond
	retryMost     = 5 * time.Second
)

// SQS is what a pump calls; *sqs.Client is one.
type SQS interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// A Pump feeds one function from one queue as an SQS event source mapping does
// (batches of up to 10, no batching window, ReportBatchItemFailures): it long
// polls, invokes at once what it received, deletes what succeeded and leaves the
// rest to its visibility time-out. Several batches run at a time: 5 at first,
// more while all of them are busy, fewer while the function fails.
type Pump struct {
	SQS      SQS
	Invoker  Invoker
	QueueURL string
	Function string
	// Timeout is the function's; a queue whose visibility time-out is shorter is
	// refused, as Lambda does. 0 skips the check.
	Timeout        time.Duration
	MaxConcurrency int // batches at a time, at most; 0 is 10
	Log            *slog.Logger

	queueARN   string
	region     string
	visibility time.Duration
	growth     *rate.Limiter

	mu      sync.Mutex
	stats   PumpStats
	pollers sync.WaitGroup
}

// PumpStats counts what a pump did since Run.
type PumpStats struct {
	Received      int // messages, repeated ones each time
	Deleted       int
	Failed        int // messages left in the queue
	Batches       int
	BatchErrors   int // batches that failed as a whole
	PollErrors    int
	DeleteErrors  int
	Pollers       int // now
	Concurrent    int // batches now
	MaxConcurrent int
}

// Stats returns the counts so far.
func (p *Pump) Stats() PumpStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Run pumps until ctx ends and then lets running batches finish, which takes as
// long as the function's time-out at most. It returns an error if the queue does
// not exist or does not fit the function. Run may be called once.
func (p *Pump) Run(ctx context.Context) error {
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	if p.MaxConcurrency <= 0 {
		p.MaxConcurrency = 10
	}
	p.growth = rate.NewLimiter(rate.Limit(pollersPerMin)/60, startPollers)
	if err := p.readQueue(ctx); err != nil {
		return fmt.Errorf("feeding %s from %s: %w", p.Function, p.QueueURL, err)
	}
	for range min(startPollers, p.MaxConcurrency) {
		p.addPoller(ctx)
	}
	<-ctx.Done()
	p.pollers.Wait()
	return nil
}

func (p *Pump) readQueue(ctx context.Context) error {
	out, err := p.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &p.QueueURL,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn, types.QueueAttributeNameVisibilityTimeout},
	})
	if err != nil {
		return fmt.Errorf("reading the queue's attributes: %w", err)
	}
	p.queueARN = out.Attributes[string(types.QueueAttributeNameQueueArn)]
	arn := strings.Split(p.queueARN, ":") // arn:aws:sqs:REGION:ACCOUNT:NAME
	if len(arn) != 6 {
		return fmt.Errorf("queue ARN %q: want arn:aws:sqs:REGION:ACCOUNT:NAME", p.queueARN)
	}
	p.region = arn[3]
	seconds, err := strconv.Atoi(out.Attributes[string(types.QueueAttributeNameVisibilityTimeout)])
	if err != nil {
		return fmt.Errorf("queue's VisibilityTimeout: %w", err)
	}
	p.visibility = time.Duration(seconds) * time.Second
	if p.visibility < p.Timeout {
		return fmt.Errorf("visibility time-out %s: want at least the function's time-out, %s, better six times that", p.visibility, p.Timeout)
	}
	return nil
}

// addPoller starts one more poller unless there are enough or ctx has ended.
func (p *Pump) addPoller(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stats.Pollers >= p.MaxConcurrency || ctx.Err() != nil {
		return
	}
	p.stats.Pollers++
	p.pollers.Go(func() { p.poll(ctx) })
}

// poll receives and handles until ctx ends or this poller is one too many.
func (p *Pump) poll(ctx context.Context) {
	retry := backoff{first: retryFirst, most: retryMost}
	for {
		received, err := p.receive(ctx)
		switch {
		case ctx.Err() != nil:
			p.count(func(s *PumpStats) { s.Pollers-- })
			return
		case err != nil:
			p.count(func(s *PumpStats) { s.PollErrors++ })
			p.Log.Warn("queue not read", "queue", p.QueueURL, "err", err)
			_ = sleep(ctx, retry.next()) // the loop sees the end of ctx
			continue
		}
		retry.reset()
		if len(received) == 0 {
			if p.leave(startPollers) {
				return
			}
			continue
		}
		if ok := p.handle(ctx, received); !ok && p.leave(keepPollers) {
			return
		}
	}
}

// leave takes this poller off if more than keep are there.
func (p *Pump) leave(keep int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stats.Pollers <= keep {
		return false
	}
	p.stats.Pollers--
	return true
}

func (p *Pump) receive(ctx context.Context) ([]types.Message, error) {
	out, err := p.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &p.QueueURL,
		MaxNumberOfMessages:         batchSize,
		WaitTimeSeconds:             int32(longPoll / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// handle invokes the function with what was received and deletes what succeeded.
// It tells whether no batch failed as a whole. Once received, messages are
// handled to the end, also when ctx ends meanwhile.
func (p *Pump) handle(ctx context.Context, received []types.Message) bool {
	until := time.Now().Add(p.visibility)
	p.begin(ctx, len(received))
	defer p.count(func(s *PumpStats) { s.Concurrent-- })
	all := true
	for _, b := range makeBatches(p.queueARN, p.region, received, maxSyncPayload) {
		succeeded, err := p.invoke(ctx, b, until)
		p.count(func(s *PumpStats) {
			s.Batches++
			s.Failed += len(b.messages) - len(succeeded)
			if err != nil {
				s.BatchErrors++
			}
		})
		if err != nil {
			all = false
			p.Log.Warn("batch failed", "function", p.Function, "messages", len(b.messages), "err", err)
		}
		p.delete(context.WithoutCancel(ctx), succeeded)
	}
	return all
}

// begin counts a batch and, if now all pollers are busy, adds one.
func (p *Pump) begin(ctx context.Context, messages int) {
	p.mu.Lock()
	p.stats.Received += messages
	p.stats.Concurrent++
	p.stats.MaxConcurrent = max(p.stats.MaxConcurrent, p.stats.Concurrent)
	busy := p.stats.Concurrent >= p.stats.Pollers && p.stats.Pollers < p.MaxConcurrency
	p.mu.Unlock()
	if busy && p.growth.Allow() {
		p.addPoller(ctx)
	}
}

// invoke returns the messages that succeeded. While the function is throttled
// the batch is tried again, until its messages become visible to others.
func (p *Pump) invoke(ctx context.Context, b batch, until time.Time) ([]types.Message, error) {
	retry := backoff{first: retryFirst, most: retryMost}
	for {
		result, err := p.Invoker.Invoke(context.WithoutCancel(ctx), p.Function, b.payload)
		if errors.Is(err, ErrThrottled) {
			wait := retry.next()
			if time.Now().Add(wait).After(until) {
				return nil, err
			}
			if sleep(ctx, wait) != nil {
				return nil, err // they come back to whoever polls next
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if result.FunctionError != "" {
			return nil, fmt.Errorf("function error %s: %s", result.ErrorType, result.ErrorMessage)
		}
		return split(b, result.Payload)
	}
}

func split(b batch, answer []byte) (succeeded []types.Message, err error) {
	ids := make(map[string]bool, len(b.messages))
	for _, m := range b.messages {
		ids[deref(m.MessageId)] = true
	}
	failed, err := failedIDs(answer, ids)
	if err != nil {
		return nil, err
	}
	for _, m := range b.messages {
		if !failed[deref(m.MessageId)] {
			succeeded = append(succeeded, m)
		}
	}
	return succeeded, nil
}

// delete takes messages from the queue. One that stays comes again: delivery is
// at least once, and the function has to bear it.
func (p *Pump) delete(ctx context.Context, messages []types.Message) {
	if len(messages) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, retryMost)
	defer cancel()
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
	}
	out, err := p.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &p.QueueURL, Entries: entries})
	kept := len(messages)
	if err == nil {
		kept = len(out.Failed)
	}
	if kept > 0 {
		p.Log.Warn("messages not deleted", "queue", p.QueueURL, "messages", kept, "err", err)
	}
	p.count(func(s *PumpStats) {
		s.Deleted += len(messages) - kept
		s.DeleteErrors += kept
	})
}

func (p *Pump) count(change func(*PumpStats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}

// backoff doubles from first to most, with jitter of one half.
type backoff struct{ first, most, now time.Duration }

func (b *backoff) next() time.Duration {
	b.now = min(max(b.first, 2*b.now), b.most)
	return b.now/2 + rand.N(b.now/2+1)
}

func (b *backoff) reset() { b.now = 0 }
