package container

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/local/vpc"
)

// Behaviour is what a built-in server can be told to do.
type Behaviour struct {
	ReadyAfter    time.Duration // answers 503 on its readiness paths until then
	TermDelay     time.Duration // keeps serving that long after SIGTERM
	IgnoreSIGTERM bool          // serves until it is killed
	ExitAfter     time.Duration // ends by itself; 0 is never
	ExitCode      int           // of that end
}

// ServerSpec describes a built-in server.
type ServerSpec struct {
	Identity   Identity
	Addresses  []netip.Addr // published; it listens behind each of them
	Ports      []Port
	ReadyPaths []string // beside /readyz: where the readiness probe asks
	Behaviour  Behaviour
}

// Port is one port to listen on.
type Port struct {
	Number uint16
	TLS    bool // with a certificate nobody signed
}

// Server is a container of the agent's own: an HTTP server that says who it is.
type Server struct {
	*ending
	spec   ServerSpec
	now    func() time.Time
	start  time.Time
	http   *http.Server
	cancel context.CancelFunc // ends what waits inside

	listening   sync.WaitGroup
	terminating atomic.Bool
	notReady    atomic.Bool  // told by the control API
	health      atomic.Int32 // status for /healthz; 0 is 200
}

const drainLimit = time.Hour // the grace period ends it long before

// StartServer listens on every address and port and serves until it is ended.
func StartServer(ctx context.Context, spec ServerSpec, now func() time.Time) (*Server, error) {
	listeners, err := listenAll(ctx, spec)
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{ending: newEnding(), spec: spec, now: now, start: now(), cancel: cancel}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return inner },
		Protocols:         new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	for _, l := range listeners {
		s.listening.Go(func() { _ = s.http.Serve(l) })
	}
	if spec.Behaviour.ExitAfter > 0 {
		go s.endLater(inner, spec.Behaviour.ExitAfter, Exit{Code: spec.Behaviour.ExitCode})
	}
	return s, nil
}

func listenAll(ctx context.Context, spec ServerSpec) (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
		}
	}()
	var lc net.ListenConfig
	for _, p := range spec.Ports {
		for _, published := range spec.Addresses {
			real, err := vpc.Loopback(published)
			if err != nil {
				return all, err
			}
			l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(real.String(), strconv.Itoa(int(p.Number))))
			if err != nil {
				return all, fmt.Errorf("port %d behind %s: %w", p.Number, published, err)
			}
			if p.TLS {
				cert, err := selfSigned()
				if err != nil {
					return append(all, l), err
				}
				l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}})
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// SetReady makes the readiness paths answer 503, or answer as they would.
func (s *Server) SetReady(ready bool) { s.notReady.Store(!ready) }

// SetHealth makes /healthz answer with this status; 0 is as it would.
func (s *Server) SetHealth(status int) { s.health.Store(int32(status)) }

// Terminate implements Running: no new connections, requests in flight are
// answered, then the end.
func (s *Server) Terminate() {
	if s.spec.Behaviour.IgnoreSIGTERM || s.terminating.Swap(true) {
		return
	}
	go s.drain()
}

func (s *Server) drain() {
	if !s.pause(s.spec.Behaviour.TermDelay) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	if s.http.Shutdown(ctx) == nil {
		s.finish(Exit{At: s.now()})
	}
}

func (s *Server) endLater(ctx context.Context, after time.Duration, e Exit) {
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
		e.At = s.now()
		s.finish(e)
	}
}

// pause waits and says whether the server is still there.
func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.done:
		return false
	case <-t.C:
		return true
	}
}

// Kill implements Running.
func (s *Server) Kill() { s.finish(Exit{Code: CodeKilled, At: s.now()}) }

// Crash implements Running.
func (s *Server) Crash(e Exit) {
	e.At = s.now()
	s.finish(e)
}

// finish closes every socket before anybody learns that the container has ended,
// so that its address can be used again at once.
func (s *Server) finish(e Exit) {
	_ = s.http.Close()
	s.cancel()
	s.listening.Wait()
	s.end(e)
}
