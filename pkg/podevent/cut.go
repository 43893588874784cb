package podevent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

const (
	// MaxEntryBytes is what one entry of PutEvents may weigh: the API's model
	// says that all entries of a call have to be below 256 KB. The limit was
	// raised to 1 MB in January 2026, but not for every service an event
	// passes on its way, and a KB is taken as 1,000 bytes to be on the safe
	// side of both readings.
	MaxEntryBytes = 256_000

	// MaxBytes is what Encode makes at most: an entry less 16 KiB for source,
	// detail-type, resources and envelope, and for the 8,192 characters that a
	// rule's input template may add on the way to the queue.
	MaxBytes = MaxEntryBytes - 16<<10
)

// encodeCut leaves out as little as it can, the largest entries first, in the
// order in which they are missed least: annotations, ports, the labels of
// before, the labels. size is the length of the event as it is.
func (e Event) encodeCut(size int) ([]byte, error) {
	e.Cut = &Cut{}
	if e.Previous != nil {
		previous := *e.Previous
		e.Previous = &previous
	}
	excess := size + len(`"cut":{"annotations":,"ports":,"labels":},`) + 3*len("1000000") - MaxBytes
	e.Annotations, e.Cut.Annotations = cutMap(e.Annotations, &excess)
	e.Ports, e.Cut.Ports = cutPorts(e.Ports, &excess)
	if e.Previous != nil {
		e.Previous.Labels, e.Cut.Labels = cutMap(e.Previous.Labels, &excess)
	}
	labels, n := cutMap(e.Labels, &excess)
	e.Labels, e.Cut.Labels = labels, e.Cut.Labels+n

	detail, err := marshal(e)
	if err != nil {
		return nil, fmt.Errorf("pod event %s/%s: %w", e.Namespace, e.Name, err)
	}
	if len(detail) > MaxBytes {
		return nil, fmt.Errorf("pod event of uid %.64q: %d bytes without annotations, ports and labels: want at most %d",
			e.UID, len(detail), MaxBytes)
	}
	return detail, nil
}

// cutMap removes the largest entries until excess bytes are gone.
func cutMap(m map[string]string, excess *int) (kept map[string]string, cut int) {
	if *excess <= 0 || len(m) == 0 {
		return m, 0
	}
	weight := make(map[string]int, len(m))
	for k, v := range m {
		weight[k] = encodedLen(k) + encodedLen(v) + len(`:,`)
	}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	kept = maps.Clone(m)
	for _, k := range keys {
		if *excess <= 0 {
			break
		}
		delete(kept, k)
		*excess -= weight[k]
		cut++
	}
	return kept, cut
}

// cutPorts removes ports from the end until excess bytes are gone.
func cutPorts(ports []Port, excess *int) (kept []Port, cut int) {
	n := len(ports)
	for *excess > 0 && n > 0 {
		n--
		*excess -= encodedLen(ports[n]) + len(`,`)
	}
	return ports[:n:n], len(ports) - n
}

func encodedLen(v any) int {
	b, err := marshal(v)
	if err != nil {
		return 0 // no string and no port fails; the caller measures the result
	}
	return len(b)
}
