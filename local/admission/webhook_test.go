package admission_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook"
	"github.com/elbridge/elbridge/pkg/webhook/configuration"
)

// paper is a bus that keeps when it was told of which reason of which pod first.
type paper struct {
	mu    sync.Mutex
	first map[string]time.Time // "Ready web-0"
	told  int                  // pod events
	dirty []string             // what can't be read
}

func (p *paper) Put(_ context.Context, entries []bus.Entry) ([]bus.Unsent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		if e.DetailType != podevent.DetailTypePodStateChange {
			continue
		}
		event, err := podevent.Decode(e.Detail)
		if err != nil {
			p.dirty = append(p.dirty, err.Error())
			continue
		}
		p.told++
		key := string(event.Reason) + " " + event.Name
		if _, told := p.first[key]; !told {
			p.first[key] = time.Now()
		}
	}
	return nil, nil
}

func (p *paper) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// await waits until the bus was told of all that has begun.
func (p *paper) await(t *testing.T, began map[string]time.Time) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		missing, dirty := p.missing(began)
		if len(dirty) > 0 {
			t.Fatalf("not understood: %v", dirty)
		}
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no events within %s: %v", patience, missing)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *paper) missing(began map[string]time.Time) (keys, dirty []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range began {
		if _, told := p.first[key]; !told {
			keys = append(keys, key)
		}
	}
	return keys, slices.Clone(p.dirty)
}

// reader is the access that the webhook has to evicted pods.
const reader = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: elbridge-webhook, namespace: own}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: elbridge-webhook}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: elbridge-webhook}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: elbridge-webhook}
subjects: [{kind: ServiceAccount, name: elbridge-webhook, namespace: own}]
`

// serve runs the webhook itself, and returns its options for the configuration.
func serve(t *testing.T, a *api, p webhook.Publisher) configuration.Options {
	t.Helper()
	a.apply(t, reader)
	var token authenticationv1.TokenRequest
	if err := a.admin.Post(t.Context(), "/api/v1/namespaces/own/serviceaccounts/elbridge-webhook/token", &token, &token); err != nil {
		t.Fatal(err)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	w, err := webhook.New(webhook.Config{
		Cluster: "admission", Bus: "elbridge", Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", Instance: "webhook-0",
		CertFile: file("tls.crt", cert), KeyFile: file("tls.key", key), QueueEvents: 10_000, QueueBytes: 16 << 20, Heartbeat: time.Hour, Flush: time.Second,
	}, webhook.Deps{
		Version: "test", Publisher: p, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Pods: webhook.NewPodReader(a.Endpoint, file("token", []byte(token.Status.Token)), file("ca.crt", a.CA), nil),
		Bus: func(context.Context) (string, error) {
			return "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("webhook: %v", err)
		}
	})
	return configuration.Options{Namespace: own, URL: "https://" + w.Address().String(), CABundle: cert}
}

// The webhook itself: every act becomes its event. How long that takes, from the
// call to the bus, is told and not judged.
func TestEveryActBecomesAnEvent(t *testing.T) {
	a := start(t)
	const pods = 20
	ns := a.namespace(t, "acts")
	for i := range pods {
		a.apply(t, pod(ns, fmt.Sprintf("web-%d", i), ", labels: {app: web}"))
	}
	// The canary needs an address, or there is nothing to tell of it.
	if err := a.patch(t.Context(), "/api/v1/namespaces/canaries/pods/canary/status", `{"status":{"podIP":"10.64.8.1","podIPs":[{"ip":"10.64.8.1"}]}}`); err != nil {
		t.Fatal(err)
	}
	p := &paper{first: map[string]time.Time{}}
	a.configure(t, generated(t, serve(t, a, p)), p.count)

	began := map[string]time.Time{}
	// One round after the other: acts on one pod in quick succession may be told as one.
	for _, round := range []struct {
		reason podevent.Reason
		first  int // of the pods
		step   int
		act    func(p teller, i int) func(context.Context) error
	}{
		{podevent.IPAssigned, 0, 1, func(p teller, i int) func(context.Context) error {
			return p.status(fmt.Sprintf(`{"phase":"Running","podIP":"10.64.9.%[1]d","podIPs":[{"ip":"10.64.9.%[1]d"}]}`, i+1))
		}},
		{podevent.Ready, 0, 1, func(p teller, _ int) func(context.Context) error {
			return p.status(`{"conditions":[{"type":"Ready","status":"True"}]}`)
		}},
		{podevent.NotReady, 0, 1, func(p teller, _ int) func(context.Context) error {
			return p.status(`{"conditions":[{"type":"Ready","status":"False"}]}`)
		}},
		{podevent.Relabelled, 0, 1, func(p teller, _ int) func(context.Context) error {
			return p.metadata(`{"labels":{"tier":"front"}}`)
		}},
		{podevent.Evicted, 0, 2, func(p teller, _ int) func(context.Context) error { return p.evict(`{}`) }},
		{podevent.Terminating, 1, 2, func(p teller, _ int) func(context.Context) error { return p.delete("") }},
		{podevent.Deleted, 0, 1, func(p teller, _ int) func(context.Context) error { return p.delete(`{"gracePeriodSeconds":0}`) }},
	} {
		for i := round.first; i < pods; i += round.step {
			name := fmt.Sprintf("web-%d", i)
			began[string(round.reason)+" "+name] = time.Now()
			if err := round.act(a.pod(ns, name), i)(t.Context()); err != nil {
				t.Errorf("%s of %s: %v", round.reason, name, err)
			}
		}
		p.await(t, began)
	}
	report(t, p.first, began)
}

// report logs how long each reason took.
func report(t *testing.T, ended, began map[string]time.Time) {
	for _, reason := range []podevent.Reason{podevent.IPAssigned, podevent.Ready, podevent.NotReady, podevent.Relabelled, podevent.Evicted, podevent.Terminating, podevent.Deleted} {
		var took []time.Duration
		for key, at := range began {
			if strings.HasPrefix(key, string(reason)+" ") {
				took = append(took, ended[key].Sub(at))
			}
		}
		slices.Sort(took)
		t.Logf("%-12s %3d times: median %s, longest %s", reason, len(took), took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
	}
}
