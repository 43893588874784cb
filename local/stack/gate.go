package stack

import (
	"context"
	"io"
	"net"
	"sync"
)

// Gate is a TCP way to an address that can be shut: the functions reach the API
// server through one, so that it can be out of their reach alone.
type Gate struct {
	to string
	l  net.Listener

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// newGate listens on a free port of loopback.
func newGate(to string) (*Gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Gate{to: to, l: l, conns: map[net.Conn]bool{}}, nil
}

// Addr is the gate's own address.
func (g *Gate) Addr() string { return g.l.Addr().String() }

// Shut ends what goes through the gate and lets nothing through any more; Open
// ends that.
func (g *Gate) Shut() { g.set(true) }

// Open lets connections through again.
func (g *Gate) Open() { g.set(false) }

func (g *Gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for c := range g.conns {
			_ = c.Close() // what it carries is to be lost
		}
	}
}

// run serves until ctx ends.
func (g *Gate) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		_ = g.l.Close() // ends Accept
		g.Shut()
	})
	defer stop()
	defer g.wg.Wait()
	for {
		c, err := g.l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		g.wg.Go(func() { g.pass(ctx, c) })
	}
}

func (g *Gate) pass(ctx context.Context, in net.Conn) {
	if !g.track(in) {
		return
	}
	defer g.drop(in)
	var d net.Dialer
	out, err := d.DialContext(ctx, "tcp", g.to)
	if err != nil || !g.track(out) {
		return
	}
	defer g.drop(out)
	one := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		g.wg.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // either side's end ends both
			one <- struct{}{}
		})
	}
	<-one
}

// track keeps a connection to be cut, or closes it where the gate is shut.
func (g *Gate) track(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		_ = c.Close()
		return false
	}
	g.conns[c] = true
	return true
}

func (g *Gate) drop(c net.Conn) {
	_ = c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}
