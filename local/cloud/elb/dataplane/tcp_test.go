package dataplane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/dataplane"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// echo sends back each line after its name.
func echo(t testing.TB, name string) string {
	return raw(t, func(c net.Conn, _ int) {
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				if line == "" {
					_, _ = io.WriteString(c, "end\n") // the other way is still open
				}
				return
			}
			fmt.Fprintf(c, "%s %s", name, line)
		}
	})
}

type caller struct {
	net.Conn
	r *bufio.Reader
}

func (f *front) call() *caller {
	f.t.Helper()
	c, err := net.Dial("tcp", f.address())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return &caller{c, bufio.NewReader(c)}
}

// say sends a line and returns the answer, or "-" if the connection is dead.
func (c *caller) say(line string) string {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "-"
	}
	return c.hear()
}

func (c *caller) hear() string {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "-"
	}
	return line[:len(line)-1]
}

func TestTCPByConnection(t *testing.T) {
	f := newFront(t, route.Network)
	a, b := echo(t, "a"), echo(t, "b")
	f.Announce(f.table("g=" + a + "," + b))
	first, second := f.call(), f.call()
	one, two := first.say("x"), second.say("x")
	if one == two || first.say("y")[0] != one[0] || second.say("y")[0] != two[0] {
		t.Errorf("connections went to %q and %q, want one each, and to stay there", one, two)
	}
	_ = first.Conn.(*net.TCPConn).CloseWrite()
	if got := first.hear(); got != "end" {
		t.Errorf("after closing one way the other says %q, want end", got)
	}
}

func TestTCPDraining(t *testing.T) {
	tests := map[string]struct {
		cutAtEnd bool
		want     string // of the old connection after the end
	}{
		"goes on after the delay":         {false, "a z"},
		"is closed at the end if it says": {true, "-"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFront(t, route.Network)
			f.groups["g"] = &route.Group{ARN: "g", Protocol: "TCP", CutAtEnd: tt.cutAtEnd}
			a, b := echo(t, "a"), echo(t, "b")
			f.Announce(f.table("g=" + a))
			old := f.call()
			old.say("x")
			f.Announce(f.table("g=" + a + "-," + b))
			if got := f.call().say("x"); got != "b x" {
				t.Errorf("a new connection: %q, want b x", got)
			}
			if got := old.say("y"); got != "a y" {
				t.Errorf("the old connection while draining: %q, want a y", got)
			}
			f.Announce(f.table("g=" + b))
			if got := old.say("z"); got != tt.want {
				t.Errorf("the old connection after the end: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTCPTargetTurnsUnhealthy(t *testing.T) {
	f := newFront(t, route.Network)
	a, b := echo(t, "a"), echo(t, "b")
	f.Announce(f.table("g=" + a + "," + b))
	one, two := f.call(), f.call()
	if first, _ := one.say("x"), two.say("x"); first == "b x" {
		one, two = two, one
	}
	addr := f.target(a + "!")
	f.CutTarget("g", addr.Key)
	if one.say("y") != "-" || two.say("y") != "b y" {
		t.Error("want the unhealthy target's connection closed, and the other one open")
	}
	for range 4 {
		if got := f.call().say("z"); got != "b z" {
			t.Errorf("a new connection: %q, want b z", got)
		}
	}
}

func TestTCPNobodyThere(t *testing.T) {
	for name, table := range map[string]string{"no targets": "g=", "refused": "g=" + refused(t), "no listener yet": ""} {
		t.Run(name, func(t *testing.T) {
			f := newFront(t, route.Network)
			if table != "" {
				f.Announce(f.table(table))
			}
			c, err := net.Dial("tcp", f.address())
			if err != nil {
				return // the reset came before we were through
			}
			defer c.Close()
			if got := (&caller{c, bufio.NewReader(c)}).say("x"); got != "-" {
				t.Errorf("got %q, want a reset", got)
			}
		})
	}
}

func TestTCPSilenceEnds(t *testing.T) {
	f := newFront(t, route.Network)
	f.idle = 50 * time.Millisecond
	f.Announce(f.table("g=" + echo(t, "a")))
	c := f.call()
	for range 5 {
		if got := c.say("x"); got != "a x" {
			t.Fatalf("a busy connection: %q", got)
		}
	}
	if got := c.hear(); got != "-" {
		t.Errorf("a silent connection: %q, want it closed", got)
	}
}

func TestClose(t *testing.T) {
	t.Run("waits for requests", func(t *testing.T) {
		f, h := newFront(t, route.Application), newHolding(t)
		f.Announce(f.table("g=" + h.address))
		answer := make(chan string, 1)
		go func() { answer <- f.get("/") }()
		<-h.came
		closed := make(chan struct{})
		go func() { f.Close(context.Background()); close(closed) }()
		await(t, "the port is closed", func() bool { _, err := net.Dial("tcp", f.address()); return err != nil })
		close(h.release)
		if got := <-answer; got != "200 held" {
			t.Errorf("the request under way: %s, want 200 held", got)
		}
		<-closed
	})
	t.Run("not for ever", func(t *testing.T) {
		f, h := newFront(t, route.Application), newHolding(t)
		f.Announce(f.table("g=" + h.address))
		answer := make(chan string, 1)
		go func() { answer <- f.get("/") }()
		<-h.came
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		f.Close(ctx)
		if got := <-answer; got == "200 held" {
			t.Errorf("the request under way: %s, want it cut", got)
		}
	})
	t.Run("ends connections", func(t *testing.T) {
		f := newFront(t, route.Network)
		f.Announce(f.table("g=" + echo(t, "a")))
		c := f.call()
		c.say("x")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		f.Close(ctx)
		if got := c.say("y"); got != "-" {
			t.Errorf("a connection after Close: %q", got)
		}
	})
	t.Run("opens nothing more", func(t *testing.T) {
		f := newFront(t, route.Application)
		f.Close(context.Background())
		if err := f.Open("other", 8081); err == nil {
			t.Error("opened a listener after Close")
		}
	})
}

func TestOpen(t *testing.T) {
	f := newFront(t, route.Application)
	if err := f.Open("other", port); err == nil {
		t.Error("opened one port twice")
	}
	f.Announce(f.table("g=" + web(t, "a", nil)))
	if err := f.Open(listener, port+1); err != nil {
		t.Fatal(err)
	}
	await(t, "the old port is closed", func() bool { _, err := net.Dial("tcp", f.address()); return err != nil })
	resp, err := client.Get(fmt.Sprintf("http://%s:%d/", f.addr, port+1))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	f.Drop(listener)
	await(t, "the new port is closed", func() bool {
		_, err := net.Dial("tcp", netip.AddrPortFrom(f.addr, port+1).String())
		return err != nil
	})
}

func TestConnectionsAreBounded(t *testing.T) {
	f := newFront(t, route.Network, func(c *dataplane.Config) { c.MaxConnections = 1 })
	f.Announce(f.table("g=" + echo(t, "a")))
	first, second := f.call(), f.call()
	first.say("x")
	_, _ = fmt.Fprintln(second, "y")
	_ = first.Close()
	if got := second.hear(); got != "a y" {
		t.Errorf("the connection that waited: %q, want a y", got)
	}
}
