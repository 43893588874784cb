package proxy

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Proxy listens on the frontends of the table it was given last.
type Proxy struct {
	log *slog.Logger

	mu        sync.Mutex
	frontends map[netip.AddrPort]*frontend
	closing   sync.WaitGroup // one for each that listens no more
}

type frontend struct {
	forwarder *Forwarder
	backends  atomic.Pointer[[]netip.AddrPort]
	turn      atomic.Uint64
}

// New returns a proxy without frontends.
func New(log *slog.Logger) *Proxy {
	return &Proxy{log: log, frontends: map[netip.AddrPort]*frontend{}}
}

// Update makes the proxy serve t. A frontend that is gone stops listening. One
// that can't listen is logged and tried again with the next Update.
func (p *Proxy) Update(ctx context.Context, t Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for address, f := range p.frontends {
		if _, wanted := t[address]; !wanted {
			f.forwarder.Close()
			p.closing.Go(f.forwarder.Wait)
			delete(p.frontends, address)
		}
	}
	for address, backends := range t {
		if f := p.frontends[address]; f != nil {
			f.backends.Store(&backends)
			continue
		}
		f := &frontend{}
		f.backends.Store(&backends)
		forwarder, err := Listen(ctx, address, f.pick)
		if err != nil {
			p.log.Warn("cluster IP not served", "address", address.String(), "err", err)
			continue
		}
		f.forwarder = forwarder
		p.frontends[address] = f
	}
}

// Wait returns when every connection has ended, after the context given to Update has.
func (p *Proxy) Wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.frontends {
		f.forwarder.Wait()
	}
	p.closing.Wait()
}

func (f *frontend) pick() (netip.AddrPort, bool) {
	backends := *f.backends.Load()
	if len(backends) == 0 {
		return netip.AddrPort{}, false
	}
	return backends[(f.turn.Add(1)-1)%uint64(len(backends))], true
}
