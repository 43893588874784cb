package dataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// Config is what a data plane depends on.
type Config struct {
	Clock core.Clock
	Log   *slog.Logger
	// Dial connects to the published address of a target.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Propagation is how old the table is that traffic follows; it may change.
	Propagation func() time.Duration
	// ConnectTimeout ends an attempt to reach a target; 0 means 10 s.
	ConnectTimeout time.Duration
	// MaxConnections bounds the clients of one listener; more wait to be
	// accepted. 0 means 4096.
	MaxConnections int
}

// Plane is the data plane of one load balancer.
type Plane struct {
	cfg  Config
	kind route.Kind
	addr netip.Addr

	routing atomic.Pointer[routing]

	mu        sync.Mutex
	version   uint64
	backends  map[backendKey]*backend
	counters  map[string]*atomic.Uint64 // by group and listener: whose turn it is
	listeners map[string]server         // by ARN
	closed    bool

	queue queue
	ctx   context.Context // ends when Close has waited long enough
	cut   context.CancelFunc
	stop  chan struct{} // closed when Close begins
	tasks sync.WaitGroup
}

// server is a listener with its socket.
type server interface {
	// shutdown accepts nothing more and waits for what is under way until ctx
	// ends; then it closes that too.
	shutdown(ctx context.Context)
}

// New returns a data plane that listens nowhere yet.
func New(cfg Config, kind route.Kind, addr netip.Addr) *Plane {
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 4096
	}
	p := &Plane{
		cfg: cfg, kind: kind, addr: addr,
		backends: map[backendKey]*backend{}, counters: map[string]*atomic.Uint64{}, listeners: map[string]server{},
		stop: make(chan struct{}),
	}
	p.ctx, p.cut = context.WithCancel(context.Background())
	p.queue.wake = make(chan struct{}, 1)
	p.routing.Store(&routing{})
	p.tasks.Go(p.propagate)
	return p
}

// Open listens on a port for the listener of that ARN. Opening it again moves
// it: the old socket is closed once what it accepted is done.
func (p *Plane) Open(arn string, port int32) error {
	address := netip.AddrPortFrom(p.addr, uint16(port)).String()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("the local load balancer cannot listen on %s: %w (use a free port, from 1024 up without root)", address, err)
	}
	ln = limit(ln, p.cfg.MaxConnections)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = ln.Close()
		return errors.New("the load balancer is being deleted")
	}
	p.retire(arn)
	if p.kind == route.Network {
		p.listeners[arn] = p.serveTCP(arn, ln)
	} else {
		p.listeners[arn] = p.serveHTTP(arn, ln)
	}
	return nil
}

// Drop closes a listener: nothing new is accepted, what is under way ends in
// its own time.
func (p *Plane) Drop(arn string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire(arn)
}

// retire takes a listener out and lets it end in the background. The plane is
// locked.
func (p *Plane) retire(arn string) {
	old := p.listeners[arn]
	if old == nil {
		return
	}
	delete(p.listeners, arn)
	p.tasks.Go(func() { old.shutdown(p.ctx) })
}

// Close stops listening and waits until what is under way is done or ctx ends;
// then it is cut off.
func (p *Plane) Close(ctx context.Context) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	close(p.stop)
	for arn := range p.listeners {
		p.retire(arn)
	}
	p.mu.Unlock()
	after := context.AfterFunc(ctx, p.cut)
	p.tasks.Wait()
	after()
	p.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.backends {
		b.idle()
	}
}

// limit bounds the connections that are open at once.
func limit(ln net.Listener, n int) net.Listener {
	return &limited{Listener: ln, slots: make(chan struct{}, n), done: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots chan struct{}
	once  sync.Once
	done  chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotted{TCPConn: c.(*net.TCPConn), free: func() { <-l.slots }}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// slotted is a connection that gives its slot back when it is closed.
type slotted struct {
	*net.TCPConn
	once sync.Once
	free func()
}

func (s *slotted) Close() error {
	defer s.once.Do(s.free)
	return s.TCPConn.Close()
}
