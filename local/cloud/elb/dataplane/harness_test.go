package dataplane_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/dataplane"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

const (
	balancer = "lb"
	listener = "listener"
	port     = 8080
)

var nets atomic.Int32

// front is a data plane under test, on an address of its own.
type front struct {
	*dataplane.Plane
	t       testing.TB
	kind    route.Kind
	addr    netip.Addr
	version uint64
	idle    time.Duration
	groups  map[string]*route.Group
	health  map[string]*route.Health // by target address
}

func newFront(t testing.TB, kind route.Kind, change ...func(*dataplane.Config)) *front {
	t.Helper()
	cfg := dataplane.Config{
		Clock: core.RealClock{}, Log: slog.New(slog.DiscardHandler),
		Dial: (&net.Dialer{}).DialContext, ConnectTimeout: 5 * time.Second, Propagation: func() time.Duration { return 0 },
	}
	for _, c := range change {
		c(&cfg)
	}
	pid := os.Getpid()
	f := &front{
		t: t, kind: kind, idle: 10 * time.Second, groups: map[string]*route.Group{}, health: map[string]*route.Health{},
		addr: netip.AddrFrom4([4]byte{127, 200 + byte(nets.Add(1)%50), byte(pid >> 8), byte(pid)}),
	}
	f.Plane = dataplane.New(cfg, kind, f.addr)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		f.Close(ctx)
	})
	if err := f.Open(listener, port); err != nil {
		t.Fatal(err)
	}
	return f
}

// table reads "a=addr:port,addr:port- b=…": groups and their targets; a target
// with "-" drains, with "!" is unhealthy. weights are of the groups in order.
func (f *front) table(text string, weights ...int32) route.Table {
	f.t.Helper()
	f.version++
	t := route.Table{
		Balancer: balancer, Version: f.version, Kind: f.kind, IdleTimeout: f.idle,
		Listeners: map[string]route.Listener{}, Groups: map[string]route.Group{},
	}
	l := route.Listener{ARN: listener, Port: port}
	for i, field := range strings.Fields(text) {
		name, members, _ := strings.Cut(field, "=")
		g := route.Group{ARN: name, Protocol: "HTTP", MinHealthyCount: 1, CutAtEnd: true}
		if f.kind == route.Network {
			g.Protocol, g.CutAtEnd = "TCP", false
		}
		if set := f.groups[name]; set != nil {
			g = *set
		}
		for m := range strings.SplitSeq(members, ",") {
			if m != "" {
				g.Targets = append(g.Targets, f.target(m))
			}
		}
		t.Groups[name] = g
		w := int32(1)
		if i < len(weights) {
			w = weights[i]
		}
		l.Action.Forward = append(l.Action.Forward, route.Weighted{GroupARN: name, Weight: w})
	}
	t.Listeners[listener] = l
	return t
}

func (f *front) target(text string) route.Target {
	f.t.Helper()
	address := strings.TrimRight(text, "-!")
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		f.t.Fatal(err)
	}
	h := f.health[address]
	if h == nil {
		h = &route.Health{}
		f.health[address] = h
	}
	h.Set(!strings.HasSuffix(text, "!"))
	return route.Target{
		Key: route.Key{ID: addr.Addr().String(), Port: int32(addr.Port())}, Addr: addr, Draining: strings.HasSuffix(text, "-"), Health: h,
	}
}

func (f *front) url(path string) string { return fmt.Sprintf("http://%s:%d%s", f.addr, port, path) }
func (f *front) address() string        { return netip.AddrPortFrom(f.addr, port).String() }

// get answers "status body".
func (f *front) get(path string) string {
	f.t.Helper()
	resp, err := client.Get(f.url(path))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	if resp.Header.Get("Server") == "awselb/2.0" {
		return fmt.Sprint(resp.StatusCode, " elb")
	}
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
	Timeout:       10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// web is an HTTP server on an address of its own; it answers with its name.
func web(t testing.TB, name string, h http.HandlerFunc) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if h == nil {
		h = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(ln) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	return ln.Addr().String()
}

// await waits until a condition holds, at most 10 s.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}

// refused is an address where nobody listens.
func refused(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
