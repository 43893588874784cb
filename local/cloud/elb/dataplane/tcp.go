package dataplane

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// tcpServer is a listener of a network load balancer.
type tcpServer struct {
	plane *Plane
	arn   string
	ln    net.Listener
	flows sync.WaitGroup
	ctx   context.Context // ends the flows
	cut   context.CancelFunc
}

func (p *Plane) serveTCP(arn string, ln net.Listener) server {
	s := &tcpServer{plane: p, arn: arn, ln: ln}
	s.ctx, s.cut = context.WithCancel(p.ctx)
	p.tasks.Go(s.accept)
	return s
}

func (s *tcpServer) accept() {
	for {
		c, err := s.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, most likely
			s.plane.cfg.Log.Warn("a load balancer's listener cannot accept", "listener", s.arn, "err", err)
			wait, cancel := s.plane.cfg.Clock.After(50 * time.Millisecond)
			select {
			case <-wait:
			case <-s.plane.stop:
			}
			cancel()
			continue
		}
		s.flows.Go(func() { s.forward(c) })
	}
}

func (s *tcpServer) shutdown(ctx context.Context) {
	_ = s.ln.Close()
	stop := context.AfterFunc(ctx, s.cut)
	s.flows.Wait()
	stop()
	s.cut()
}

// forward joins a client to one target.
func (s *tcpServer) forward(client net.Conn) {
	defer client.Close()
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	m, f := s.plane.begin(s.arn, cancel)
	if m == nil {
		reset(client)
		return
	}
	defer m.flows.end(f)
	target, err := s.plane.dial(ctx, "tcp", m.addr.String())
	if err != nil {
		s.plane.cfg.Log.Debug("a target didn't accept", "target", m.addr, "err", err)
		reset(client)
		return
	}
	defer target.Close()
	stop := context.AfterFunc(ctx, func() {
		reset(client)
		reset(target)
	})
	defer stop()
	join(client, target, m.idleTime)
}

// reset closes a connection so that the other side sees a reset.
func reset(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}

// join copies both ways until both sides are done, one fails, or neither has
// said anything for the idle time.
func join(a, b net.Conn, idle time.Duration) {
	var last atomic.Int64
	last.Store(time.Now().UnixNano())
	var both sync.WaitGroup
	pipe := func(to, from net.Conn) {
		if !pour(to, from, idle, &last) {
			reset(a)
			reset(b)
			return
		}
		if w, ok := to.(interface{ CloseWrite() error }); ok {
			_ = w.CloseWrite()
		}
	}
	both.Go(func() { pipe(a, b) })
	pipe(b, a)
	both.Wait()
}

// pour copies one way until the end, and says whether that was an orderly one.
func pour(to, from net.Conn, idle time.Duration, last *atomic.Int64) bool {
	buf := make([]byte, 32<<10)
	for {
		quiet := time.Until(time.Unix(0, last.Load()).Add(idle))
		if quiet <= 0 {
			return false
		}
		_ = from.SetReadDeadline(time.Now().Add(quiet))
		n, err := from.Read(buf)
		if n > 0 {
			last.Store(time.Now().UnixNano())
			_ = to.SetWriteDeadline(time.Now().Add(idle))
			if _, err := to.Write(buf[:n]); err != nil {
				return false
			}
		}
		var timeout net.Error
		switch {
		case err == nil, errors.As(err, &timeout) && timeout.Timeout(): // look again: the other way may be busy
		case errors.Is(err, io.EOF):
			return true
		default:
			return false
		}
	}
}
