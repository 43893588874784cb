package dataplane

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"time"
)

// httpServer is a listener of an application load balancer.
type httpServer struct {
	*http.Server
	plane *Plane
	arn   string
	proxy *httputil.ReverseProxy

	buffers buffers
}

// buffers are for copying bodies.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of 32 KiB.
func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, 32<<10)
}

// Put takes a buffer back.
func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }

func (p *Plane) serveHTTP(arn string, ln net.Listener) server {
	s := &httpServer{plane: p, arn: arn}
	quiet := slog.NewLogLogger(p.cfg.Log.Handler(), slog.LevelDebug)
	s.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { s.rewrite(r) },
		Transport:     roundTripper(func(r *http.Request) (*http.Response, error) { return flight(r.Context()).backend.RoundTrip(r) }),
		ErrorHandler:  s.failed,
		ErrorLog:      quiet,
		FlushInterval: -1,
		BufferPool:    &s.buffers,
	}
	s.Server = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       time.Hour, // client_keep_alive.seconds
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          quiet,
	}
	p.tasks.Go(func() {
		if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			p.cfg.Log.Error("a load balancer's listener ended", "listener", arn, "err", err)
		}
	})
	return s
}

func (s *httpServer) shutdown(ctx context.Context) {
	if err := s.Shutdown(ctx); err != nil {
		_ = s.Server.Close()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type flightKey struct{}

// flight is the target that a request was given.
func flight(ctx context.Context) *member { return ctx.Value(flightKey{}).(*member) }

func (s *httpServer) handle(w http.ResponseWriter, r *http.Request) {
	route := s.plane.action(s.arn)
	switch {
	case route == nil:
		answer(w, http.StatusServiceUnavailable)
		return
	case route.action.Fixed != nil:
		fixed(w, route.action.Fixed)
		return
	case route.action.Redirect != nil:
		redirect(w, r, route.action.Redirect)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	m, f := s.plane.begin(s.arn, cancel)
	if m == nil {
		answer(w, http.StatusServiceUnavailable)
		return
	}
	defer m.flows.end(f)
	stop := context.AfterFunc(s.plane.ctx, func() { cancel(errCut) }) //nolint:contextcheck // the plane's end cuts every request
	defer stop()
	s.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, flightKey{}, m)))
}

// begin chooses a target and opens a flow to it. A target that a newer table
// has taken out between the two is replaced by one of that table: nothing has
// been sent yet.
func (p *Plane) begin(listener string, cancel context.CancelCauseFunc) (*member, *flow) {
	for range 3 {
		m := p.action(listener).pick()
		if m == nil {
			return nil, nil
		}
		if f := m.flows.begin(cancel); f != nil {
			return m, f
		}
	}
	return nil, nil
}

// rewrite adds what an application load balancer adds, and nothing else.
func (s *httpServer) rewrite(r *httputil.ProxyRequest) {
	m := flight(r.In.Context())
	r.Out.URL.Scheme, r.Out.URL.Host = m.scheme, m.addr.String()
	r.Out.Host = r.In.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came, readable or not
	h := r.Out.Header
	for _, k := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := r.In.Header.Values(k); len(v) > 0 {
			h[k] = v // the proxy took them away
		}
	}
	client, _, _ := net.SplitHostPort(r.In.RemoteAddr)
	if before := h.Get("X-Forwarded-For"); before != "" {
		client = before + ", " + client
	}
	h.Set("X-Forwarded-For", client)
	h.Set("X-Forwarded-Proto", "http")
	h.Set("X-Forwarded-Port", localPort(r.In))
	h.Set("X-Amzn-Trace-Id", traceID(h.Get("X-Amzn-Trace-Id"), time.Now()))
}

// localPort is the listener's port.
func localPort(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return strconv.Itoa(local.Port)
	}
	return ""
}

// failed answers for a target that didn't.
func (s *httpServer) failed(w http.ResponseWriter, r *http.Request, err error) {
	var timeout net.Error
	switch {
	case errors.Is(context.Cause(r.Context()), errCut):
		answer(w, http.StatusBadGateway)
	case r.Context().Err() != nil: // the client went away: nobody to tell
		answer(w, 460)
	case errors.As(err, &timeout) && timeout.Timeout():
		answer(w, http.StatusGatewayTimeout)
	default:
		answer(w, http.StatusBadGateway)
	}
	s.plane.cfg.Log.Debug("a target didn't answer", "target", flight(r.Context()).addr, "err", err)
}
