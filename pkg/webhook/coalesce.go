package webhook

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// item is an event that waits to be sent.
type item struct {
	key   itemKey
	entry bus.Entry
	// version is the pod's resourceVersion; of two events with one key the one
	// with the newer version is sent, as a hint is settled by any other version
	// than its own.
	version string
	reason  podevent.Reason
}

// itemKey is what makes two unsent events one: they name the same pod and the
// same addresses, meet the same rules and ask the same question. Events that
// were sent are never compared with: a repeated DELETE of the same pod and grace
// can be the one that took effect.
type itemKey struct {
	uid       string
	addresses string
	selects   uint64 // hash of labels and annotations
	class     class
}

// class says which reasons ask the same question.
type class byte

const (
	living     class = iota // is the pod still as ready as its binding asks?
	assigned                // who claims this address now?
	leaving                 // has it stopped to claim them?
	ending                  // the same of a pod that was being deleted before
	relabelled              // which rules select it?
)

// classOf keeps apart what a consumer may treat apart: readiness, and what is
// told once more of a pod that ends, change no claim of most bindings, so they
// must not swallow an event that does.
func classOf(e podevent.Event) class {
	switch e.Reason {
	case podevent.IPAssigned:
		return assigned
	case podevent.Terminating, podevent.Evicted, podevent.Deleted, podevent.Finished:
		if e.Previous != nil && e.Previous.Terminating {
			return ending
		}
		return leaving
	case podevent.Relabelled:
		return relabelled
	default:
		return living
	}
}

// newItem encodes the event, so that what waits is as small as what is sent.
func newItem(e podevent.Event, seed maphash.Seed) (item, error) {
	detail, err := e.Encode()
	if err != nil {
		return item{}, err
	}
	return item{
		key: itemKey{uid: e.UID, addresses: addresses(e), selects: selects(e, seed), class: classOf(e)},
		entry: bus.Entry{
			Source:     podevent.Source,
			DetailType: podevent.DetailTypePodStateChange,
			Detail:     detail,
			Resources:  e.Resources(),
			Time:       e.ObservedAt,
		},
		version: e.ResourceVersion,
		reason:  e.Reason,
	}, nil
}

func addresses(e podevent.Event) string {
	all := slices.Clone(e.PodIPs)
	if e.Previous != nil {
		all = append(all, e.Previous.PodIPs...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// selects hashes what rules select on. The sum does not depend on the order.
func selects(e podevent.Event, seed maphash.Seed) (sum uint64) {
	for i, m := range []map[string]string{e.Labels, e.Annotations} {
		for k, v := range m {
			var h maphash.Hash
			h.SetSeed(seed)
			h.WriteByte(byte(i))
			h.WriteString(k)
			h.WriteByte(0)
			h.WriteString(v)
			sum += h.Sum64()
		}
	}
	return sum
}

// supersedes reports whether a later arrival with the same key replaces what
// waits. Handlers run in parallel, so it may be the older one.
func (i item) supersedes(waiting item) bool {
	return compareVersions(i.version, waiting.version) >= 0
}

// compareVersions orders resource versions, which are decimal numbers without
// leading zeros. Others count as equal: then arrival decides.
func compareVersions(a, b string) int {
	if !decimal(a) || !decimal(b) {
		return 0
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func decimal(v string) bool {
	return v != "" && strings.Trim(v, "0123456789") == ""
}
