package sqs

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/elbridge/elbridge/local/cloud/policy"
)

// queue holds messages: those that can be received in a list, in order of
// arrival, and those that cannot (in flight or delayed) in a heap by the time
// they come back.
type queue struct {
	id      queueID
	attr    map[string]string // settable attributes, as set
	tags    map[string]string
	created time.Time
	changed time.Time
	purged  time.Time
	rules   *policy.Policy // parsed Policy attribute

	byID   map[string]*message
	ready  list.List // of *message
	hidden hiddenHeap
	wake   chan struct{} // closed and renewed when a message may have become ready
}

type message struct {
	id          string
	body        string
	attributes  map[string]attributeValue
	traceHeader string
	sender      string
	sent        time.Time
	first       time.Time // first receive
	received    int
	source      string // ARN of the queue that it was moved from

	visible time.Time     // when it comes back, while it is hidden
	inReady *list.Element // while it is ready
	inHeap  int           // index in hidden, while it is hidden
}

func newQueue(id queueID, now time.Time) *queue {
	return &queue{id: id, attr: map[string]string{}, tags: map[string]string{}, created: now, changed: now,
		byID: map[string]*message{}, wake: make(chan struct{})}
}

func (q *queue) policy() *policy.Policy {
	if q.rules == nil {
		return &policy.Policy{}
	}
	return q.rules
}

// put adds a message that becomes visible at the given time.
func (q *queue) put(m *message, visible, now time.Time) {
	q.byID[m.id] = m
	if visible.After(now) {
		q.hide(m, visible)
	} else {
		m.inReady = q.ready.PushBack(m)
	}
	q.signal()
}

func (q *queue) hide(m *message, until time.Time) {
	m.visible = until
	heap.Push(&q.hidden, m)
}

// drop takes a message out for good.
func (q *queue) drop(m *message) {
	q.unlink(m)
	delete(q.byID, m.id)
}

// unlink takes a message from the list or heap that it is in.
func (q *queue) unlink(m *message) {
	if m.inReady != nil {
		q.ready.Remove(m.inReady)
		m.inReady = nil
		return
	}
	heap.Remove(&q.hidden, m.inHeap)
}

// advance makes ready what is due, and drops what has been kept long enough.
func (q *queue) advance(now time.Time) {
	for len(q.hidden) > 0 && !q.hidden[0].visible.After(now) {
		m := heap.Pop(&q.hidden).(*message)
		m.inReady = q.ready.PushBack(m)
	}
	keep := q.seconds("MessageRetentionPeriod")
	for e := q.ready.Front(); e != nil && now.Sub(e.Value.(*message).sent) > keep; e = q.ready.Front() {
		q.drop(e.Value.(*message))
	}
}

// next says when a hidden message comes back; false if none is hidden.
func (q *queue) next() (time.Time, bool) {
	if len(q.hidden) == 0 {
		return time.Time{}, false
	}
	return q.hidden[0].visible, true
}

// signal wakes the long polls. What hides a message for a shorter time than
// before calls it too, since they sleep until the next one comes back.
func (q *queue) signal() {
	close(q.wake)
	q.wake = make(chan struct{})
}

// counts returns the numbers of ready, in-flight and delayed messages.
func (q *queue) counts(now time.Time) (ready, inFlight, delayed int) {
	q.advance(now)
	for _, m := range q.hidden {
		if m.received > 0 {
			inFlight++
		} else {
			delayed++
		}
	}
	return q.ready.Len(), inFlight, delayed
}

// hiddenHeap orders messages by the time they come back.
type hiddenHeap []*message

func (h hiddenHeap) Len() int           { return len(h) }
func (h hiddenHeap) Less(i, j int) bool { return h[i].visible.Before(h[j].visible) }
func (h hiddenHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].inHeap, h[j].inHeap = i, j
}

// Push is heap.Interface's.
func (h *hiddenHeap) Push(x any) {
	m := x.(*message)
	m.inHeap = len(*h)
	*h = append(*h, m)
}

// Pop is heap.Interface's.
func (h *hiddenHeap) Pop() any {
	old := *h
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return m
}
