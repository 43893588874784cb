package admission_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorder is a webhook that allows everything and keeps what it was asked. An
// API server waits for its webhooks, so when a call returns, all is recorded.
type recorder struct {
	*httptest.Server
	hang chan struct{} // if not nil, answers wait for its end

	mu    sync.Mutex
	asked []asked
}

// asked is one review, as far as tests look at it.
type asked struct {
	pod     string // namespace/name
	line    string // "DELETE pods grace 30 dry-run"
	timeout string // what the API server grants, such as "1s"
}

func newRecorder(t testing.TB) *recorder {
	r := &recorder{}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that don't trust it
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

// ca is the PEM of who vouches for the recorder.
func (r *recorder) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var in admissionv1.AdmissionReview
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil || in.Request == nil {
		http.Error(w, fmt.Sprintf("want an AdmissionReview: %v", err), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.asked = append(r.asked, asked{
		pod: name(in.Request), line: line(in.Request), timeout: q.URL.Query().Get("timeout"),
	})
	hang := r.hang
	r.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-q.Context().Done():
		}
	}
	answer := admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the API server may have gone by now
}

// name is namespace/name of the pod that a review is about. A review of one pod of
// a collection leaves the name to the old object.
func name(q *admissionv1.AdmissionRequest) string {
	if q.Name != "" {
		return q.Namespace + "/" + q.Name
	}
	var old metav1.PartialObjectMetadata
	if err := json.Unmarshal(q.OldObject.Raw, &old); err != nil {
		return q.Namespace + "/" + err.Error()
	}
	return old.Namespace + "/" + old.Name
}

// line is a review in one line.
func line(q *admissionv1.AdmissionRequest) string {
	words := []string{string(q.Operation), strings.TrimSuffix(q.Resource.Resource+"/"+q.SubResource, "/")}
	if q.Operation == admissionv1.Delete {
		var o metav1.DeleteOptions
		switch err := json.Unmarshal(q.Options.Raw, &o); {
		case err != nil:
			words = append(words, err.Error())
		case o.GracePeriodSeconds == nil:
			words = append(words, "grace unset")
		default:
			words = append(words, fmt.Sprintf("grace %d", *o.GracePeriodSeconds))
		}
		if len(q.OldObject.Raw) == 0 {
			words = append(words, "without old object")
		}
	}
	if q.Operation == admissionv1.Update && (len(q.OldObject.Raw) == 0 || len(q.Object.Raw) == 0) {
		words = append(words, "without both objects")
	}
	if q.DryRun != nil && *q.DryRun {
		words = append(words, "dry-run")
	}
	return strings.Join(words, " ")
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

// since returns what was asked about the pods of a namespace after the first n
// reviews, in order. The same in a row counts once: an API server asks up to
// three times about one delete.
func (r *recorder) since(n int, namespace string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, a := range r.asked[n:] {
		if !strings.HasPrefix(a.pod, namespace+"/") {
			continue
		}
		if len(lines) > 0 && lines[len(lines)-1] == a.line {
			continue
		}
		lines = append(lines, a.line)
	}
	return strings.Join(lines, ", ")
}

// pods names the pods of a namespace about which a line was asked, sorted.
func (r *recorder) pods(namespace, line string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, a := range r.asked {
		if name, is := strings.CutPrefix(a.pod, namespace+"/"); is && a.line == line {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// timeouts are the different times that the API server has granted.
func (r *recorder) timeouts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, a := range r.asked {
		all = append(all, a.timeout)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
