package dataplane

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// errCut is why a request or connection ended that was under way when its
// target's time was over.
var errCut = errors.New("the target left the load balancer")

// backend is a target as long as the table has it, draining included.
type backend struct {
	addr      netip.AddrPort
	scheme    string
	idleTime  time.Duration // how long it may be silent
	transport *http.Transport
	flows     flows
}

func (p *Plane) newBackend(g route.Group, addr netip.AddrPort, idle time.Duration) *backend {
	b := &backend{addr: addr, scheme: "http", idleTime: idle}
	if g.Protocol == "HTTPS" {
		b.scheme = "https"
	}
	b.transport = &http.Transport{
		DialContext:           p.dial,
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as an ALB: it doesn't check what its targets present
		TLSHandshakeTimeout:   p.cfg.ConnectTimeout,
		ResponseHeaderTimeout: idle,
		IdleConnTimeout:       idle,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   256,
		DisableCompression:    true,
	}
	return b
}

// dial connects to a target within the connect timeout.
func (p *Plane) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.ConnectTimeout)
	defer cancel()
	return p.cfg.Dial(ctx, network, address)
}

// idle closes the kept connections that nobody uses.
func (b *backend) idle() { b.transport.CloseIdleConnections() }

// RoundTrip sends a request once. The transport would send some again when a
// kept connection turns out to be dead; a load balancer does not.
func (b *backend) RoundTrip(req *http.Request) (*http.Response, error) {
	once := req.Clone(req.Context())
	once.GetBody = nil
	if (once.Body == nil || once.Body == http.NoBody) && replayable(once) {
		// A body that cannot be read twice is never sent twice. "identity"
		// keeps it off the wire: neither a length nor chunks are written.
		once.Body = io.NopCloser(strings.NewReader(""))
		once.ContentLength = 0
		once.TransferEncoding = []string{"identity"}
	}
	return b.transport.RoundTrip(once)
}

// replayable says whether the transport takes it on itself to repeat a request
// without a body. (Others, as an empty POST, it repeats only if not a byte was
// written; they keep their Content-Length: 0, which some servers insist on.)
func replayable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

// flows are the requests or connections that are under way.
type flows struct {
	mu      sync.Mutex
	open    map[*flow]bool
	accepts bool
}

type flow struct{ cancel context.CancelCauseFunc }

// accept says whether flows may begin.
func (f *flows) accept(yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepts = yes
}

// begin adds a flow that cancel ends; nil if nothing new may begin.
func (f *flows) begin(cancel context.CancelCauseFunc) *flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.accepts {
		return nil
	}
	if f.open == nil {
		f.open = map[*flow]bool{}
	}
	one := &flow{cancel}
	f.open[one] = true
	return one
}

func (f *flows) end(one *flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, one)
}

// cut ends what is under way.
func (f *flows) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.open {
		one.cancel(errCut)
	}
}

func (f *flows) count() int {
	_, n := f.state()
	return n
}

func (f *flows) state() (accepts bool, underWay int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.accepts, len(f.open)
}
