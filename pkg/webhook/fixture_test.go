package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook/webhooktest"
)

// fakeBus is a bus that keeps what it gets, or does not answer.
type fakeBus struct {
	mu      sync.Mutex
	entries []bus.Entry
	batches [][]bus.Entry
	hang    chan struct{} // calls wait until it is closed, or their context ends
	refuse  string        // code with which every entry is refused
}

func (b *fakeBus) Put(ctx context.Context, entries []bus.Entry) ([]bus.Unsent, error) {
	b.mu.Lock()
	b.batches = append(b.batches, entries)
	hang, refuse := b.hang, b.refuse
	b.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			refuse = bus.CodeInterrupted
		}
	}
	if refuse != "" {
		var unsent []bus.Unsent
		for i, e := range entries {
			unsent = append(unsent, bus.Unsent{Entry: e, Index: i, Code: refuse})
		}
		return unsent, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, entries...)
	return nil, nil
}

// got returns what the bus has, as "detail-type" or the reason of a pod event.
func (b *fakeBus) got() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.entries {
		out = append(out, describe(e))
	}
	return out
}

func describe(e bus.Entry) string {
	if e.DetailType != podevent.DetailTypePodStateChange {
		return e.DetailType
	}
	event, err := podevent.Decode(e.Detail)
	if err != nil {
		return err.Error()
	}
	return string(event.Reason)
}

func (b *fakeBus) sizes() (sizes []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, batch := range b.batches {
		sizes = append(sizes, len(batch))
	}
	return sizes
}

// fakePods shows a pod as a sequence of reads; the last one stays.
type fakePods struct {
	mu    sync.Mutex
	reads []func() (*podevent.Pod, error)
	n     int
}

func (f *fakePods) Pod(context.Context, string, string) (*podevent.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.reads) == 0 {
		return nil, ErrPodGone
	}
	read := f.reads[min(f.n, len(f.reads)-1)]
	f.n++
	return read()
}

// pair is a certificate and its key as PEM.
type pair struct{ cert, key []byte }

// newPair makes a certificate for localhost that ends at the given time.
func newPair(t testing.TB, notAfter time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(notAfter.Unix()), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Unix(0, 0), NotAfter: notAfter, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
}

func (p pair) write(t testing.TB, dir string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, text := range map[string][]byte{certFile: p.cert, keyFile: p.key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// newWebhook builds a webhook on loopback that nobody runs yet.
func newWebhook(t testing.TB, publisher Publisher, pods PodReader) *Webhook {
	t.Helper()
	certFile, keyFile := newPair(t, noon.AddDate(1, 0, 0)).write(t, t.TempDir())
	w, err := New(Config{
		Cluster: "prod", Bus: "elbridge", Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", CertFile: certFile, KeyFile: keyFile,
		Annotations: podevent.AllowList{"example.com/*"}, Instance: "webhook-0",
		Heartbeat: time.Hour, QueueEvents: 1000, QueueBytes: 2 << 20, Drain: 0, Flush: time.Second,
	}, Deps{
		Version: "v1", Publisher: publisher, Pods: pods, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Bus: func(context.Context) (string, error) {
			return "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// admit sends a review to the handler and returns the answer.
func admit(w *Webhook, r webhooktest.Review) string {
	return post(w, bytes.NewReader(r.JSON()))
}

func post(w *Webhook, body io.Reader) string {
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, AdmitPath, body))
	return rec.Body.String()
}

// waiting returns the reasons of what waits in the queue, in order.
func waiting(w *Webhook) string {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	var out []string
	for el := w.queue.order.Front(); el != nil; el = el.Next() {
		out = append(out, describe(el.Value.(item).entry))
	}
	return strings.Join(out, " ")
}

// count reads a counter by its labels, as it is scraped.
func count(t testing.TB, w *Webhook, line string) string {
	t.Helper()
	rec := httptest.NewRecorder()
	w.metrics.handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for l := range strings.Lines(rec.Body.String()) {
		if v, ok := strings.CutPrefix(l, line+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func allowedAnswer(uid string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"` + uid + `","allowed":true}}`
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for range 5000 {
		if condition() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}
