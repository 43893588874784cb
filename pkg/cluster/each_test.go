package cluster_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// ofRevision has each page of a list be of the revision that its name asks for.
func ofRevision(answer func(*http.Request) any, revision func(page string) string) func(*http.Request) any {
	return func(r *http.Request) any {
		v := answer(r)
		if l, ok := v.(*corev1.PodList); ok {
			l.ResourceVersion = revision(r.URL.Query().Get("continue"))
		}
		return v
	}
}

func always(revision string) func(string) string { return func(string) string { return revision } }

// wantStreamClass is wantClass for the reads that have two classes more.
func wantStreamClass(t *testing.T, err, class error) {
	t.Helper()
	for _, c := range append([]error{cluster.ErrExpired, cluster.ErrSilent}, allClasses...) {
		if errors.Is(err, c) != errors.Is(class, c) {
			t.Errorf("error %v, want class %v alone", err, class)
		}
	}
	if (err == nil) != (class == nil) {
		t.Errorf("error %v, want %v", err, class)
	}
}

func TestEach(t *testing.T) {
	var many strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&many, "p%d ", i)
	}
	tests := map[string]struct {
		pages    []string
		revision func(string) string
		want     string // pods that were handed on
		err      error
	}{
		"none":                               {pages: []string{""}},
		"one page":                           {pages: []string{"a b"}, want: "a b"},
		"several, also empty ones":           {pages: []string{"a", "", "b", "", "c"}, want: "a b c"},
		"a server that ignores the limit":    {pages: []string{many.String()}, want: strings.TrimSpace(many.String())},
		"I8 the first fails":                 {pages: []string{"!500"}, err: cluster.ErrUnreachable},
		"I8 the third fails":                 {pages: []string{"a", "b", "!500", "d"}, want: "a b", err: cluster.ErrUnreachable},
		"I8 the list grew too old":           {pages: []string{"a", "!410", "b"}, want: "a", err: cluster.ErrExpired},
		"I8 the connection breaks":           {pages: []string{"a", "!cut"}, want: "a", err: cluster.ErrUnreachable},
		"I8 a page is something else":        {pages: []string{"a", "!html"}, want: "a", err: cluster.ErrUnreachable},
		"I8 a page of another revision":      {pages: []string{"a", "b"}, revision: func(page string) string { return "7" + page }, want: "a", err: cluster.ErrExpired},
		"I8 a revision that nobody can name": {pages: []string{"a"}, revision: always(""), err: cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.revision == nil {
				tt.revision = always("77")
			}
			s := newServer(t, ofRevision(pages(tt.pages...), tt.revision))
			var got []*podevent.Pod
			rv, err := newWorld(s).client().Each(t.Context(), cluster.Scope{Namespace: "ingress", LabelSelector: "app in (a,b)"}, func(p *podevent.Pod) { got = append(got, p) })
			wantStreamClass(t, err, tt.err)
			if names(got) != tt.want || (rv == "77") != (err == nil) {
				t.Errorf("pods %q as of %q, want %q; a revision only of a whole list", names(got), rv, tt.want)
			}
			for i, r := range s.requests() {
				q := r.URL.Query()
				if r.URL.Path != "/api/v1/namespaces/ingress/pods" || q.Get("limit") != "500" || q.Get("labelSelector") != "app in (a,b)" || q.Has("resourceVersion") || q.Has("resourceVersionMatch") {
					t.Errorf("page %d: %s; want the same of each page, and no resourceVersion", i, r.URL)
				}
			}
		})
	}
}

func TestEachErrors(t *testing.T) {
	tests := map[string]struct {
		answer any
		want   error
	}{
		"P103 403": {status(403, metav1.StatusReasonForbidden, 0), cluster.ErrUnauthorized},
		"P103 401": {status(401, metav1.StatusReasonUnauthorized, 0), cluster.ErrUnauthorized},
		"429":      {status(429, metav1.StatusReasonTooManyRequests, 32), cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(*http.Request) any { return tt.answer })
			_, err := newWorld(s).client().Each(t.Context(), cluster.Scope{}, func(*podevent.Pod) { t.Error("a pod") })
			wantStreamClass(t, err, tt.want)
			if !strings.Contains(err.Error(), "cluster prod: listing all pods: ") {
				t.Errorf("%v, want it to say what was listed where", err)
			}
		})
	}
}

func TestEachWithoutEnd(t *testing.T) {
	s := newServer(t, func(*http.Request) any {
		return &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{Continue: "more", ResourceVersion: "7"}}
	})
	_, err := newWorld(s).client().Each(t.Context(), cluster.Scope{}, func(*podevent.Pod) {})
	wantStreamClass(t, err, cluster.ErrUnreachable)
	if n := len(s.requests()); n != 1000 {
		t.Errorf("%d pages, want 1000: 250,000 pods, were each page half full", n)
	}
}

// As kube-apiserver compresses, and as somebody between may answer.
func TestEachEncodings(t *testing.T) {
	page := func(w http.ResponseWriter, r *http.Request) []byte {
		rec := httptest.NewRecorder()
		answer := ofRevision(pages("a b c"), always("77"))(r)
		(&server{}).write(rec, r, 200, answer.(runtime.Object))
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		return rec.Body.Bytes()
	}
	zipped := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(b)
		_ = z.Close()
		return out.Bytes()
	}
	tests := map[string]struct {
		write func(http.ResponseWriter, *http.Request)
		want  string
		err   error
	}{
		"gzip": {func(w http.ResponseWriter, r *http.Request) {
			b := zipped(page(w, r))
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(b)
		}, "a b c", nil},
		"I8 gzip that is cut at its end": {func(w http.ResponseWriter, r *http.Request) {
			b := zipped(page(w, r))
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(b[:len(b)-4])
		}, "a b c", cluster.ErrUnreachable},
		"JSON": {func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-Want-Json", "yes")
			_, _ = w.Write(page(w, r))
		}, "a b c", nil},
		"I8 cut after two pods": {func(w http.ResponseWriter, r *http.Request) {
			b := page(w, r)
			_, _ = w.Write(b[:len(b)-10])
		}, "a b", cluster.ErrUnreachable},
		"I8 a Status with 200": {func(w http.ResponseWriter, r *http.Request) {
			(&server{}).write(w, r, 200, status(410, metav1.StatusReasonExpired, 0))
		}, "", cluster.ErrExpired},
		"P103 a Status of no rights with 200": {func(w http.ResponseWriter, r *http.Request) {
			(&server{}).write(w, r, 200, status(403, metav1.StatusReasonForbidden, 0))
		}, "", cluster.ErrUnauthorized},
		"I8 another kind": {func(w http.ResponseWriter, r *http.Request) {
			(&server{}).write(w, r, 200, pod("web-0"))
		}, "", cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(*http.Request) any { return http.HandlerFunc(tt.write) })
			var got []*podevent.Pod
			rv, err := newWorld(s).client().Each(t.Context(), cluster.Scope{}, func(p *podevent.Pod) { got = append(got, p) })
			wantStreamClass(t, err, tt.err)
			if names(got) != tt.want || (rv == "77") != (err == nil) {
				t.Errorf("pods %q as of %q, want %q", names(got), rv, tt.want)
			}
			ps, err := newWorld(s).client().Pods(t.Context(), "", "")
			if (err == nil) != (tt.err == nil) || err != nil && ps != nil {
				t.Errorf("Pods: %q, error %v; want all of them or none", names(ps), err)
			}
		})
	}
}
