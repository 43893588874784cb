package webhook

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/webhook/webhooktest"
)

func TestHandler(t *testing.T) {
	zero, thirty := int64(0), int64(30)
	bare := &webhooktest.Pod{}
	withIP := &webhooktest.Pod{IPs: []string{"10.64.1.7"}}
	ready := &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Ready: true}
	failed := &webhooktest.Pod{Phase: "Failed"}
	other := &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Labels: map[string]string{"application": "other"}}
	allowed := &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Annotations: map[string]string{"example.com/weight": "1"}}
	unlisted := &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Annotations: map[string]string{"example.org/weight": "1"}}
	tests := map[string]struct {
		review webhooktest.Review
		events string
		count  string // labels of the review counter
	}{
		"address":              {webhooktest.Review{Operation: "UPDATE pods/status", Old: bare, New: withIP}, "IPAssigned", `operation="StatusUpdate",result="event"`},
		"ready":                {webhooktest.Review{Operation: "UPDATE pods/status", Old: withIP, New: ready}, "Ready", `operation="StatusUpdate",result="event"`},
		"not ready":            {webhooktest.Review{Operation: "UPDATE pods/status", Old: ready, New: withIP}, "NotReady", `operation="StatusUpdate",result="event"`},
		"heartbeat":            {webhooktest.Review{Operation: "UPDATE pods/status", Old: ready, New: ready}, "", `operation="StatusUpdate",result="none"`},
		"P047 failed, no IP":   {webhooktest.Review{Operation: "UPDATE pods/status", Old: ready, New: failed}, "Finished", `operation="StatusUpdate",result="event"`},
		"delete":               {webhooktest.Review{Operation: "DELETE pods", Old: ready, Grace: &thirty}, "Terminating", `operation="Delete",result="event"`},
		"delete, default":      {webhooktest.Review{Operation: "DELETE pods", Old: ready}, "Terminating", `operation="Delete",result="event"`},
		"force delete":         {webhooktest.Review{Operation: "DELETE pods", Old: ready, Grace: &zero}, "Deleted", `operation="Delete",result="event"`},
		"one of a collection":  {webhooktest.Review{Operation: "DELETE pods", Old: ready, Collection: true}, "Terminating", `operation="Delete",result="event"`},
		"delete without IP":    {webhooktest.Review{Operation: "DELETE pods", Old: bare}, "", `operation="Delete",result="none"`},
		"relabelled":           {webhooktest.Review{Operation: "UPDATE pods", Old: withIP, New: other}, "Relabelled Relabelled", `operation="Update",result="event"`},
		"allowed annotation":   {webhooktest.Review{Operation: "UPDATE pods", Old: withIP, New: allowed}, "Relabelled Relabelled", `operation="Update",result="event"`},
		"other annotation":     {webhooktest.Review{Operation: "UPDATE pods", Old: withIP, New: unlisted}, "", `operation="Update",result="none"`},
		"I11 dry run":          {webhooktest.Review{Operation: "DELETE pods", Old: ready, DryRun: true}, "", `operation="Delete",result="dry_run"`},
		"I11 eviction dry run": {webhooktest.Review{Operation: "CREATE pods/eviction", EvictDryRun: true}, "", `operation="Evict",result="dry_run"`},
		"create":               {webhooktest.Review{Operation: "CREATE pods", New: bare}, "", `operation="",result="foreign"`},
		"connect":              {webhooktest.Review{Operation: "CONNECT pods/exec"}, "", `operation="",result="foreign"`},
		"another group's pods": {webhooktest.Review{Operation: "DELETE pods", Old: ready, Group: "metrics.k8s.io"}, "", `operation="",result="foreign"`},
		"another kind":         {webhooktest.Review{Operation: "DELETE services", Old: ready}, "", `operation="",result="foreign"`},
		"update without old":   {webhooktest.Review{Operation: "UPDATE pods/status", New: ready}, "", `operation="StatusUpdate",result="none"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWebhook(t, &fakeBus{}, &fakePods{})
			tt.review.UID = "id-1"
			if got := admit(w, tt.review); got != allowedAnswer("id-1") {
				t.Errorf("answer %s", got)
			}
			if got := waiting(w); got != tt.events {
				t.Errorf("events %q, want %q", got, tt.events)
			}
			if got := count(t, w, MetricReviews+"{"+tt.count+"}"); got != "1" {
				t.Errorf("reviews with %s: %q, want 1", tt.count, got)
			}
		})
	}
}

func TestBadReviews_I11_AreAllowedAndCounted(t *testing.T) {
	ready := &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Ready: true}
	large := webhooktest.Review{UID: "large", Operation: "DELETE pods", Old: &webhooktest.Pod{Padding: maxBody}}.JSON()
	whole := webhooktest.Review{UID: "half", Operation: "DELETE pods", Old: ready}.JSON()
	tests := map[string]struct{ body, uid, result string }{
		"empty":           {"", "", resultMalformed},
		"no JSON":         {"pods, pods, pods", "", resultMalformed},
		"half a review":   {string(whole[:len(whole)/2]), "half", resultMalformed},
		"two reviews":     {string(whole) + string(whole), "half", resultMalformed},
		"wrong types":     {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":7}}`, "u", resultMalformed},
		"no review":       {`{"kind":"Pod","apiVersion":"v1"}`, "", resultForeign},
		"review of v1b1":  {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u"}}`, "u", resultForeign},
		"without request": {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`, "", resultForeign},
		"quotes in uid":   {`{"kind":"x","request":{"uid":"\"<"}}`, `\"\u003c`, resultForeign},
		"oversized":       {string(large), "large", resultOversized},
	}
	for name, tt := range tests {
		for _, chunked := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", chunked"}[chunked], func(t *testing.T) {
				w := newWebhook(t, &fakeBus{}, &fakePods{})
				server := httptest.NewServer(w.handler)
				defer server.Close()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				if chunked {
					req.ContentLength = -1
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				var body bytes.Buffer
				if _, err := body.ReadFrom(res.Body); err != nil {
					t.Fatal(err)
				}
				if body.String() != allowedAnswer(tt.uid) {
					t.Errorf("answer %s, want allowed for %q", body.String(), tt.uid)
				}
				eventually(t, "counted as "+tt.result, func() bool {
					return count(t, w, MetricReviews+`{operation="",result="`+tt.result+`"}`) == "1"
				})
				if got := waiting(w); got != "" {
					t.Errorf("events %q, want none", got)
				}
			})
		}
	}
}

func TestHandlerWantsPosts(t *testing.T) {
	w := newWebhook(t, &fakeBus{}, &fakePods{})
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, AdmitPath, nil))
	if rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d, want %d", rec.Code, http.StatusMethodNotAllowed)
	}
}

// The answer leaves before the review is looked at, let alone anything is sent.
func TestAnswer_I11_LeavesFirst(t *testing.T) {
	w := newWebhook(t, &fakeBus{}, &fakePods{})
	ready := &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Ready: true}
	rec := &answerRecorder{ResponseRecorder: httptest.NewRecorder(), flushed: func() { // runs inside the handler
		if n, _ := w.queue.depth(); n != 0 {
			t.Error("an event was queued before the answer left")
		}
	}}
	w.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, AdmitPath, bytes.NewReader(webhooktest.Review{Operation: "DELETE pods", Old: ready}.JSON())))
	if !rec.Flushed || waiting(w) != "Terminating" {
		t.Errorf("flushed %v, events %q", rec.Flushed, waiting(w))
	}
}

type answerRecorder struct {
	*httptest.ResponseRecorder
	flushed func()
}

func (r *answerRecorder) Flush() {
	r.flushed()
	r.ResponseRecorder.Flush()
}

// When the budget for bodies is spent, the answer still comes.
func TestBodyBudget_I11(t *testing.T) {
	w := newWebhook(t, &fakeBus{}, &fakePods{})
	if !w.handler.bodies.budget.TryAcquire(bodyBudget) {
		t.Fatal("budget not free")
	}
	ready := &webhooktest.Pod{IPs: []string{"10.64.1.7"}, Ready: true}
	if got := admit(w, webhooktest.Review{UID: "id-1", Operation: "DELETE pods", Old: ready}); got != allowedAnswer("id-1") {
		t.Errorf("answer %s", got)
	}
	if got := count(t, w, MetricReviews+`{operation="",result="busy"}`); got != "1" {
		t.Errorf("busy reviews: %q, want 1", got)
	}
	w.handler.bodies.budget.Release(bodyBudget)
	if admit(w, webhooktest.Review{Operation: "DELETE pods", Old: ready}); waiting(w) != "Terminating" {
		t.Errorf("events %q after the budget came back", waiting(w))
	}
}
