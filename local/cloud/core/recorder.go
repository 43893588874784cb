package core

import (
	"context"
	"sync"
	"time"
)

// Record is one call as it went.
type Record struct {
	Sequence  int64     `json:"sequence"`
	Time      time.Time `json:"time"`
	Service   string    `json:"service"`
	Operation string    `json:"operation"`
	Account   string    `json:"account,omitempty"`
	Region    string    `json:"region,omitempty"`
	Principal string    `json:"principal,omitempty"` // ARN
	RequestID string    `json:"requestId,omitempty"`
	Params    string    `json:"params,omitempty"` // JSON document or form, cut at maxParams
	Status    int       `json:"status"`
	Code      string    `json:"code,omitempty"` // of the error
	Message   string    `json:"message,omitempty"`
	Fault     string    `json:"fault,omitempty"` // kinds that hit the call
	Seconds   float64   `json:"seconds"`
}

// maxParams bounds what one record keeps of a request, in bytes.
const maxParams = 16 << 10

// Recorder keeps the last calls.
type Recorder struct {
	mu       sync.Mutex
	ring     []Record
	limit    int
	next     int64 // sequence of the next record
	watchers map[chan Record]bool
}

// NewRecorder returns a recorder of the last limit calls.
func NewRecorder(limit int) *Recorder {
	return &Recorder{limit: limit, watchers: map[chan Record]bool{}}
}

// Add keeps a record and shows it to the watchers.
func (r *Recorder) Add(rec Record) {
	if len(rec.Params) > maxParams {
		rec.Params = rec.Params[:maxParams]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.Sequence = r.next
	r.next++
	if len(r.ring) < r.limit {
		r.ring = append(r.ring, rec)
	} else {
		r.ring[int(rec.Sequence)%r.limit] = rec
	}
	for w := range r.watchers {
		select {
		case w <- rec:
		default: // a watcher that does not keep up misses records; Sequence shows it
		}
	}
}

// Since returns the records kept with a sequence of at least n, oldest first.
func (r *Recorder) Since(n int64) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since(n)
}

func (r *Recorder) since(n int64) []Record {
	n = max(n, r.next-int64(len(r.ring)), 0)
	out := make([]Record, 0, max(0, r.next-n))
	for ; n < r.next; n++ {
		out = append(out, r.ring[int(n)%r.limit])
	}
	return out
}

// Watch returns the records kept since n and a channel with those that follow.
// The channel is closed when ctx ends.
func (r *Recorder) Watch(ctx context.Context, n int64) ([]Record, <-chan Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := make(chan Record, 1024)
	r.watchers[w] = true
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
		close(w)
	})
	return r.since(n), w
}
