package webhook

import (
	"container/list"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
)

// itemOverhead is added to an entry's size for what the queue itself needs:
// list element, map entry, key. Rounded up from a measurement.
const itemOverhead = 512

// queue holds the events that are not yet sent, bounded in number and bytes.
// When it is full the oldest goes: after an outage the youngest hints are worth
// most, and resync repairs the others (I12).
type queue struct {
	maxItems, maxBytes int
	// onDrop is told of every event that is dropped, onJoin of every one that
	// was joined with another, both with the lock held.
	onDrop func(cause string)
	onJoin func()

	mu    sync.Mutex
	order *list.List // of item, the oldest first
	byKey map[itemKey]*list.Element
	bytes int
	ready chan struct{} // holds a token while there may be something to take
}

func newQueue(maxItems, maxBytes int, onDrop func(cause string), onJoin func()) *queue {
	return &queue{
		maxItems: maxItems, maxBytes: maxBytes, onDrop: onDrop, onJoin: onJoin,
		order: list.New(), byKey: map[itemKey]*list.Element{}, ready: make(chan struct{}, 1),
	}
}

// add never blocks for longer than the lock.
func (q *queue) add(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if el, ok := q.byKey[i.key]; ok {
		q.join(el, i)
	} else {
		q.byKey[i.key] = q.order.PushBack(i)
		q.bytes += i.size()
	}
	for q.order.Len() > q.maxItems || q.bytes > q.maxBytes {
		q.remove(q.order.Front())
		q.onDrop(causeQueueFull)
	}
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// join keeps the newer of two events in the place of the older.
func (q *queue) join(el *list.Element, i item) {
	q.onJoin()
	waiting := el.Value.(item)
	if i.supersedes(waiting) {
		el.Value = i
		q.bytes += i.size() - waiting.size()
	}
}

func (q *queue) remove(el *list.Element) item {
	i := q.order.Remove(el).(item)
	delete(q.byKey, i.key)
	q.bytes -= i.size()
	return i
}

// take removes and returns the oldest events, as many as fit into one call.
// Those observed before oldest are dropped.
func (q *queue) take(maxEntries, maxBytes int, oldest time.Time) (batch []item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := 0
	for el := q.order.Front(); el != nil && len(batch) < maxEntries; el = q.order.Front() {
		i := el.Value.(item)
		if i.entry.Time.Before(oldest) {
			q.remove(el)
			q.onDrop(causeExpired)
			continue
		}
		if size += i.entry.Size(); size > maxBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, q.remove(el))
	}
	return batch
}

// drain drops everything.
func (q *queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for el := q.order.Front(); el != nil; el = q.order.Front() {
		q.remove(el)
		q.onDrop(causeShutdown)
	}
}

// depth returns the number of events and the bytes they are accounted with.
func (q *queue) depth() (items, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.Len(), q.bytes
}

func (i item) size() int { return i.entry.Size() + itemOverhead }

func entries(batch []item) []bus.Entry {
	out := make([]bus.Entry, len(batch))
	for n, i := range batch {
		out[n] = i.entry
	}
	return out
}
