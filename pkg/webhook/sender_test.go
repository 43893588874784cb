package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// sending runs a sender in a bubble and stops it at the end. Calls to the bus
// wait until hang is closed, if there is one.
func sending(t *testing.T, b *fakeBus, hang bool, maxItems int, test func(s *sender, q *queue, stop func())) {
	synctest.Test(t, func(t *testing.T) {
		if hang {
			b.hang = make(chan struct{}) // of this bubble
		}
		q, l := newTestQueue(maxItems, 1<<20)
		s := &sender{
			publisher: b, queue: q, ledger: l, metrics: newMetrics("v1"), log: slog.New(slog.DiscardHandler), now: func() time.Time { return noon.Add(time.Since(start())) },
			done: make(chan outcome), answering: true,
		}
		s.dropReport = (&reporter{now: s.now}).dropped
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.run(ctx, time.Second); close(ended) }()
		stop := func() { cancel(); <-ended }
		defer stop()
		synctest.Wait()
		test(s, q, stop)
	})
}

// start is when time begins in a bubble.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestSenderHasNoDelayWhenIdle(t *testing.T) {
	b := &fakeBus{}
	sending(t, b, false, 100, func(s *sender, q *queue, _ func()) {
		for i := range 3 {
			q.add(mk(t, fmt.Sprintf("p%d Ready 1 ip1 x", i)))
			synctest.Wait()
		}
		if got := b.sizes(); !slices.Equal(got, []int{1, 1, 1}) || s.now() != noon {
			t.Errorf("batches %v, want each event at once; %s passed", got, s.now().Sub(noon))
		}
	})
}

func TestSenderBatchesWhatArrivesDuringACall(t *testing.T) {
	b := &fakeBus{}
	sending(t, b, true, 100, func(_ *sender, q *queue, _ func()) {
		for i := range 8 {
			q.add(mk(t, fmt.Sprintf("p%d Ready 1 ip1 x", i)))
			synctest.Wait()
		}
		if got := b.sizes(); !slices.Equal(got, []int{1}) {
			t.Fatalf("batches %v, want one call in flight", got)
		}
		close(b.hang)
		synctest.Wait()
		if got := b.sizes(); !slices.Equal(got, []int{1, 7}) {
			t.Errorf("batches %v, want the rest in one", got)
		}
	})
}

func TestSenderStartsFullBatchesAndPassesSlowCalls(t *testing.T) {
	b := &fakeBus{}
	sending(t, b, true, 100, func(_ *sender, q *queue, _ func()) {
		for i := range 23 {
			q.add(mk(t, fmt.Sprintf("p%02d Ready 1 ip1 x", i)))
			if i == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if got := b.sizes(); !slices.Equal(got, []int{1, 10, 10}) {
			t.Fatalf("batches %v, want the full ones beside the one in flight", got)
		}
		time.Sleep(patience)
		synctest.Wait()
		if got := b.sizes(); !slices.Equal(got, []int{1, 10, 10, 2}) {
			t.Errorf("batches %v, want the rest once the calls are slow", got)
		}
		for i := range 2 * maxInFlight {
			q.add(mk(t, fmt.Sprintf("late%02d Ready 1 ip1 x", i)))
			time.Sleep(patience)
		}
		synctest.Wait()
		if got := len(b.sizes()); got != maxInFlight {
			t.Errorf("%d calls in flight, want at most %d", got, maxInFlight)
		}
		close(b.hang)
	})
}

func TestSenderTellsOfDrops_I12(t *testing.T) {
	b := &fakeBus{}
	sending(t, b, true, 5, func(s *sender, q *queue, _ func()) {
		for i := range 10 {
			q.add(mk(t, fmt.Sprintf("p%d Ready 1 ip1 x", i)))
			synctest.Wait()
		}
		time.Sleep(time.Second)
		close(b.hang)
		synctest.Wait()
		got := b.got()
		if !slices.Contains(got, podevent.DetailTypeEventsDropped) {
			t.Fatalf("bus has %v, want a report of the drops", got)
		}
		var told podevent.EventsDropped
		for _, e := range b.entries {
			if e.DetailType == podevent.DetailTypeEventsDropped {
				if err := json.Unmarshal(e.Detail, &told); err != nil {
					t.Fatal(err)
				}
			}
		}
		pods := 0
		for _, d := range got {
			if d == "Ready" {
				pods++
			}
		}
		if want := map[string]uint64{causeQueueFull: uint64(10 - pods)}; told.Dropped != uint64(10-pods) || !reflect.DeepEqual(told.Causes, want) {
			t.Errorf("told of %d drops %v, want %v", told.Dropped, told.Causes, want)
		}
		if left, _ := s.ledger.pending(); left != nil {
			t.Errorf("left to tell: %v", left)
		}
	})
}

func TestSenderCountsWhatIsRefused_I12(t *testing.T) {
	b := &fakeBus{refuse: "AccessDeniedException"}
	sending(t, b, false, 5, func(s *sender, q *queue, _ func()) {
		q.add(mk(t, "p Ready 1 ip1 x"))
		synctest.Wait()
		if causes, _ := s.ledger.pending(); causes[causeDenied] != 1 {
			t.Errorf("drops %v, want one denied", causes)
		}
		if got := len(b.sizes()); got != 1 {
			t.Errorf("%d calls: a report of drops must wait until the bus answers", got)
		}
	})
}

func TestSenderFlushes(t *testing.T) {
	b := &fakeBus{}
	sending(t, b, true, 100, func(_ *sender, q *queue, stop func()) {
		for i := range 5 {
			q.add(mk(t, fmt.Sprintf("p%d Ready 1 ip1 x", i)))
			synctest.Wait()
		}
		go func() { time.Sleep(500 * time.Millisecond); close(b.hang) }()
		stop()
		if got := strings.Join(b.got(), " "); got != "Ready Ready Ready Ready Ready" {
			t.Errorf("bus has %q after the flush, want all 5", got)
		}
	})
}

func TestSenderFlushIsBounded_I11(t *testing.T) {
	b := &fakeBus{}
	sending(t, b, true, 100, func(s *sender, q *queue, stop func()) {
		for i := range 50 {
			q.add(mk(t, fmt.Sprintf("p%02d Ready 1 ip1 x", i)))
		}
		before := time.Now()
		stop()
		if took := time.Since(before); took > 2*time.Second {
			t.Errorf("flush took %s, want about the second it was given", took)
		}
		if n, _ := q.depth(); n != 0 || s.ledger.causes[causeShutdown] != 50 {
			t.Errorf("%d wait, drops %v: want all 50 counted", n, s.ledger.causes)
		}
	})
}

func TestNoticesReplaceEachOther(t *testing.T) {
	b := &fakeBus{}
	sending(t, b, true, 100, func(s *sender, _ *queue, _ func()) {
		tell := func(detail string) {
			s.tell(bus.Entry{DetailType: podevent.DetailTypeWebhookHeartbeat, Detail: []byte(detail)})
			synctest.Wait()
		}
		tell("1") // in flight
		tell("2")
		tell("3")
		close(b.hang)
		synctest.Wait()
		var got []string
		for _, e := range b.entries {
			got = append(got, string(e.Detail))
		}
		if !slices.Equal(got, []string{"1", "3"}) {
			t.Errorf("heartbeats %v, want the last one only", got)
		}
	})
}
