package webhook

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Names of the metrics. Alarms and dashboards use the same constants.
const (
	MetricReviewSeconds       = "elbridge_admission_review_seconds"
	MetricReviews             = "elbridge_admission_reviews_total"
	MetricPodEvents           = "elbridge_pod_events_total"
	MetricPodEventsSent       = "elbridge_pod_events_sent_total"
	MetricPodEventsJoined     = "elbridge_pod_events_joined_total"
	MetricPodEventsDropped    = "elbridge_pod_events_dropped_total"
	MetricQueueDepth          = "elbridge_queue_depth"
	MetricQueueBytes          = "elbridge_queue_bytes"
	MetricPutEventsSeconds    = "elbridge_put_events_seconds"
	MetricEvictions           = "elbridge_evictions_total"
	MetricEvictionsWaiting    = "elbridge_evictions_waiting"
	MetricBusExists           = "elbridge_bus_exists"
	MetricCertificateNotAfter = "elbridge_certificate_not_after_timestamp_seconds"
	MetricCertificateErrors   = "elbridge_certificate_reload_errors_total"
	MetricBuildInfo           = "elbridge_webhook_build_info"
)

// Results of reviews, a closed set. All of them were answered "allowed".
const (
	resultEvent     = "event"     // made at least one pod event
	resultNone      = "none"      // changed nothing that a claim depends on
	resultEviction  = "eviction"  // the pod is read until the eviction shows
	resultDryRun    = "dry_run"   // nothing is sent
	resultForeign   = "foreign"   // not about pods, or not what was subscribed to
	resultMalformed = "malformed" // not understood
	resultOversized = "oversized" // not read
	resultBusy      = "busy"      // not read for want of memory or time
)

// metrics are the webhook's own registry: no global one is touched.
type metrics struct {
	registry     *prometheus.Registry
	reviewTime   prometheus.Histogram
	reviews      *prometheus.CounterVec
	events       *prometheus.CounterVec
	sent, joined prometheus.Counter
	dropped      *prometheus.CounterVec
	putTime      *prometheus.HistogramVec
	evictions    *prometheus.CounterVec
	busExists    prometheus.Gauge
	certErrors   prometheus.Counter
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		reviewTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: MetricReviewSeconds, Help: "Time until an admission review was answered, its body read.",
			Buckets: []float64{.0001, .00025, .0005, .001, .002, .005, .01, .05, .25, 1},
		}),
		reviews: counters(MetricReviews, "Admission reviews, all of them allowed, by what became of them.", "operation", "result"),
		events:  counters(MetricPodEvents, "Pod events observed.", "reason"),
		sent:    counter(MetricPodEventsSent, "Pod events that the bus accepted."),
		joined:  counter(MetricPodEventsJoined, "Pod events joined with one that was not yet sent."),
		dropped: counters(MetricPodEventsDropped, "Pod events that were not sent; resync repairs what they would have said.", "cause"),
		putTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: MetricPutEventsSeconds, Help: "Time to put a batch of events, retries included.",
			Buckets: []float64{.005, .01, .02, .05, .1, .25, .5, 1, 5, 30},
		}, []string{"result"}),
		evictions:  counters(MetricEvictions, "Evictions, by what became of them.", "result"),
		busExists:  prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBusExists, Help: "1 if the bus was found, 0 if there is none. Absent until known."}),
		certErrors: counter(MetricCertificateErrors, "Certificates on disk that could not be loaded; the last good one is served."),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBuildInfo, Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	m.registry.MustRegister(m.reviewTime, m.reviews, m.events, m.sent, m.joined, m.dropped, m.putTime, m.evictions, m.certErrors, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// gauge registers a gauge that is read when it is asked for.
func (m *metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// busFound publishes whether the bus exists, once that is known.
func (m *metrics) busFound(exists bool) {
	m.busExists.Set(0)
	if exists {
		m.busExists.Set(1)
	}
	// Registering it again is an error that says that it is registered.
	_ = m.registry.Register(m.busExists)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: 3})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}
