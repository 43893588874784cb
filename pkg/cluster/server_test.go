package cluster_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/elbridge/elbridge/pkg/cluster"
)

// server is an API server as far as a client's view of it goes: over TLS and
// HTTP/2, and it keeps what it was asked.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []*http.Request
	conns  int
	answer func(*http.Request) any // an object, a *metav1.Status, "cut", "hang", the status of a page of HTML, who writes a stream, or who writes it all
}

func newServer(t *testing.T, answer func(*http.Request) any) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are wanted
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	switch v := s.answer(r).(type) {
	case runtime.Object:
		status := http.StatusOK
		if st, ok := v.(*metav1.Status); ok {
			status = int(st.Code)
			if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(st.Details.RetryAfterSeconds))
			}
		}
		s.write(w, r, status, v)
	case int: // of somebody who is no API server
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(v)
		fmt.Fprint(w, "<html>no such page</html>")
	case func(http.ResponseWriter):
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
		w.WriteHeader(http.StatusOK)
		v(w)
	case http.HandlerFunc:
		v(w, r)
	case string:
		if v == "hang" {
			<-r.Context().Done()
			return
		}
		panic(http.ErrAbortHandler)
	}
}

// write answers in protobuf, or in JSON to who asks for nothing else.
func (s *server) write(w http.ResponseWriter, r *http.Request, status int, v runtime.Object) {
	if !strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) || r.Header.Get("X-Want-Json") != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
		return
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme).SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	w.WriteHeader(status)
	if err := info.Serializer.Encode(v, w); err != nil {
		panic(err)
	}
}

// asked returns the paths and queries since the last time, one a line.
func (s *server) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.seen {
		out = append(out, r.URL.String())
	}
	s.seen = nil
	return strings.Join(out, "\n")
}

func (s *server) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

func (s *server) ca() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// world is an EKS cluster's surroundings: who describes it, who signs for it,
// and what time it is.
type world struct {
	mu        sync.Mutex
	endpoint  string
	ca        string
	err       error    // of DescribeCluster
	described []string // "name region"
	now       time.Time
	minted    int           // times that credentials were asked for
	life      time.Duration // of credentials; 0 never end
}

func (w *world) DescribeCluster(_ context.Context, in *eks.DescribeClusterInput, opts ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	var o eks.Options
	for _, opt := range opts {
		opt(&o)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.described = append(w.described, *in.Name+" "+o.Region)
	if w.err != nil {
		return nil, w.err
	}
	c := &types.Cluster{}
	if w.endpoint != "" {
		c.Endpoint, c.CertificateAuthority = &w.endpoint, &types.Certificate{Data: &w.ca}
	}
	return &eks.DescribeClusterOutput{Cluster: c}, nil
}

// Retrieve gives credentials with another session token each time.
func (w *world) Retrieve(context.Context) (aws.Credentials, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.minted++
	c := aws.Credentials{AccessKeyID: "ASIAX", SecretAccessKey: "s", SessionToken: fmt.Sprint("session-", w.minted)}
	if w.life > 0 {
		c.CanExpire, c.Expires = true, w.now.Add(w.life)
	}
	return c, nil
}

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) describes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.described)
}

// at has EKS say that the cluster is at s.
func (w *world) at(s *server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endpoint, w.ca = s.URL, s.ca()
}

func newWorld(s *server) *world {
	w := &world{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	if s != nil {
		w.at(s)
	}
	return w
}

// client dials as the registrar does; the SDK's endpoint is overridden, as on
// the local stack.
func (w *world) client() *cluster.Client {
	elsewhere := "http://127.0.0.1:9"
	d := &cluster.Dialer{AWS: aws.Config{Region: "eu-west-1", BaseEndpoint: &elsewhere, Credentials: w}, EKS: w, UserAgent: "elbridge-registrar/test", Now: w.Now}
	return d.Client(cluster.Config{Name: "prod", EKS: &cluster.EKS{Name: "prod-eks"}})
}

// status is an API server's own refusal.
func status(code int, reason metav1.StatusReason, retryAfter int32) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: "as told", Details: &metav1.StatusDetails{Kind: "pods", Name: "web-0", RetryAfterSeconds: retryAfter}}
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ingress", Name: name, UID: "uid-of-1", ResourceVersion: "7"}}
	for _, c := range change {
		c(p)
	}
	return p
}
