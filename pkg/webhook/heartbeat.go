package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/internal/pause"
	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	busRetry   = time.Second      // first wait after the bus could not be looked at, doubled up to
	busRetryTo = time.Minute      // this
	busAgain   = 10 * time.Minute // between looks at a bus that was found
	busTimeout = 10 * time.Second // of one look
)

// BusLookup returns the ARN of the bus, or an error that says what to do:
// bus.ErrNoBus, bus.ErrDenied, or anything that may pass later.
type BusLookup func(context.Context) (arn string, err error)

// reporter puts the events about the webhook itself.
type reporter struct {
	cluster     string
	webhook     podevent.Webhook
	started     time.Time
	every       time.Duration
	now         func() time.Time
	log         *slog.Logger
	sender      *sender
	queue       *queue
	ledger      *ledger
	metrics     *metrics
	handler     *handler
	certificate *certificate
	noBus       *atomic.Bool // there is no such bus, and there never was one
}

// run puts a heartbeat now and then, so that silence can raise an alarm.
func (r *reporter) run(ctx context.Context) {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.sender.tell(r.heartbeat())
		case <-ctx.Done():
			return
		}
	}
}

// checkBus looks whether the bus exists, as PutEvents to one that does not looks
// like success (P083), and puts "Webhook Started" once it is known, or once it
// is known that this can't be known. Nothing waits for it: without AWS the
// webhook serves, is ready, and says what is wrong in log and metric (I11). Only
// a bus that is known not to exist, and never was seen, makes it unready.
func (r *reporter) checkBus(ctx context.Context, look BusLookup) {
	told, seen := false, false
	for again := busRetry; ; {
		attempt, cancel := context.WithTimeout(ctx, busTimeout)
		arn, err := look(attempt)
		cancel()
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			r.metrics.busFound(true)
			seen = true
			r.noBus.Store(false)
			again = busAgain
		case errors.Is(err, bus.ErrNoBus):
			r.metrics.busFound(false)
			r.noBus.Store(!seen)
			r.log.Error("pod events are lost", "err", err)
		default:
			r.log.Warn("bus not checked", "err", err)
		}
		if !told && (err == nil || errors.Is(err, bus.ErrDenied)) {
			told = true
			r.sender.tell(r.start(arn))
		}
		if pause.For(ctx, again) != nil {
			return
		}
		again = min(2*again, busRetryTo)
	}
}

func (r *reporter) start(arn string) bus.Entry {
	at := stamp(r.now())
	return entry(podevent.DetailTypeWebhookStarted, at, podevent.WebhookStarted{
		Schema: podevent.Schema, Cluster: r.cluster, Webhook: r.webhook, At: at, Bus: arn,
	})
}

func (r *reporter) heartbeat() bus.Entry {
	at := stamp(r.now())
	depth, bytes := r.queue.depth()
	beat := podevent.WebhookHeartbeat{
		Schema: podevent.Schema, Cluster: r.cluster, Webhook: r.webhook, At: at, StartedAt: stamp(r.started),
		QueueDepth: depth, QueueBytes: bytes,
		Reviews: r.handler.reviews.Load(), Sent: r.sender.sent.Load(), Dropped: r.ledger.dropped(),
	}
	if end := r.certificate.notAfter(); !end.IsZero() {
		end = end.UTC()
		beat.CertificateNotAfter = &end
	}
	return entry(podevent.DetailTypeWebhookHeartbeat, at, beat)
}

// dropped tells how many pod events were lost, and why (I12).
func (r *reporter) dropped(causes map[string]uint64, since time.Time) bus.Entry {
	at := stamp(r.now())
	var n uint64
	for _, c := range causes {
		n += c
	}
	return entry(podevent.DetailTypeEventsDropped, at, podevent.EventsDropped{
		Schema: podevent.Schema, Cluster: r.cluster, Webhook: r.webhook, At: at,
		Since: stamp(since), Dropped: n, Causes: causes,
	})
}

func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func entry(detailType string, at time.Time, detail any) bus.Entry {
	b, err := json.Marshal(detail)
	if err != nil {
		b = []byte(`{}`) // these values have nothing that can fail
	}
	return bus.Entry{Source: podevent.Source, DetailType: detailType, Detail: b, Time: at}
}
