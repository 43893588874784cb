package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// fakeAPI answers by a script, "PATCH 200 PATCH 409 GET 404": each request takes
// the next word pair of its verb; the last one of a verb is repeated.
type fakeAPI struct {
	mu      sync.Mutex
	script  map[string][]string
	phases  []string // of the statuses stored
	uid     string   // of the pod that GET shows
	changed chan struct{}
}

func newFakeAPI(script string) *fakeAPI {
	f := &fakeAPI{script: map[string][]string{}, uid: "uid-1", changed: make(chan struct{}, 1000)}
	words := strings.Fields(script)
	for i := 0; i+1 < len(words); i += 2 {
		f.script[words[i]] = append(f.script[words[i]], words[i+1])
	}
	return f
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is cut off does not parse
	f.mu.Lock()
	defer f.mu.Unlock()
	steps := f.script[r.Method]
	if len(steps) == 0 {
		steps = []string{"200"}
	}
	if len(steps) > 1 {
		f.script[r.Method] = steps[1:]
	}
	var code int
	_, _ = fmt.Sscan(steps[0], &code)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if code == http.StatusOK {
		_, _ = fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"%s"}}`, f.uid)
		if r.Method == http.MethodPatch {
			var patch struct{ Status struct{ Phase string } }
			_ = json.Unmarshal(body, &patch)
			f.phases = append(f.phases, patch.Status.Phase)
		}
	} else {
		reason := map[int]string{404: "NotFound", 409: "Conflict"}[code]
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"%s","code":%d}`, reason, code)
	}
	f.changed <- struct{}{}
}

func (f *fakeAPI) stored() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.phases, " ")
}

// newTestHost is a connected node whose API server is f.
func newTestHost(t *testing.T, f *fakeAPI) *host {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	k, err := newKube(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{}.withDefaults()
	h := newHost(&agent{cfg: cfg, ctx: t.Context(), now: time.Now, places: make(chan struct{}, 4)}, cfg.Nodes[0], k)
	h.link.up(t.Context())
	h.writes.up(t.Context())
	return h
}

func newTestWriter(t *testing.T, h *host) *writer {
	t.Helper()
	w := newWriter(h, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-1"}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return w
}

func statuses(text string) []v1.PodStatus {
	var all []v1.PodStatus
	for _, phase := range strings.Fields(text) {
		all = append(all, v1.PodStatus{Phase: v1.PodPhase(phase)})
	}
	return all
}

func TestWriter(t *testing.T) {
	tests := map[string]struct {
		script string
		uid    string // of the pod that is there
		push   string
		want   string // stored
	}{
		"in order, none left out":    {push: "1 2 3 4", want: "1 2 3 4"},
		"a refusal is tried again":   {script: "PATCH 403 PATCH 500 PATCH 200", push: "1", want: "1"},
		"a conflict is tried again":  {script: "PATCH 409 PATCH 200", push: "1", want: "1"},
		"after a failure, newest":    {script: "PATCH 500 PATCH 200", push: "1 2 3", want: "3"},
		"the pod is gone":            {script: "PATCH 404", push: "1 2", want: ""},
		"P049 another took its name": {script: "PATCH 409", uid: "uid-2", push: "1 2", want: ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(tt.script)
			if tt.uid != "" {
				f.uid = tt.uid
			}
			h := newTestHost(t, f)
			w := newWriter(h, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-1"}})
			for _, s := range statuses(tt.push) {
				w.push(s)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			wg.Go(func() { w.run(ctx) })
			flush(t, w)
			if got := f.stored(); got != tt.want {
				t.Errorf("stored %q, want %q", got, tt.want)
			}
			if tt.want == "" {
				w.push(v1.PodStatus{Phase: "late"})
				flush(t, w) // nobody waits for what will not be written
			}
		})
	}
}

func flush(t *testing.T, w *writer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestWriterWaitsForTheLink(t *testing.T) {
	f := newFakeAPI("")
	h := newTestHost(t, f)
	w := newTestWriter(t, h)
	for name, cut := range map[string]*link{"partitioned": h.link, "paused": h.writes} {
		cut.cut()
		w.push(v1.PodStatus{Phase: v1.PodPhase(name)})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := w.flush(ctx); err == nil {
			t.Errorf("%s: written all the same", name)
		}
		cancel()
		cut.up(t.Context())
		flush(t, w)
		if got := f.stored(); !strings.HasSuffix(got, name) {
			t.Errorf("stored %q, want %q at the end", got, name)
		}
	}
}

func TestWriterJoinsWhatPilesUp(t *testing.T) {
	f := newFakeAPI("")
	h := newTestHost(t, f)
	h.writes.cut()
	w := newTestWriter(t, h)
	for i := range 100 {
		w.push(v1.PodStatus{Phase: v1.PodPhase(fmt.Sprint(i))})
	}
	h.writes.up(t.Context())
	flush(t, w)
	if got := strings.Fields(f.stored()); len(got) > writerQueue+1 || got[len(got)-1] != "99" {
		t.Errorf("stored %q", got)
	}
}

func TestRemove(t *testing.T) {
	for name, tt := range map[string]struct {
		script, uid string
		gone        bool
	}{
		"deleted":                      {script: "DELETE 200", uid: "uid-1"},
		"a refusal is tried again":     {script: "DELETE 403 DELETE 200", uid: "uid-1"},
		"it is gone":                   {script: "DELETE 404", uid: "uid-1", gone: true},
		"P049 another has its name":    {script: "DELETE 409", uid: "uid-2", gone: true},
		"a conflict that passes again": {script: "DELETE 409 DELETE 200", uid: "uid-1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(tt.script)
			f.uid = tt.uid
			w := newTestWriter(t, newTestHost(t, f))
			if err := w.remove(t.Context()); (err != nil) != tt.gone {
				t.Errorf("error %v, gone %v", err, tt.gone)
			}
		})
	}
}
