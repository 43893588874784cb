package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/pkg/internal/pause"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Deps are what a webhook works with.
type Deps struct {
	Version   string
	Publisher Publisher
	Bus       BusLookup
	Pods      PodReader
	Log       *slog.Logger
	Now       func() time.Time
}

// Webhook is the program: two listeners, a queue and its sender. Run owns every
// goroutine.
type Webhook struct {
	config      Config
	deps        Deps
	draining    atomic.Bool
	noBus       atomic.Bool
	metrics     *metrics
	queue       *queue
	sender      *sender
	evictor     *evictor
	handler     *handler
	reporter    *reporter
	certificate *certificate
	admit, ops  net.Listener
	wait        func(context.Context, time.Duration) error // for the end of the drain time
}

// New builds a webhook and opens its listeners. Its error lists every fault.
func New(c Config, d Deps) (*Webhook, error) {
	w := &Webhook{config: c, deps: d, metrics: newMetrics(d.Version), wait: pause.For}
	who := podevent.Webhook{Version: d.Version, Instance: c.Instance}
	losses := &ledger{}
	w.queue = newQueue(c.QueueEvents, c.QueueBytes, func(cause string) {
		losses.add(cause, d.Now())
		w.metrics.dropped.WithLabelValues(cause).Inc()
	}, w.metrics.joined.Inc)
	w.sender = &sender{
		publisher: d.Publisher, queue: w.queue, ledger: losses, metrics: w.metrics, log: d.Log, now: d.Now,
		done: make(chan outcome), answering: true,
	}
	w.handler = &handler{
		cluster: c.Cluster, webhook: who, allow: c.Annotations, queue: w.queue, ledger: losses, metrics: w.metrics,
		log: d.Log, now: d.Now, bodies: newBodies(), seed: maphash.MakeSeed(), draining: &w.draining,
	}
	w.evictor = newEvictor(d.Pods, w.handler.evicted, func(result string) { w.metrics.evictions.WithLabelValues(result).Inc() }, d.Log)
	w.handler.evictor = w.evictor

	var certErr, admitErr, opsErr error
	w.certificate, certErr = loadCertificate(c.CertFile, c.KeyFile, d.Now, func(err error) {
		w.metrics.certErrors.Inc()
		d.Log.Error("certificate not reloaded, serving the last good one", "err", err)
	})
	w.reporter = &reporter{
		cluster: c.Cluster, webhook: who, started: d.Now(), every: c.Heartbeat, now: d.Now, log: d.Log,
		sender: w.sender, queue: w.queue, ledger: losses, metrics: w.metrics, handler: w.handler, certificate: w.certificate, noBus: &w.noBus,
	}
	w.sender.dropReport = w.reporter.dropped
	w.gauges()
	w.admit, admitErr = listen("--listen", c.Listen)
	w.ops, opsErr = listen("--metrics-listen", c.MetricsListen)
	if err := errors.Join(certErr, admitErr, opsErr); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}

func (w *Webhook) close() {
	for _, l := range []net.Listener{w.admit, w.ops} {
		if l != nil {
			_ = l.Close()
		}
	}
	w.evictor.stop()
}

func (w *Webhook) gauges() {
	w.metrics.gauge(MetricQueueDepth, "Pod events not yet sent.", func() float64 { n, _ := w.queue.depth(); return float64(n) })
	w.metrics.gauge(MetricQueueBytes, "Bytes they are accounted with.", func() float64 { _, n := w.queue.depth(); return float64(n) })
	w.metrics.gauge(MetricEvictionsWaiting, "Evicted pods that are being watched.", func() float64 { return float64(w.evictor.waiting()) })
	w.metrics.gauge(MetricCertificateNotAfter, "When the serving certificate expires, seconds since 1970.", func() float64 {
		return float64(w.certificate.notAfter().Unix())
	})
}

// Address is where reviews are taken.
func (w *Webhook) Address() net.Addr { return w.admit.Addr() }

// OpsAddress is where metrics and probes are served.
func (w *Webhook) OpsAddress() net.Addr { return w.ops.Addr() }

// Run serves until ctx ends, then becomes unready, goes on answering for the
// drain time with "Connection: close", shuts down and sends what waits.
func (w *Webhook) Run(ctx context.Context) error {
	admit, ops := newServer(admitMux(w.handler), w.deps.Log), newServer(opsMux(w.metrics.handler(), &w.draining, &w.noBus), w.deps.Log)
	failed := make(chan error, 2)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var workers, sending sync.WaitGroup
	sendCtx, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	sending.Go(func() { w.sender.run(sendCtx, w.config.Flush) })
	workers.Go(func() { w.reporter.run(background) })
	workers.Go(func() { w.reporter.checkBus(background, w.deps.Bus) })
	workers.Go(func() { failed <- serve(admit, tls.NewListener(w.admit, w.certificate.config())) })
	workers.Go(func() { failed <- serve(ops, w.ops) })
	w.deps.Log.Info("serving", "reviews", w.admit.Addr().String(), "metrics", w.ops.Addr().String(), "bus", w.config.Bus)

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		w.draining.Store(true)
		w.deps.Log.Info("stopping", "drain", w.config.Drain.String())
		_ = w.wait(background, w.config.Drain) // cut short or not, it is over
	}
	w.draining.Store(true)
	cancel()
	stop(sendCtx, admit)
	w.evictor.stop()
	stopSending()
	sending.Wait()
	stop(context.WithoutCancel(ctx), ops)
	workers.Wait()
	return err
}
