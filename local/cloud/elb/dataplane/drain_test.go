package dataplane_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// holding is a target whose requests wait until they are released.
type holding struct {
	address string
	came    chan struct{}
	release chan struct{}
}

func newHolding(t testing.TB) *holding {
	h := &holding{came: make(chan struct{}, 100), release: make(chan struct{})}
	h.address = web(t, "held", func(w http.ResponseWriter, r *http.Request) {
		h.came <- struct{}{}
		select {
		case <-h.release:
			fmt.Fprint(w, "held")
		case <-r.Context().Done():
		}
	})
	return h
}

func TestDraining(t *testing.T) {
	start := func(t *testing.T) (*front, *holding, chan string) {
		f, h := newFront(t, route.Application), newHolding(t)
		f.Announce(f.table("g=" + h.address))
		answer := make(chan string, 1)
		go func() { answer <- f.get("/") }()
		<-h.came
		return f, h, answer
	}
	t.Run("what is under way is answered, the rest goes elsewhere", func(t *testing.T) {
		f, h, answer := start(t)
		f.Announce(f.table("g=" + h.address + "-," + web(t, "b", nil)))
		if got := f.get("/"); got != "200 b" {
			t.Errorf("a new request: %s, want 200 b", got)
		}
		close(h.release)
		if got := <-answer; got != "200 held" {
			t.Errorf("the request under way: %s, want 200 held", got)
		}
	})
	t.Run("at its end what is left is cut", func(t *testing.T) {
		f, h, answer := start(t)
		f.Announce(f.table("g=" + h.address + "-"))
		f.Announce(f.table("g="))
		if got := <-answer; got != "502 elb" {
			t.Errorf("the request under way: %s, want 502 elb", got)
		}
	})
	t.Run("I5 registered again, nothing is cut", func(t *testing.T) {
		f, h, answer := start(t)
		f.Announce(f.table("g=" + h.address + "-"))
		f.Announce(f.table("g=" + h.address))
		close(h.release)
		if got := <-answer; got != "200 held" {
			t.Errorf("the request under way: %s, want 200 held", got)
		}
	})
	t.Run("a listener that goes elsewhere cuts nothing", func(t *testing.T) {
		f, h, answer := start(t)
		f.Announce(f.table("other=" + web(t, "b", nil)))
		if got := f.get("/"); got != "200 b" {
			t.Errorf("a new request: %s, want 200 b", got)
		}
		close(h.release)
		if got := <-answer; got != "200 held" {
			t.Errorf("the request under way: %s, want 200 held", got)
		}
	})
	t.Run("an older table changes nothing", func(t *testing.T) {
		f, h, answer := start(t)
		old := f.table("g=")
		f.Announce(f.table("g=" + h.address))
		f.Announce(old)
		close(h.release)
		if got := <-answer; got != "200 held" {
			t.Errorf("the request under way: %s, want 200 held", got)
		}
	})
}

func TestUpgrade(t *testing.T) {
	f := newFront(t, route.Application)
	echo := web(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, rw)
	})
	f.Announce(f.table("g=" + echo))
	c, err := net.Dial("tcp", f.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("upgrade: %v %v", resp, err)
	}
	fmt.Fprint(c, "ping\n")
	if line, err := r.ReadString('\n'); line != "ping\n" {
		t.Fatalf("echo: %q %v", line, err)
	}
	f.Announce(f.table("g=" + echo + "-"))
	fmt.Fprint(c, "pong\n")
	if line, err := r.ReadString('\n'); line != "pong\n" {
		t.Fatalf("echo while it drains: %q %v", line, err)
	}
	f.Announce(f.table("g="))
	if _, err := r.ReadString('\n'); err == nil {
		t.Error("the connection outlived its target")
	}
}
