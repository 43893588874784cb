// Package address hands out pod addresses as the VPC CNI does: from the node's
// range, in turn, and not again before an address has cooled down. Pods have one
// address of each family; both end in the same two bytes. It holds no address of
// a node and knows nothing of pods.
package address

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

var (
	// ErrExhausted says that a node has no address to give just now.
	ErrExhausted = errors.New("no free address")
	// ErrInUse says that the chosen address still belongs to somebody.
	ErrInUse = errors.New("address in use")
)

// Reserved addresses at both ends of a range, as in a subnet of a VPC.
const (
	reservedLow  = 4
	reservedHigh = 1
)

// Pool holds the addresses of all nodes. It is safe for concurrent use.
type Pool struct {
	cooldown time.Duration
	now      func() time.Time

	mu    sync.Mutex
	nodes map[string]*nodeRange
	inUse map[netip.Addr]bool
	free  map[netip.Addr]time.Time // released, and when it may be given again
}

type nodeRange struct {
	prefix netip.Prefix
	next   netip.Addr
}

// NewPool returns a pool that keeps a released address back for cooldown.
func NewPool(cooldown time.Duration, now func() time.Time) *Pool {
	return &Pool{
		cooldown: cooldown, now: now,
		nodes: map[string]*nodeRange{},
		inUse: map[netip.Addr]bool{},
		free:  map[netip.Addr]time.Time{},
	}
}

// AddNode gives a node its range.
func (p *Pool) AddNode(node string, prefix netip.Prefix) error {
	if !prefix.Addr().Is4() || prefix.Bits() > 28 || prefix != prefix.Masked() {
		return fmt.Errorf("pod range %s of node %s: want an IPv4 prefix of at most 28 bits, such as 10.64.1.0/24", prefix, node)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for other, r := range p.nodes {
		if r.prefix.Overlaps(prefix) {
			return fmt.Errorf("pod range %s of node %s overlaps %s of node %s", prefix, node, r.prefix, other)
		}
	}
	p.nodes[node] = &nodeRange{prefix: prefix, next: prefix.Addr()}
	return nil
}

// Next takes the next free address of the node, or returns ErrExhausted.
func (p *Pool) Next(node string) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.nodes[node]
	if r == nil {
		return netip.Addr{}, fmt.Errorf("node %s has no pod range", node)
	}
	first, last := bounds(r.prefix)
	size := int(lowBits(last)-lowBits(first)) + 1
	a := r.next
	for range size {
		if a.Less(first) || last.Less(a) {
			a = first
		}
		if !p.inUse[a] && !p.free[a].After(p.now()) {
			p.take(a)
			r.next = a.Next()
			return a, nil
		}
		a = a.Next()
	}
	return netip.Addr{}, fmt.Errorf("range %s of node %s: %w", r.prefix, node, ErrExhausted)
}

// Take takes the chosen address whatever its cool-down, or returns ErrInUse.
func (p *Pool) Take(a netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse[a] {
		return fmt.Errorf("%s: %w", a, ErrInUse)
	}
	p.take(a)
	return nil
}

func (p *Pool) take(a netip.Addr) {
	p.inUse[a] = true
	delete(p.free, a)
}

// Release gives an address back; its cool-down begins.
func (p *Pool) Release(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse[a] {
		delete(p.inUse, a)
		p.free[a] = p.now().Add(p.cooldown)
	}
}

// Second returns the address of the second family that goes with a.
func Second(a netip.Addr) netip.Addr {
	b := a.As4()
	return netip.AddrFrom16([16]byte{0: 0xfd, 14: b[2], 15: b[3]})
}

func bounds(prefix netip.Prefix) (first, last netip.Addr) {
	base := lowBits(prefix.Addr())
	size := uint32(1) << (32 - prefix.Bits())
	return fromBits(base + reservedLow), fromBits(base + size - 1 - reservedHigh)
}

func lowBits(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func fromBits(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
