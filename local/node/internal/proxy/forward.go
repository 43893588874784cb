package proxy

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/vpc"
)

const dialTimeout = 5 * time.Second

// Forwarder copies the connections of one listener to backends. Connections that
// stand keep their backend when the listener closes, as with kube-proxy.
type Forwarder struct {
	listener net.Listener
	pick     func() (netip.AddrPort, bool)
	wg       sync.WaitGroup
}

// Listen starts to forward what arrives at listen, a loopback address, to the
// published address that pick chooses for each connection. When ctx ends, the
// listener and every connection do.
func Listen(ctx context.Context, listen netip.AddrPort, pick func() (netip.AddrPort, bool)) (*Forwarder, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", listen.String())
	if err != nil {
		return nil, err
	}
	f := &Forwarder{listener: ln, pick: pick}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	f.wg.Go(func() {
		defer stop()
		f.accept(ctx)
	})
	return f, nil
}

// Close stops listening; connections go on.
func (f *Forwarder) Close() { _ = f.listener.Close() }

// Wait returns when the listener and all connections have ended.
func (f *Forwarder) Wait() { f.wg.Wait() }

func (f *Forwarder) accept(ctx context.Context) {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.wg.Go(func() { f.serve(ctx, conn) })
	}
}

func (f *Forwarder) serve(ctx context.Context, in net.Conn) {
	defer in.Close()
	backend, ok := f.pick()
	if !ok {
		reset(in)
		return
	}
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	out, err := vpc.Dial(dialCtx, "tcp", backend.String())
	cancel()
	if err != nil {
		reset(in)
		return
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { _ = in.Close(); _ = out.Close() })
	defer stop()
	join(in, out)
}

// join copies both ways until both directions have ended.
func join(a, b net.Conn) {
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			if _, err := io.Copy(way[0], way[1]); err != nil {
				_ = way[0].Close() // a broken side breaks the other
				_ = way[1].Close()
				return
			}
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	wg.Wait()
}

// reset makes the client see a refused connection rather than an empty answer.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
