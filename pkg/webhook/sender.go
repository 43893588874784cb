package webhook

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
)

// Publisher puts events on the bus and retries what may pass later until the
// context ends. *bus.Publisher is one.
type Publisher interface {
	Put(context.Context, []bus.Entry) ([]bus.Unsent, error)
}

const (
	maxInFlight = 8                // calls of PutEvents at a time
	patience    = time.Second / 4  // a call that takes longer holds nothing back
	maxAge      = 10 * time.Minute // of a hint: the registrar takes none that is older
)

// sender empties the queue. An idle sender sends at once; while a call is in
// flight, what arrives forms the next batch, which starts when the call ends,
// when it is full, or when the call takes longer than patience. One goroutine
// owns all of this; each call has its own, which ends with the call.
type sender struct {
	publisher Publisher
	queue     *queue
	ledger    *ledger
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time
	// dropReport turns counted drops into the entry that tells of them.
	dropReport func(causes map[string]uint64, since time.Time) bus.Entry

	sent atomic.Uint64 // pod events, since the start

	mu     sync.Mutex
	notice []bus.Entry // events about the webhook itself, at most one a detail-type

	inFlight  int
	lastStart time.Time
	reporting bool // a drop report is in flight
	answering bool // the last call succeeded
	done      chan outcome
}

// batch is what one call sends: pod events, and events about the webhook.
type batch struct {
	items   []item
	notices []bus.Entry
	told    map[string]uint64 // drops that the last notice tells of
	toldAt  time.Time
}

type outcome struct {
	batch  batch
	unsent []bus.Unsent
	err    error
	took   time.Duration
}

// tell sends an event about the webhook itself. One that still waits is replaced.
func (s *sender) tell(e bus.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.notice {
		if s.notice[i].DetailType == e.DetailType {
			s.notice[i] = e
			return
		}
	}
	s.notice = append(s.notice, e)
	select {
	case s.queue.ready <- struct{}{}:
	default:
	}
}

// run sends until ctx ends, then flushes for at most grace and drops the rest.
func (s *sender) run(ctx context.Context, grace time.Duration) {
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var impatient <-chan time.Time
	for ctx.Err() == nil {
		impatient = s.start(calls, false)
		select {
		case <-s.queue.ready:
		case o := <-s.done:
			s.finish(o, false)
		case <-impatient:
		case <-ctx.Done():
		}
	}
	s.flush(calls, cancel, grace)
}

func (s *sender) flush(calls context.Context, cancel func(), grace time.Duration) {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	for {
		if calls.Err() == nil {
			s.start(calls, true)
		}
		if s.inFlight == 0 {
			break
		}
		select {
		case o := <-s.done:
			s.finish(o, true)
		case <-deadline.C:
			cancel() // every call ends now, what it did not send counts as dropped
		}
	}
	s.queue.drain()
}

// start starts as many calls as may run now. It returns a channel that fires
// when one more may, if something waits for that.
func (s *sender) start(ctx context.Context, hurry bool) <-chan time.Time {
	for s.inFlight < maxInFlight {
		waiting := s.waiting()
		if waiting == 0 {
			return nil
		}
		since := s.now().Sub(s.lastStart)
		if s.inFlight > 0 && waiting < bus.MaxEntries && since < patience && !hurry {
			return time.After(patience - since)
		}
		b := s.take()
		if b.empty() {
			continue // all of it had expired
		}
		s.inFlight++
		s.lastStart = s.now()
		go func() { s.done <- s.put(ctx, b) }()
	}
	return nil
}

func (s *sender) waiting() int {
	n, _ := s.queue.depth()
	s.mu.Lock()
	defer s.mu.Unlock()
	n += len(s.notice)
	if causes, _ := s.ledger.pending(); causes != nil && s.answering && !s.reporting {
		n++
	}
	return n
}

func (s *sender) take() (b batch) {
	s.mu.Lock()
	b.notices, s.notice = s.notice, nil
	s.mu.Unlock()
	if s.answering && !s.reporting {
		if causes, since := s.ledger.pending(); causes != nil {
			b.told, b.toldAt = causes, s.now()
			b.notices = append(b.notices, s.dropReport(causes, since))
			s.reporting = true
		}
	}
	size := 0
	for _, e := range b.notices {
		size += e.Size()
	}
	b.items = s.queue.take(bus.MaxEntries-len(b.notices), bus.MaxCallBytes-size, s.now().Add(-maxAge))
	return b
}

func (b batch) empty() bool { return len(b.items)+len(b.notices) == 0 }

func (s *sender) put(ctx context.Context, b batch) outcome {
	ctx, cancel := context.WithTimeout(ctx, maxAge)
	defer cancel()
	started := s.now()
	unsent, err := s.publisher.Put(ctx, append(entries(b.items), b.notices...))
	return outcome{batch: b, unsent: unsent, err: err, took: s.now().Sub(started)}
}

func (s *sender) finish(o outcome, stopping bool) {
	s.inFlight--
	s.answering = len(o.unsent) < len(o.batch.items)+len(o.batch.notices)
	result := "sent"
	if o.err != nil {
		result = "unsent"
		s.log.Warn("events not sent", "err", o.err, "unsent", len(o.unsent))
	}
	s.metrics.putTime.WithLabelValues(result).Observe(o.took.Seconds())

	told := o.batch.told
	sent := len(o.batch.items)
	for _, u := range o.unsent {
		if u.Index < len(o.batch.items) {
			sent--
			cause := dropCause(u, stopping)
			s.ledger.add(cause, s.now())
			s.metrics.dropped.WithLabelValues(cause).Inc()
		} else if u.Index == len(o.batch.items)+len(o.batch.notices)-1 {
			told = nil // the report is the last entry; it will be made again
		}
	}
	s.sent.Add(uint64(sent))
	s.metrics.sent.Add(float64(sent))
	if o.batch.told != nil {
		s.reporting = false
		if told != nil {
			s.ledger.told(told, o.batch.toldAt)
		}
	}
}
