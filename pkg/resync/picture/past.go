package picture

import (
	"net/netip"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
)

const (
	// pastWindow is the witness window: what is older witnesses nothing (I9).
	pastWindow = 3 * time.Minute
	// maxPast bounds what is remembered, about 1 KiB each; the oldest goes first.
	// It is a tenth of the largest cluster that is measured, gone at once.
	maxPast = 10_000
)

// PastKind says how a pod and an address, or a pod and a pattern, came apart.
type PastKind string

// The kinds.
const (
	// Gone: the stream said that the pod is in its scope no more. It may live on
	// with labels that the scope does not admit: read it.
	Gone PastKind = "Gone"
	// Deselected: the pod lives, and patterns that selected it do no more, since
	// its own labels or annotations changed.
	Deselected PastKind = "Deselected"
	// Finished: the pod's phase became Succeeded or Failed; from then on the network
	// may give its address to others, however long its object stays.
	Finished PastKind = "Finished"
	// Moved: the pod lives and no longer has the address; it may have none for now.
	Moved PastKind = "Moved"
)

// Past is what was seen of a pod that had an address.
type Past struct {
	Pod   claim.Seen // as it was seen last, without labels
	Kind  PastKind
	Ended bool // of one that is gone or finished: it was terminating, or finished before our eyes
	At    time.Time
	// Patterns are the texts of the patterns that selected the pod; of a deselected
	// one, those that do no more.
	Patterns []string
}

// Had reports whether the binding selected the pod.
func (p Past) Had(b *binding.Binding) bool { return slices.Contains(p.Patterns, b.Pattern.String()) }

// past is by address, the oldest first, and in the order in which it was seen.
type past struct {
	by    map[string][]Past
	queue []remembered
}

type remembered struct {
	address string
	at      time.Time
}

func (p *past) add(addresses []string, what Past) {
	if p.by == nil {
		p.by = map[string][]Past{}
	}
	for _, a := range addresses {
		a = canonical(a)
		p.by[a] = append(p.by[a], what)
		p.queue = append(p.queue, remembered{a, what.At})
	}
	p.expire(what.At)
}

// expire forgets what is older than the window, and more than the bound.
func (p *past) expire(now time.Time) {
	n := max(0, len(p.queue)-maxPast)
	for n < len(p.queue) && now.Sub(p.queue[n].at) > pastWindow {
		n++
	}
	for _, q := range p.queue[:n] {
		if of := p.by[q.address]; len(of) > 0 && !of[0].At.After(q.at) {
			p.keep(q.address, of[1:])
		}
	}
	p.queue = slices.Delete(p.queue, 0, n)
}

func (p *past) keep(address string, of []Past) {
	if len(of) == 0 {
		delete(p.by, address)
		return
	}
	p.by[address] = of
}

// back forgets what a pod that has the addresses, and is selected by the
// patterns, has taken back.
func (p *past) back(uid string, addresses []string, patterns func(text string) bool) {
	for _, a := range addresses {
		a = canonical(a)
		var kept []Past
		for _, of := range p.by[a] {
			if of.Pod.UID == uid && of.Kind != Finished {
				if of.Kind != Deselected {
					continue
				}
				if of.Patterns = slices.DeleteFunc(slices.Clone(of.Patterns), patterns); len(of.Patterns) == 0 {
					continue
				}
			}
			kept = append(kept, of)
		}
		p.keep(a, kept)
	}
}

// Past returns what was seen of pods that had the address within the last three
// minutes, the newest first.
func (p *Picture) Past(address string) []Past {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.expire(p.Now())
	of := slices.Clone(p.past.by[canonical(address)])
	slices.Reverse(of)
	return of
}

// canonical is an address in ELB's spelling.
func canonical(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return a.Unmap().WithZone("").String()
}
