package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/elbridge/elbridge/local/node/internal/probe"
)

func TestCounter(t *testing.T) {
	tests := map[string]struct {
		start             bool
		success, failures int32
		results           string // + and -
		want              string // verdict after each: T or F, ! where a threshold was reached
	}{
		"ready at the first success": {false, 1, 3, "+", "T!"},
		"three failures in a row":    {false, 1, 3, "+---", "T! T T F!"},
		"failures with a success":    {false, 1, 3, "+--+--", "T! T T T! T T"},
		"two successes needed":       {false, 2, 1, "+-++", "F F! F T!"},
		"liveness begins well":       {true, 1, 2, "--", "T F!"},
		"failing on":                 {true, 1, 2, "----", "T F! F F"},
		"defaults":                   {false, 0, 0, "+---", "T! T T F!"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := probe.NewCounter(tt.start, &v1.Probe{SuccessThreshold: tt.success, FailureThreshold: tt.failures})
			var got []string
			for _, r := range tt.results {
				verdict, reached := c.Add(r == '+')
				text := map[bool]string{true: "T", false: "F"}[verdict]
				if reached {
					text += "!"
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s gives %s, want %s", tt.results, strings.Join(got, " "), tt.want)
			}
		})
	}
}

// serve starts a server and returns its address and a container that names its port.
func serve(t *testing.T, tls bool) (ip string, c *v1.Container) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
	})
	mux.HandleFunc("/host/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != r.PathValue("name") {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.com/", http.StatusFound)
	})
	s := httptest.NewUnstartedServer(mux)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	ap := netip.MustParseAddrPort(s.Listener.Addr().String())
	return ap.Addr().String(), &v1.Container{Ports: []v1.ContainerPort{{Name: "web", ContainerPort: int32(ap.Port())}}}
}

func TestOnce(t *testing.T) {
	plain, plainC := serve(t, false)
	secure, secureC := serve(t, true)
	web := intstr.FromString("web")
	httpGet := func(path string, scheme v1.URIScheme, headers ...v1.HTTPHeader) v1.ProbeHandler {
		return v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: web, Scheme: scheme, HTTPHeaders: headers}}
	}
	tests := map[string]struct {
		handler v1.ProbeHandler
		ip      string
		c       *v1.Container
		fails   bool
	}{
		"200":                      {handler: httpGet("/status/200", ""), ip: plain, c: plainC},
		"399":                      {handler: httpGet("/status/399", v1.URISchemeHTTP), ip: plain, c: plainC},
		"404":                      {handler: httpGet("/status/404", ""), ip: plain, c: plainC, fails: true},
		"503":                      {handler: httpGet("/status/503", ""), ip: plain, c: plainC, fails: true},
		"query":                    {handler: httpGet("/status/200?x=1", ""), ip: plain, c: plainC},
		"host header":              {handler: httpGet("/host/pod.example", "", v1.HTTPHeader{Name: "Host", Value: "pod.example"}), ip: plain, c: plainC},
		"redirect to another host": {handler: httpGet("/elsewhere", ""), ip: plain, c: plainC},
		"unknown certificate":      {handler: httpGet("/status/200", v1.URISchemeHTTPS), ip: secure, c: secureC},
		"plain to TLS":             {handler: httpGet("/status/200", ""), ip: secure, c: secureC, fails: true},
		"TCP":                      {handler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: web}}, ip: plain, c: plainC},
		"command":                  {handler: v1.ProbeHandler{Exec: &v1.ExecAction{}}},
		"address out of the stack": {handler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: web, Host: "192.0.2.1"}}, ip: plain, c: plainC, fails: true},
		"no such port":             {handler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("none")}}, ip: plain, c: plainC, fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := probe.Once(t.Context(), tt.handler, tt.c, tt.ip); (err != nil) != tt.fails {
				t.Errorf("error %v, want one: %v", err, tt.fails)
			}
		})
	}
}

func TestOnceEndsWithItsContext(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	port := netip.MustParseAddrPort(ln.Addr().String()).Port()
	handler := v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(int32(port))}}
	if err := probe.Once(ctx, handler, &v1.Container{}, "127.0.0.1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestLoopReportsUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	probe.Loop(ctx, &v1.Probe{FailureThreshold: 1}, probe.NewCounter(false, &v1.Probe{FailureThreshold: 1}),
		func(context.Context) error { return nil },
		func(verdict, reached bool, err error) {
			got = append(got, fmt.Sprint(verdict, reached, err))
			cancel()
		})
	if len(got) != 1 || got[0] != "true true <nil>" {
		t.Errorf("reported %q", got)
	}
}
