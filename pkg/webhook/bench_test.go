package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/webhook/webhooktest"
)

// parallel is how many reviews are answered at a time.
const parallel = 50

// BenchmarkReview answers realistic reviews, 50 in parallel, while PutEvents
// works and while it hangs. Two times are taken: until the answer has left, and
// until the handler is done with the review.
func BenchmarkReview(b *testing.B) {
	for _, size := range []int{0, 9000} {
		for _, hang := range []bool{false, true} {
			bodies := reviews(1000, size)
			b.Run(fmt.Sprintf("body=%dKB/hang=%v", len(bodies[0])>>10, hang), func(b *testing.B) {
				publisher := &fakeBus{}
				if hang {
					publisher.hang = make(chan struct{})
				}
				w := newWebhook(b, forgetful{publisher}, &fakePods{})
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan struct{})
				go func() { w.sender.run(ctx, 0); close(done) }()
				defer func() { cancel(); <-done }()
				b.ReportAllocs()
				b.ResetTimer()
				answered, handled := drive(w, bodies, b.N)
				b.StopTimer()
				report(b, answered, "answer")
				report(b, handled, "handler")
				if _, bytes := w.queue.depth(); bytes > w.config.QueueBytes {
					b.Errorf("%d bytes wait, want at most %d", bytes, w.config.QueueBytes)
				}
			})
		}
	}
}

// forgetful is a bus that does not keep what it gets.
type forgetful struct{ Publisher }

// drive sends n reviews from 50 goroutines and returns how long each took.
func drive(w *Webhook, bodies [][]byte, n int) (answered, handled []time.Duration) {
	answered, handled = make([]time.Duration, n), make([]time.Duration, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				req := httptest.NewRequest(http.MethodPost, AdmitPath, bytes.NewReader(bodies[i%len(bodies)]))
				rec := &stopwatch{header: http.Header{}, start: time.Now()}
				w.handler.ServeHTTP(rec, req)
				answered[i], handled[i] = rec.left, time.Since(rec.start)
			}
		})
	}
	all.Wait()
	return answered, handled
}

// stopwatch is a response that notes when it left.
type stopwatch struct {
	header http.Header
	start  time.Time
	left   time.Duration
}

func (s *stopwatch) Header() http.Header         { return s.header }
func (s *stopwatch) Write(b []byte) (int, error) { return len(b), nil }
func (s *stopwatch) WriteHeader(int)             {}
func (s *stopwatch) Flush()                      { s.left = time.Since(s.start) }

func report(b *testing.B, times []time.Duration, what string) {
	slices.Sort(times)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(times[len(times)*p/100].Microseconds()), fmt.Sprintf("p%d-%s-µs", p, what))
	}
}

// reviews makes status updates of n pods.
func reviews(n, padding int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		old := webhooktest.Pod{Name: fmt.Sprint("web-", i), IPs: []string{fmt.Sprintf("10.64.%d.%d", i/250, i%250)}, Padding: padding}
		pod := old
		pod.Ready = true
		out[i] = webhooktest.Review{Operation: "UPDATE pods/status", Old: &old, New: &pod}.JSON()
	}
	return out
}

// BenchmarkDecode compares the scanner with encoding/json on the same pod.
func BenchmarkDecode(b *testing.B) {
	body, err := json.Marshal(webhooktest.Pod{IPs: []string{"10.64.1.7"}, Padding: 9000}.JSON())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("scanner", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := DecodePod(body, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := slow(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
