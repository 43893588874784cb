package webhook

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/podevent"
)

var seed = maphash.MakeSeed()

// mk makes an item from "uid reason version address[,previous] label [again]".
func mk(t testing.TB, text string) item {
	t.Helper()
	f := strings.Fields(text)
	ips := strings.Split(f[3], ",")
	e := podevent.Event{
		Schema: podevent.Schema, Cluster: "prod", Namespace: "ingress", Name: f[0], UID: f[0], Reason: podevent.Reason(f[1]), ResourceVersion: f[2],
		PodIP: ips[0], PodIPs: ips[:1], Labels: map[string]string{"app": f[4]}, ObservedAt: noon,
	}
	if len(f) > 5 { // "again": of a pod that was being deleted before
		e.Previous = &podevent.Previous{Terminating: true}
	}
	if len(ips) > 1 {
		e.Previous = &podevent.Previous{PodIP: ips[1], PodIPs: ips[1:]}
	}
	i, err := newItem(e, seed)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// show is "uid reason version" of each item.
func show(items []item) string {
	var out []string
	for _, i := range items {
		out = append(out, fmt.Sprintf("%s %s %s", i.key.uid, i.reason, i.version))
	}
	return strings.Join(out, "; ")
}

func newTestQueue(maxItems, maxBytes int) (*queue, *ledger) {
	l := &ledger{}
	return newQueue(maxItems, maxBytes, func(cause string) { l.add(cause, noon) }, func() {}), l
}

func TestCoalesce(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"newest version wins":                   {"a Ready 9 ip1 x; a NotReady 10 ip1 x", "a NotReady 10"},
		"even if it came first":                 {"a NotReady 10 ip1 x; a Ready 9 ip1 x", "a NotReady 10"},
		"of equal versions the later":           {"a Terminating 9 ip1 x; a Deleted 9 ip1 x", "a Deleted 9"},
		"of incomparable versions the later":    {"a Ready z ip1 x; a NotReady 9 ip1 x", "a NotReady 9"},
		"the place of the first is kept":        {"a Ready 1 ip1 x; b Ready 2 ip2 x; a NotReady 3 ip1 x", "a NotReady 3; b Ready 2"},
		"readiness swallows no address":         {"a IPAssigned 1 ip1 x; a Ready 2 ip1 x", "a IPAssigned 1; a Ready 2"},
		"an end told again swallows no end":     {"a Terminating 1 ip1 x; a Terminating 2 ip1 x again", "a Terminating 1; a Terminating 2"},
		"pods are kept apart":                   {"a Ready 1 ip1 x; b Ready 1 ip1 x", "a Ready 1; b Ready 1"},
		"addresses are kept apart":              {"a IPAssigned 1 ip2,ip1 x; a Ready 2 ip2 x", "a IPAssigned 1; a Ready 2"},
		"labels are kept apart":                 {"a Ready 1 ip1 x; a Ready 2 ip1 y", "a Ready 1; a Ready 2"},
		"living and leaving are kept apart":     {"a Ready 1 ip1 x; a Terminating 2 ip1 x", "a Ready 1; a Terminating 2"},
		"relabelled there and back is one each": {"a Relabelled 1 ip1 x; a Relabelled 1 ip1 y; a Relabelled 2 ip1 y; a Relabelled 2 ip1 x", "a Relabelled 2; a Relabelled 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q, _ := newTestQueue(100, 1<<20)
			for text := range strings.SplitSeq(tt.in, "; ") {
				q.add(mk(t, text))
			}
			if got := show(q.take(100, bus.MaxCallBytes, time.Time{})); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// A DELETE that was sent may have been refused or delayed; the same one again
// may be the one that takes effect.
func TestSentEventsAreNotJoined(t *testing.T) {
	q, _ := newTestQueue(100, 1<<20)
	for range 2 {
		q.add(mk(t, "a Terminating 340 ip1 x"))
		if got := show(q.take(10, bus.MaxCallBytes, time.Time{})); got != "a Terminating 340" {
			t.Errorf("take = %q, want the event each time", got)
		}
	}
}

func TestTake(t *testing.T) {
	q, l := newTestQueue(100, 1<<20)
	for i := range 12 {
		q.add(mk(t, fmt.Sprintf("p%02d Ready 1 ip1 x", i)))
	}
	size := mk(t, "p00 Ready 1 ip1 x").entry.Size()
	if got := len(q.take(10, bus.MaxCallBytes, time.Time{})); got != 10 {
		t.Errorf("took %d entries, want the 10 that fit into a call", got)
	}
	if got := len(q.take(10, size, time.Time{})); got != 1 {
		t.Errorf("took %d entries, want the 1 that fits into %d bytes", got, size)
	}
	if got := len(q.take(10, bus.MaxCallBytes, noon.Add(time.Second))); got != 0 || l.causes[causeExpired] != 1 {
		t.Errorf("took %d entries of which all are too old, %v dropped", got, l.causes)
	}
	if n, bytes := q.depth(); n != 0 || bytes != 0 {
		t.Errorf("depth %d, %d bytes, want an empty queue", n, bytes)
	}
}

// Whatever is added, the queue stays within its bounds, what it accounts is what
// it holds, the newest survive, and every loss is counted.
func TestQueue_I11_I12_IsBoundedAndCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxItems, maxBytes := rapid.IntRange(1, 20).Draw(t, "items"), rapid.IntRange(2000, 20000).Draw(t, "bytes")
		dropped, joined, added, taken := 0, 0, 0, 0
		q := newQueue(maxItems, maxBytes, func(string) { dropped++ }, func() { joined++ })
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			if rapid.IntRange(0, 9).Draw(t, "take") == 0 {
				taken += len(q.take(bus.MaxEntries, bus.MaxCallBytes, time.Time{}))
			}
			e := podevent.Event{Schema: 1, UID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "uid")), Reason: podevent.Ready, ResourceVersion: fmt.Sprint(added), ObservedAt: noon,
				Labels: map[string]string{"pad": strings.Repeat("x", rapid.IntRange(0, 1000).Draw(t, "pad"))}}
			i, err := newItem(e, seed)
			if err != nil {
				t.Fatal(err)
			}
			q.add(i)
			added++
			n, bytes := q.depth()
			held := 0
			for el := q.order.Front(); el != nil; el = el.Next() {
				held += el.Value.(item).size()
			}
			if n > maxItems || bytes > maxBytes || held != bytes || n != len(q.byKey) {
				t.Fatalf("%d items of at most %d, %d bytes of at most %d, %d held, %d keys", n, maxItems, bytes, maxBytes, held, len(q.byKey))
			}
			if last := q.order.Back(); last == nil {
				t.Fatal("the event just added is gone")
			}
			if added != n+taken+dropped+joined {
				t.Fatalf("%d added, but %d wait, %d taken, %d dropped, %d joined", added, n, taken, dropped, joined)
			}
		}
	})
}

func TestLedger_I12(t *testing.T) {
	var l ledger
	l.add(causeQueueFull, noon)
	l.add(causeQueueFull, noon.Add(time.Second))
	told, since := l.pending()
	if told[causeQueueFull] != 2 || !since.Equal(noon) {
		t.Fatalf("pending %v since %s", told, since)
	}
	l.add(causeDenied, noon.Add(2*time.Second)) // while the report is on its way
	l.told(told, noon.Add(time.Second))
	if left, _ := l.pending(); len(left) != 1 || left[causeDenied] != 1 {
		t.Errorf("left %v, want the one that came later", left)
	}
	if l.dropped() != 3 {
		t.Errorf("dropped %d in all, want 3", l.dropped())
	}
}
