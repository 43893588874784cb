package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/pkg/cluster"
)

var allClasses = []error{cluster.ErrNotFound, cluster.ErrUnauthorized, cluster.ErrUnreachable}

func wantClass(t *testing.T, err, class error) {
	t.Helper()
	for _, c := range allClasses {
		if errors.Is(err, c) != errors.Is(class, c) {
			t.Errorf("error %v, want class %v alone", err, class)
		}
	}
}

func TestErrorClasses(t *testing.T) {
	tests := map[string]struct {
		answer any
		want   error
	}{
		"404":                              {status(404, metav1.StatusReasonNotFound, 0), cluster.ErrNotFound},
		"I8 404 of no API server":          {404, cluster.ErrUnreachable},
		"P103 401":                         {status(401, metav1.StatusReasonUnauthorized, 0), cluster.ErrUnauthorized},
		"P103 403":                         {status(403, metav1.StatusReasonForbidden, 0), cluster.ErrUnauthorized},
		"403 of a gateway":                 {403, cluster.ErrUnauthorized},
		"429 that says wait":               {status(429, metav1.StatusReasonTooManyRequests, 32), cluster.ErrUnreachable},
		"503 that says wait":               {status(503, metav1.StatusReasonServiceUnavailable, 32), cluster.ErrUnreachable},
		"500":                              {status(500, metav1.StatusReasonInternalError, 0), cluster.ErrUnreachable},
		"502 of a load balancer":           {502, cluster.ErrUnreachable},
		"200 that is no pod":               {200, cluster.ErrUnreachable},
		"cut":                              {"cut", cluster.ErrUnreachable},
		"no answer within the time for it": {"hang", cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(*http.Request) any { return tt.answer })
			for what, read := range map[string]func(context.Context, *cluster.Client) error{
				"Pod": func(ctx context.Context, c *cluster.Client) error {
					_, err := c.Pod(ctx, "ingress", "web-0")
					return err
				},
				"Node":     func(ctx context.Context, c *cluster.Client) error { _, err := c.Node(ctx, "node-a"); return err },
				"Pods":     func(ctx context.Context, c *cluster.Client) error { _, err := c.Pods(ctx, "", ""); return err },
				"PodsByIP": func(ctx context.Context, c *cluster.Client) error { _, err := c.PodsByIP(ctx, "10.64.1.7"); return err },
			} {
				ctx := t.Context()
				if tt.answer == "hang" {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
					defer cancel()
				}
				s.asked()
				err := read(ctx, newWorld(s).client())
				wantClass(t, err, tt.want)
				if err != nil && !strings.Contains(err.Error(), "cluster prod: ") {
					t.Errorf("%s: %v names no cluster", what, err)
				}
				want := 1
				if name == "P103 401" { // with a new token
					want = 2
				}
				_, broken := tt.answer.(string) // Go's transport may repeat such a GET, and one given up on may come late
				if n := len(s.requests()); n != want && !broken {
					t.Errorf("%s: %d requests, want %d: the queue repeats, nothing else", what, n, want)
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	s := newServer(t, nil)
	s.Close()
	_, err := newWorld(s).client().Pod(t.Context(), "ingress", "web-0")
	wantClass(t, err, cluster.ErrUnreachable)
}

// A cluster that was made anew has another endpoint or authority.
func TestDescribesAgain(t *testing.T) {
	for name, leave := range map[string]func(old *server, w *world){
		"nobody at the endpoint": func(old *server, _ *world) { old.Close() },
		"wrong CA":               func(_ *server, w *world) { w.ca = otherCA(t) },
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(*http.Request) any { return pod("web-0") }
			old, next := newServer(t, answer), newServer(t, answer)
			w := newWorld(old)
			leave(old, w)
			c := w.client()
			ask := func() error { _, err := c.Pod(t.Context(), "ingress", "web-0"); return err }

			wantClass(t, ask(), cluster.ErrUnreachable)
			w.at(next)
			wantClass(t, ask(), cluster.ErrUnreachable)
			if n := w.describes(); n != 1 {
				t.Errorf("described %d times within moments, want once", n)
			}
			w.pass(11 * time.Second)
			wantClass(t, ask(), cluster.ErrUnreachable) // by the old way, for the last time
			if err := ask(); err != nil || w.describes() != 2 {
				t.Errorf("error %v after %d descriptions, want the new endpoint after two", err, w.describes())
			}
		})
	}
}

// otherCA is a good certificate that vouches for nobody here.
func otherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestFailedDescribe(t *testing.T) {
	w := newWorld(nil)
	w.err = errors.New("no route")
	c := w.client()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := c.Pod(t.Context(), "ingress", "web-0")
			wantClass(t, err, cluster.ErrUnreachable)
		})
	}
	all.Wait()
	if n := w.describes(); n != 1 {
		t.Errorf("20 who ask at once describe the cluster %d times, want once", n)
	}
	s := newServer(t, func(*http.Request) any { return pod("web-0") })
	w.at(s)
	w.err = nil
	w.pass(time.Second)
	if _, err := c.Pod(t.Context(), "ingress", "web-0"); err != nil {
		t.Errorf("a second later: %v", err)
	}
	if got := w.described[0]; got != "prod-eks eu-west-1" {
		t.Errorf("described %s, want prod-eks eu-west-1", got)
	}
}

func TestClusterWithoutEndpoint(t *testing.T) {
	_, err := newWorld(nil).client().Pod(t.Context(), "ingress", "web-0")
	wantClass(t, err, cluster.ErrUnreachable)
}

func TestErrorsOfEKS(t *testing.T) {
	tests := map[string]struct {
		status int
		code   string
		want   error
	}{
		"I14 our role may not":    {403, "AccessDeniedException", cluster.ErrUnauthorized},
		"I14 session is over":     {403, "ExpiredTokenException", cluster.ErrUnauthorized},
		"I8 there is no cluster":  {404, "ResourceNotFoundException", cluster.ErrUnauthorized},
		"throttled":               {429, "TooManyRequestsException", cluster.ErrUnreachable},
		"EKS has troubles":        {500, "ServerException", cluster.ErrUnreachable},
		"EKS is not there at all": {503, "ServiceUnavailableException", cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-ErrorType", tt.code)
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(`{"message":"as told"}`))
			}))
			defer srv.Close()
			w := newWorld(nil)
			cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: &srv.URL, Credentials: w, RetryMaxAttempts: 1}
			d := &cluster.Dialer{AWS: cfg, EKS: eks.NewFromConfig(cfg), Now: w.Now}
			_, err := d.Client(cluster.Config{Name: "prod", EKS: &cluster.EKS{Name: "prod"}}).Pod(t.Context(), "ingress", "web-0")
			wantClass(t, err, tt.want)
		})
	}
}

// A connection that was silent for half a minute may have died in a freeze.
func TestConnectionsAfterAFreeze(t *testing.T) {
	s := newServer(t, func(*http.Request) any { return pod("web-0") })
	w := newWorld(s)
	c := w.client()
	for i, tt := range []struct {
		pause time.Duration
		conns int
	}{{0, 1}, {time.Second, 1}, {29 * time.Second, 1}, {31 * time.Second, 2}, {0, 2}, {time.Hour, 3}} {
		w.pass(tt.pause)
		if _, err := c.Pod(t.Context(), "ingress", "web-0"); err != nil {
			t.Fatal(err)
		}
		if n := s.connections(); n != tt.conns {
			t.Errorf("step %d, after %s: %d connections, want %d", i, tt.pause, n, tt.conns)
		}
	}
	for _, r := range s.requests() {
		if r.ProtoMajor != 2 || r.UserAgent() != "elbridge-registrar/test" {
			t.Fatalf("%s by %q, want HTTP/2 and the function's own name", r.Proto, r.UserAgent())
		}
	}
}

func TestKubeconfig(t *testing.T) {
	s := newServer(t, func(*http.Request) any { return pod("web-0") })
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []any{map[string]any{"name": "x", "cluster": map[string]string{"server": s.URL, "certificate-authority-data": s.ca()}}},
		"users":    []any{map[string]any{"name": "x", "user": map[string]string{"token": "t0ken"}}},
		"contexts": []any{map[string]any{"name": "x", "context": map[string]string{"cluster": "x", "user": "x"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(nil)
	d := &cluster.Dialer{Now: w.Now}
	if _, err := d.Client(cluster.Config{Name: "lab", Kubeconfig: path}).Pod(t.Context(), "ingress", "web-0"); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[0].Header.Get("Authorization"); got != "Bearer t0ken" {
		t.Errorf("Authorization %q", got)
	}
	_, err = d.Client(cluster.Config{Name: "lab", Kubeconfig: path + ".gone"}).Pod(t.Context(), "ingress", "web-0")
	wantClass(t, err, cluster.ErrUnauthorized)
}

func TestParseConfigs(t *testing.T) {
	tests := map[string]struct{ text, want string }{ // want: names and EKS names, or words of the error, each with ; between
		"one":             {`[{"name":"prod","eks":{}}]`, "prod=prod@"},
		"of another name": {`[{"name":"prod","eks":{"name":"p1","region":"us-east-1"}},{"name":"lab","kubeconfig":"/k"}]`, "prod=p1@us-east-1; lab=/k"},
		"not JSON":        {`prod`, "!want a JSON array such as"},
		"not an array":    {`{"name":"prod"}`, "!want a JSON array such as"},
		"unknown field":   {`[{"name":"prod","eks":{},"observ":true}]`, `!unknown field "observ"`},
		"text after it":   {`[{"name":"prod","eks":{}}] x`, "!text after the JSON array"},
		"empty":           {`[]`, "!names no cluster"},
		"every fault":     {`[{"eks":{}},{"name":"a"},{"name":"b","eks":{},"kubeconfig":"k"},{"name":"b","eks":{}}]`, "![0].name: missing; [1] (a): want exactly one of; [2] (b): want exactly one of; [3].name: \"b\" is named twice"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cs, err := cluster.ParseConfigs(tt.text)
			if words, bad := strings.CutPrefix(tt.want, "!"); bad {
				for word := range strings.SplitSeq(words, "; ") {
					if err == nil || !strings.Contains(err.Error(), word) {
						t.Errorf("error %v, want %q in it", err, word)
					}
				}
				return
			}
			var got []string
			for _, c := range cs {
				if c.EKS != nil {
					got = append(got, c.Name+"="+c.EKS.Name+"@"+c.EKS.Region)
				} else {
					got = append(got, c.Name+"="+c.Kubeconfig)
				}
			}
			if strings.Join(got, "; ") != tt.want || err != nil {
				t.Errorf("got %q, error %v; want %q", got, err, tt.want)
			}
		})
	}
}
