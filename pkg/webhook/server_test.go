package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook/webhooktest"
)

// running runs a webhook; end stops it and returns what Run returned.
func running(t *testing.T, w *Webhook) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error { cancel(); return <-ended }
}

// apiServer is a client as an API server is one. It trusts the webhook's CA.
func apiServer(t *testing.T, w *Webhook) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(w.config.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func send(t *testing.T, c *http.Client, w *Webhook, r webhooktest.Review) *http.Response {
	t.Helper()
	res, err := c.Post("https://"+w.Address().String()+AdmitPath, "application/json", bytes.NewReader(r.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || string(body) != allowedAnswer("review-1") {
		t.Fatalf("answer %s, %v", body, err)
	}
	return res
}

func get(t *testing.T, w *Webhook, path string) (int, string) {
	t.Helper()
	res, err := http.Get("http://" + w.OpsAddress().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

var (
	ready    = &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Ready: true}
	deletion = webhooktest.Review{Operation: "DELETE pods", Old: ready}
)

func TestWebhookEndToEnd(t *testing.T) {
	b := &fakeBus{}
	w := newWebhook(t, b, &fakePods{})
	end := running(t, w)
	res := send(t, apiServer(t, w), w, deletion)
	if res.ProtoMajor != 1 {
		t.Errorf("answered with %s, want HTTP/1.1", res.Proto)
	}
	eventually(t, "the event and the start are on the bus", func() bool {
		got := b.got()
		return slices.Contains(got, "Terminating") && slices.Contains(got, podevent.DetailTypeWebhookStarted)
	})
	for path, want := range map[string]string{"/livez": "ok", "/readyz": "ok", "/metrics": MetricBusExists + " 1"} {
		if code, body := get(t, w, path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s, want %q in it", path, code, body, want)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// P079: it goes on answering while the Service forgets it, says so, and then
// sends what waits.
func TestShutdown_P079_DrainsAndFlushes(t *testing.T) {
	b := &fakeBus{hang: make(chan struct{})}
	w := newWebhook(t, b, &fakePods{})
	drained := make(chan struct{})
	w.wait = func(context.Context, time.Duration) error { <-drained; return nil }
	end := running(t, w)
	client := apiServer(t, w)
	if res := send(t, client, w, deletion); res.Close {
		t.Error("Connection: close before the end")
	}
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	eventually(t, "unready", func() bool { code, _ := get(t, w, "/readyz"); return code == http.StatusServiceUnavailable })
	if code, _ := get(t, w, "/livez"); code != http.StatusOK {
		t.Errorf("livez %d while draining", code)
	}
	later := webhooktest.Review{Operation: "DELETE pods", Old: &webhooktest.Pod{Name: "web-1", IPs: []string{"10.64.1.8"}}}
	if res := send(t, client, w, later); !res.Close {
		t.Error("no Connection: close while draining")
	}
	close(drained)
	close(b.hang)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := b.got(); len(got) < 2 {
		t.Errorf("bus has %v, want both events", got)
	}
}

// I11: without AWS it is ready and answers.
func TestWithoutAWS_I11_IsReady(t *testing.T) {
	b := &fakeBus{hang: make(chan struct{})}
	w := newWebhook(t, b, &fakePods{})
	w.deps.Bus = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	end := running(t, w)
	for range 20 {
		send(t, apiServer(t, w), w, deletion)
	}
	if code, body := get(t, w, "/readyz"); code != http.StatusOK {
		t.Errorf("readyz: %d %s", code, body)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestBusCheck_P083(t *testing.T) {
	tests := map[string]struct {
		err    error
		metric string
		starts bool
	}{
		"found":               {nil, "1", true},
		"missing":             {fmt.Errorf("%w: elbridge", bus.ErrNoBus), "0", false},
		"not allowed to look": {fmt.Errorf("%w: elbridge", bus.ErrDenied), "", true},
		"not reachable":       {errors.New("no route to host"), "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := &fakeBus{}
			w := newWebhook(t, b, &fakePods{})
			looked := make(chan struct{}, 10)
			w.deps.Bus = func(context.Context) (string, error) { looked <- struct{}{}; return "arn", tt.err }
			end := running(t, w)
			<-looked
			eventually(t, "metric is "+tt.metric, func() bool { return count(t, w, MetricBusExists) == tt.metric })
			ready := http.StatusOK
			if errors.Is(tt.err, bus.ErrNoBus) { // a certain answer: a rollout with a wrong bus stops
				ready = http.StatusServiceUnavailable
			}
			eventually(t, fmt.Sprintf("readyz is %d", ready), func() bool { code, _ := get(t, w, "/readyz"); return code == ready })
			if err := end(); err != nil {
				t.Error(err)
			}
			if got := slices.Contains(b.got(), podevent.DetailTypeWebhookStarted); got != tt.starts {
				t.Errorf("Webhook Started put: %v, want %v", got, tt.starts)
			}
		})
	}
}

func TestHeartbeat(t *testing.T) {
	b := &fakeBus{}
	w := newWebhook(t, b, &fakePods{})
	w.reporter.every = time.Millisecond
	admit(w, deletion)
	end := running(t, w)
	eventually(t, "a heartbeat", func() bool { return slices.Contains(b.got(), podevent.DetailTypeWebhookHeartbeat) })
	if err := end(); err != nil {
		t.Error(err)
	}
	for _, e := range b.entries {
		if e.DetailType != podevent.DetailTypeWebhookHeartbeat {
			continue
		}
		var beat podevent.WebhookHeartbeat
		if err := json.Unmarshal(e.Detail, &beat); err != nil {
			t.Fatal(err)
		}
		if beat.Cluster != "prod" || beat.Webhook.Instance != "webhook-0" || beat.Reviews != 1 || beat.CertificateNotAfter == nil || !beat.CertificateNotAfter.Equal(noon.AddDate(1, 0, 0)) {
			t.Errorf("heartbeat %s", e.Detail)
		}
	}
}

func TestNewListsEveryFault(t *testing.T) {
	w := newWebhook(t, &fakeBus{}, &fakePods{})
	c := w.config
	c.CertFile, c.Listen, c.MetricsListen = filepath.Join(t.TempDir(), "none"), w.Address().String(), w.OpsAddress().String()
	_, err := New(c, w.deps)
	if err == nil {
		t.Fatal("New works without a certificate and on addresses in use")
	}
	for _, want := range []string{"serving certificate: open", "--listen 127.0.0.1", "--metrics-listen 127.0.0.1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
}
