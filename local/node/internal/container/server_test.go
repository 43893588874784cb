package container_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/vpc"
)

const bound = 20 * time.Second // of any wait here

var nextAddress atomic.Int32

// address is one that no other test of this package uses.
func address() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 64, 254, byte(nextAddress.Add(1))})
}

func start(t *testing.T, spec container.ServerSpec) *container.Server {
	t.Helper()
	if len(spec.Ports) == 0 {
		spec.Ports = []container.Port{{Number: 8080}}
	}
	s, err := container.StartServer(t.Context(), spec, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

var client = &http.Client{Timeout: bound, Transport: &http.Transport{
	DialContext: vpc.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
}}

func status(t *testing.T, url string) int {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func ended(t *testing.T, r container.Running) container.Exit {
	t.Helper()
	select {
	case <-r.Done():
		return r.Exit()
	case <-time.After(bound):
		t.Fatal("it does not end")
	}
	return container.Exit{}
}

func refused(t *testing.T, a netip.Addr, port int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if c, err := vpc.Dial(ctx, "tcp", net.JoinHostPort(a.String(), strconv.Itoa(port))); err == nil {
		_ = c.Close()
		t.Errorf("port %d of %s is open", port, a)
	}
}

func TestServerSaysWhoItIs(t *testing.T) {
	a, b := address(), netip.MustParseAddr("fd00::fe77")
	start(t, container.ServerSpec{
		Identity: container.Identity{Pod: "web", UID: "1"}, Addresses: []netip.Addr{a, b},
		Ports: []container.Port{{Number: 8080}, {Number: 8443, TLS: true}},
	})
	for _, url := range []string{"http://" + a.String() + ":8080/x", "http://[" + b.String() + "]:8080/x", "https://" + a.String() + ":8443/x"} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		var answer container.Answer
		err = json.NewDecoder(resp.Body).Decode(&answer)
		_ = resp.Body.Close()
		if err != nil || answer.Pod != "web" || answer.Path != "/x" || resp.Header.Get(container.HeaderUID) != "1" {
			t.Errorf("%s: %+v %v", url, answer, err)
		}
	}
}

func TestServerAnswers(t *testing.T) {
	a := address()
	s := start(t, container.ServerSpec{Addresses: []netip.Addr{a}, ReadyPaths: []string{"/probe"}})
	base := "http://" + a.String() + ":8080"
	check := func(when string, want map[string]int) {
		t.Helper()
		for path, code := range want {
			if got := status(t, base+path); got != code {
				t.Errorf("%s, %s: %d, want %d", when, path, got, code)
			}
		}
	}
	check("at first", map[string]int{
		"/": 200, "/readyz": 200, "/healthz": 200, "/livez": 200, "/probe": 200, "/?status=418": 418, "/?delay=1ms": 200,
		"/?status=99": 400, "/?status=x": 400, "/?delay=soon": 400,
	})
	s.SetReady(false)
	check("not ready", map[string]int{"/": 200, "/readyz": 503, "/probe": 503, "/healthz": 200})
	s.SetReady(true)
	s.SetHealth(500)
	check("unhealthy", map[string]int{"/": 200, "/readyz": 200, "/probe": 200, "/healthz": 500})
}

func TestServerIsReadyLater(t *testing.T) {
	a := address()
	var clock atomic.Int64
	s, err := container.StartServer(t.Context(), container.ServerSpec{
		Addresses: []netip.Addr{a}, Ports: []container.Port{{Number: 8080}}, Behaviour: container.Behaviour{ReadyAfter: time.Minute},
	}, func() time.Time { return time.Unix(clock.Load(), 0) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	for at, want := range map[int64]int{59: 503, 60: 200} {
		clock.Store(at)
		if got := status(t, "http://"+a.String()+":8080/readyz"); got != want {
			t.Errorf("after %d s: %d, want %d", at, got, want)
		}
	}
}

func TestServerEnds(t *testing.T) {
	tests := map[string]struct {
		behaviour container.Behaviour
		end       func(*container.Server)
		want      container.Exit // but its time
	}{
		"asked":           {end: (*container.Server).Terminate, want: container.Exit{Reason: "Completed"}},
		"asked twice":     {end: func(s *container.Server) { s.Terminate(); s.Terminate() }, want: container.Exit{Reason: "Completed"}},
		"killed":          {end: (*container.Server).Kill, want: container.Exit{Code: 137, Reason: "Error"}},
		"asked, deaf":     {container.Behaviour{IgnoreSIGTERM: true}, func(s *container.Server) { s.Terminate(); s.Kill() }, container.Exit{Code: 137, Reason: "Error"}},
		"asked, slow":     {container.Behaviour{TermDelay: time.Millisecond}, (*container.Server).Terminate, container.Exit{Reason: "Completed"}},
		"killed, slow":    {container.Behaviour{TermDelay: time.Hour}, func(s *container.Server) { s.Terminate(); s.Kill() }, container.Exit{Code: 137, Reason: "Error"}},
		"out of memory":   {end: func(s *container.Server) { s.Crash(container.Exit{Code: 137, Reason: "OOMKilled"}) }, want: container.Exit{Code: 137, Reason: "OOMKilled"}},
		"crashed, killed": {end: func(s *container.Server) { s.Crash(container.Exit{Code: 3}); s.Kill() }, want: container.Exit{Code: 3, Reason: "Error"}},
		"by itself":       {container.Behaviour{ExitAfter: time.Millisecond, ExitCode: 7}, func(*container.Server) {}, container.Exit{Code: 7, Reason: "Error"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := address()
			s := start(t, container.ServerSpec{Addresses: []netip.Addr{a}, Behaviour: tt.behaviour})
			tt.end(s)
			got := ended(t, s)
			if got.At.IsZero() {
				t.Error("it ended at no time")
			}
			got.At = time.Time{}
			if got != tt.want {
				t.Errorf("ended as %+v, want %+v", got, tt.want)
			}
			refused(t, a, 8080)
			again := start(t, container.ServerSpec{Addresses: []netip.Addr{a}}) // its address is free at once
			again.Kill()
		})
	}
}

func TestKillBreaksRequestsInFlight(t *testing.T) {
	a := address()
	s := start(t, container.ServerSpec{Addresses: []netip.Addr{a}})
	conn, err := vpc.Dial(t.Context(), "tcp", a.String()+":8080")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(bound))
	if _, err := io.WriteString(conn, "GET /?delay=1h HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	ended(t, s)
}

func TestServerNeedsItsAddress(t *testing.T) {
	a := address()
	start(t, container.ServerSpec{Addresses: []netip.Addr{a}})
	spec := container.ServerSpec{Addresses: []netip.Addr{a}, Ports: []container.Port{{Number: 8081}, {Number: 8080}}}
	if _, err := container.StartServer(t.Context(), spec, time.Now); err == nil {
		t.Error("two servers have one port")
	}
	refused(t, a, 8081) // none is left half open
	spec.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	if _, err := container.StartServer(t.Context(), spec, time.Now); err == nil {
		t.Error("it listens out of the stack")
	}
}
