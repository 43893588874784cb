package dataplane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/dataplane"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

func TestChoice(t *testing.T) {
	a, b, c := web(t, "a", nil), web(t, "b", nil), web(t, "c", nil)
	named := strings.NewReplacer("A", a, "B", b, "C", c)
	tests := map[string]struct {
		table   string
		weights []int32
		group   route.Group // of "g", if it is not the usual one
		want    map[string]int
	}{
		"one after the other":          {"g=A,B,C", nil, route.Group{}, map[string]int{"a": 40, "b": 40, "c": 40}},
		"only the healthy":             {"g=A,B!,C", nil, route.Group{}, map[string]int{"a": 60, "c": 60}},
		"not those that drain":         {"g=A,B-,C", nil, route.Group{}, map[string]int{"a": 60, "c": 60}},
		"none healthy: all":            {"g=A!,B!", nil, route.Group{}, map[string]int{"a": 60, "b": 60}},
		"none healthy: not draining":   {"g=A!,B!,C-", nil, route.Group{}, map[string]int{"a": 60, "b": 60}},
		"too few healthy: all":         {"g=A,B!,C!", nil, route.Group{ARN: "g", Protocol: "HTTP", MinHealthyCount: 2}, map[string]int{"a": 40, "b": 40, "c": 40}},
		"enough healthy":               {"g=A,B,C!", nil, route.Group{ARN: "g", Protocol: "HTTP", MinHealthyCount: 2}, map[string]int{"a": 60, "b": 60}},
		"too small a share healthy":    {"g=A,B!,C!", nil, route.Group{ARN: "g", Protocol: "HTTP", MinHealthyPercent: 34}, map[string]int{"a": 40, "b": 40, "c": 40}},
		"enough of a share healthy":    {"g=A,B!,C!", nil, route.Group{ARN: "g", Protocol: "HTTP", MinHealthyPercent: 33}, map[string]int{"a": 120}},
		"by weight":                    {"g=A h=B", []int32{3, 1}, route.Group{}, map[string]int{"a": 90, "b": 30}},
		"weight 0 is nothing":          {"g=A h=B", []int32{0, 1}, route.Group{}, map[string]int{"b": 120}},
		"a weighted group is empty":    {"g=A h=", []int32{1, 1}, route.Group{}, map[string]int{"a": 60, "503": 60}},
		"no targets":                   {"g=", nil, route.Group{}, map[string]int{"503": 120}},
		"only draining ones":           {"g=A-", nil, route.Group{}, map[string]int{"503": 120}},
		"all weights 0":                {"g=A", []int32{0}, route.Group{}, map[string]int{"503": 120}},
		"least outstanding: all equal": {"g=A,B", nil, route.Group{ARN: "g", Protocol: "HTTP", Algorithm: route.LeastOutstanding}, map[string]int{"a": 120}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFront(t, route.Application)
			if tt.group.ARN != "" {
				f.groups["g"] = &tt.group
			}
			f.Announce(f.table(named.Replace(tt.table), tt.weights...))
			got := map[string]int{}
			for range 120 {
				status, body, _ := strings.Cut(f.get("/"), " ")
				if status != "200" {
					body = status
				}
				got[body]++
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("120 requests went to %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRandomChoiceReachesAll(t *testing.T) {
	f := newFront(t, route.Application)
	f.groups["g"] = &route.Group{ARN: "g", Protocol: "HTTP", Algorithm: route.WeightedRandom}
	f.Announce(f.table("g=" + web(t, "a", nil) + "," + web(t, "b", nil)))
	seen := map[string]bool{}
	await(t, "both targets were chosen", func() bool { seen[f.get("/")] = true; return seen["200 a"] && seen["200 b"] })
}

func TestOwnAnswers(t *testing.T) {
	slow := web(t, "slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	garbage := raw(t, func(c net.Conn, _ int) { _, _ = io.WriteString(c, "hello\r\n\r\n"); _ = c.Close() })
	tests := map[string]struct{ table, want string }{
		"refused":         {"g=" + refused(t), "502 elb"},
		"not HTTP":        {"g=" + garbage, "502 elb"},
		"silent":          {"g=" + slow, "504 elb"},
		"nobody":          {"g=", "503 elb"},
		"no listener yet": {"", "503 elb"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFront(t, route.Application)
			f.idle = 50 * time.Millisecond
			if tt.table != "" {
				f.Announce(f.table(tt.table))
			}
			if got := f.get("/"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("no way to the target", func(t *testing.T) {
		f := newFront(t, route.Application, func(c *dataplane.Config) {
			c.ConnectTimeout = 50 * time.Millisecond
			c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		})
		f.Announce(f.table("g=127.0.0.1:1"))
		if got := f.get("/"); got != "504 elb" {
			t.Errorf("got %s, want 504 elb", got)
		}
	})
}

func TestFixedAndRedirect(t *testing.T) {
	f := newFront(t, route.Application)
	table := f.table("")
	act := route.Action{Fixed: &route.Fixed{Status: 404, ContentType: "text/plain", Body: "nothing"}}
	table.Listeners[listener] = route.Listener{ARN: listener, Port: port, Action: act}
	f.Announce(table)
	if got := f.get("/"); got != "404 elb" {
		t.Errorf("fixed response: %s, want 404 elb", got)
	}
	table.Version++
	act = route.Action{Redirect: &route.Redirect{Status: 301, Protocol: "HTTPS", Host: "#{host}", Port: "443", Path: "/new/#{path}", Query: "#{query}"}}
	table.Listeners[listener] = route.Listener{ARN: listener, Port: port, Action: act}
	f.Announce(table)
	resp, err := client.Get(f.url("/a/b?c=d"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	want := fmt.Sprintf("https://%s:443/new/a/b?c=d", f.addr)
	if got := resp.Header.Get("Location"); resp.StatusCode != 301 || got != want {
		t.Errorf("redirect: %d to %s, want 301 to %s", resp.StatusCode, got, want)
	}
}

func TestHeaders(t *testing.T) {
	got := make(chan *http.Request, 1)
	f := newFront(t, route.Application)
	f.Announce(f.table("g=" + web(t, "a", func(_ http.ResponseWriter, r *http.Request) { got <- r.Clone(context.Background()) })))
	send := func(header ...string) http.Header {
		req, _ := http.NewRequest(http.MethodGet, f.url("/x?y=z;w"), nil)
		req.Host = "shop.example"
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		r := <-got
		if r.Host != "shop.example" || r.URL.RawQuery != "y=z;w" || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
			t.Errorf("the target saw host %q, query %q, length %d, encoding %v", r.Host, r.URL.RawQuery, r.ContentLength, r.TransferEncoding)
		}
		return r.Header
	}
	h := send()
	for k, want := range map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Port": "8080", "X-Forwarded-Host": ""} {
		if v := h.Get(k); v != want {
			t.Errorf("%s is %q, want %q", k, v, want)
		}
	}
	if v := h.Get("X-Amzn-Trace-Id"); !strings.HasPrefix(v, "Root=1-") || len(v) != len("Root=1-12345678-123456789012345678901234") {
		t.Errorf("X-Amzn-Trace-Id is %q", v)
	}
	h = send("X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "kept", "X-Amzn-Trace-Id", "Root=1-1-2")
	for k, want := range map[string]string{"X-Forwarded-For": "192.0.2.1, 127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "kept"} {
		if v := h.Get(k); v != want {
			t.Errorf("%s is %q, want %q", k, v, want)
		}
	}
	if v := h.Get("X-Amzn-Trace-Id"); !strings.HasPrefix(v, "Self=1-") || !strings.HasSuffix(v, ";Root=1-1-2") {
		t.Errorf("X-Amzn-Trace-Id is %q, want the Root that came and a Self", v)
	}
}

// raw is a TCP server that hands each connection to serve, with its number.
func raw(t testing.TB, serve func(c net.Conn, n int)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() { // ends with the listener
		for n := 1; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(c, n)
		}
	}()
	return ln.Addr().String()
}

// A target that closes a kept connection just when the next request comes is
// where clients like to try again. The load balancer must not: what the target
// loses, the client sees.
func TestNothingIsSentTwice(t *testing.T) {
	for _, tt := range []struct{ method, body, header string }{
		{"GET", "", ""}, {"HEAD", "", ""}, {"OPTIONS", "", ""}, {"DELETE", "", ""}, {"PUT", "x", ""},
		{"POST", "", ""}, {"POST", "x", ""}, {"POST", "", "Idempotency-Key"}, {"POST", "x", "Idempotency-Key"},
	} {
		t.Run(tt.method+tt.body+tt.header, func(t *testing.T) {
			var requests atomic.Int32
			f := newFront(t, route.Application)
			f.Announce(f.table("g=" + raw(t, func(c net.Conn, _ int) {
				defer c.Close()
				r := bufio.NewReader(c)
				for n := 0; ; n++ {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					requests.Add(1)
					if n == 1 {
						return // the second one on this connection gets no answer
					}
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			})))
			if got := f.get("/"); got != "200 " {
				t.Fatalf("the first request: %s", got)
			}
			req, _ := http.NewRequest(tt.method, f.url("/"), nil)
			if tt.body != "" {
				req, _ = http.NewRequest(tt.method, f.url("/"), strings.NewReader(tt.body))
			}
			if tt.header != "" {
				req.Header.Set(tt.header, "1")
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if n := requests.Load(); resp.StatusCode != 502 || n != 2 {
				t.Errorf("the client got %d and the target saw %d requests, want 502 and 2", resp.StatusCode, n)
			}
		})
	}
}

func TestConnectionsToTargetsAreKept(t *testing.T) {
	var conns atomic.Int32
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler(), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	f := newFront(t, route.Application)
	f.Announce(f.table("g=" + ln.Addr().String()))
	for range 50 {
		f.get("/")
	}
	if n := conns.Load(); n > 3 {
		t.Errorf("50 requests took %d connections", n)
	}
}
