package webhook

import (
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// handler answers admission reviews and hands what they tell to the queue.
type handler struct {
	cluster  string
	webhook  podevent.Webhook
	allow    podevent.AllowList
	queue    *queue
	evictor  *evictor
	ledger   *ledger
	metrics  *metrics
	log      *slog.Logger
	now      func() time.Time
	bodies   *bodies
	seed     maphash.Seed
	reviews  atomic.Uint64
	draining *atomic.Bool
}

// ServeHTTP allows whatever it is asked, before it looks at what that is.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := h.now()
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want a POST of an AdmissionReview", http.StatusMethodNotAllowed)
		return
	}
	h.bodies.read(r, func(body []byte, err error) {
		read := h.now()
		h.allowed(w, peekUID(body))
		h.metrics.reviewTime.Observe(h.now().Sub(read).Seconds())
		h.reviews.Add(1)
		operation, result := h.look(body, err, at)
		h.metrics.reviews.WithLabelValues(operation, result).Inc()
	})
	// A client that is still writing may not see the answer otherwise.
	_, _ = io.CopyN(io.Discard, r.Body, 2*maxBody)
}

// allowed sends the whole answer now.
func (h *handler) allowed(w http.ResponseWriter, uid string) {
	id, err := json.Marshal(uid)
	if err != nil {
		id = []byte(`""`)
	}
	answer := make([]byte, 0, 160)
	answer = append(answer, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":`...)
	answer = append(answer, id...)
	answer = append(answer, `,"allowed":true}}`...)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	if h.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	if _, err := w.Write(answer); err != nil {
		return // the API server went away: it has its own timeout
	}
	_ = http.NewResponseController(w).Flush()
}

// look finds out what the review tells. It returns the labels to count it by.
func (h *handler) look(body []byte, problem error, at time.Time) (operation, result string) {
	switch {
	case errors.Is(problem, errOversized):
		return "", resultOversized
	case problem != nil:
		h.log.Debug("review not read", "err", problem)
		return "", resultBusy
	}
	r, err := decodeReview(body, h.allow)
	switch {
	case errors.Is(err, errNoReview):
		return "", resultForeign
	case err != nil:
		h.log.Warn("review not understood", "err", err)
		return "", resultMalformed
	}
	return h.handle(r, at)
}

func (h *handler) handle(r review, at time.Time) (operation, result string) {
	c := podevent.Change{
		Cluster: h.cluster, Old: r.oldObject.pod, New: r.object.pod,
		At: at, Webhook: h.webhook, Annotations: h.allow,
	}
	switch what := r.operation + " " + r.resource + "/" + r.subResource; {
	case r.group != "" || r.version != "v1":
		return "", resultForeign
	case what == "UPDATE pods/":
		c.Operation = podevent.Update
	case what == "UPDATE pods/status":
		c.Operation = podevent.StatusUpdate
	case what == "DELETE pods/":
		c.Operation, c.New, c.Grace = podevent.Delete, nil, r.options.grace
	case what == "CREATE pods/eviction":
		c.Operation = podevent.Evict
	default:
		return "", resultForeign
	}
	operation = string(c.Operation)
	switch {
	// A review of one pod of a deletecollection names no pod: the old object does.
	case r.namespace == "" || r.name == "" && c.Operation == podevent.Evict:
		return operation, resultForeign
	case r.dryRun || r.options.dryRun || r.object.options.dryRun:
		return operation, resultDryRun
	case c.Operation == podevent.Evict:
		h.evictor.watch(eviction{namespace: r.namespace, name: r.name, uid: r.object.options.uid})
		return operation, resultEviction
	case h.emit(c) == 0:
		return operation, resultNone
	default:
		return operation, resultEvent
	}
}

// evicted is told what became of an evicted pod.
func (h *handler) evicted(old, pod *podevent.Pod) {
	h.emit(podevent.Change{
		Cluster: h.cluster, Operation: podevent.Evict, Old: old, New: pod,
		At: h.now(), Webhook: h.webhook, Annotations: h.allow,
	})
}

// emit queues the events of a change and returns how many there are.
func (h *handler) emit(c podevent.Change) int {
	events := podevent.Observe(c)
	for _, e := range events {
		h.metrics.events.WithLabelValues(string(e.Reason)).Inc()
		i, err := newItem(e, h.seed)
		if err != nil {
			h.log.Error("pod event not encoded", "err", err)
			h.drop(causeTooLarge)
			continue
		}
		h.queue.add(i)
	}
	return len(events)
}

func (h *handler) drop(cause string) {
	h.ledger.add(cause, h.now())
	h.metrics.dropped.WithLabelValues(cause).Inc()
}
