package histories_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/resync"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// runner is one resync, one run after the other with the same memory.
type runner struct {
	*actor
	r     *resync.Resync
	end   context.CancelFunc // of the run under way; under the sim's lock
	ended atomic.Bool
}

// betweenRuns is how long after a run the next begins.
const betweenRuns = time.Second

func (s *sim) runner() *runner {
	r := &runner{actor: s.actor(true)}
	clusters := map[string]resync.Cluster{}
	for _, name := range s.clusterNames {
		clusters[name] = kube{r.actor, name}
	}
	r.r = &resync.Resync{
		Config: resync.Config{Settings: reconcile.Settings{BusARN: busARN, QueueARN: queueARN, Observe: s.plan.Observe},
			RunLength: s.plan.RunLength, Interval: resync.DefaultInterval, Share: resync.DefaultShare},
		Clusters: clusters, Observed: map[string]bool{},
		Groups: func(*binding.Binding) resync.Groups { return gatedGroups{r.actor} },
		Rules:  gatedRules{r.actor}, Inbox: inbox{r.actor}, Events: busOf{r.actor},
		Meter: telemetry.NewMeter(io.Discard, time.Now, nil), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Sleep: func(ctx context.Context, d time.Duration) error {
			return resync.Sleep(ctx, steady(d, 1500*time.Millisecond, 3*time.Second, 6*time.Second, 12*time.Second, 30*time.Second))
		},
	}
	go r.work()
	return r
}

func (r *runner) work() {
	defer r.ended.Store(true)
	for n := 1; !r.dead.Load(); n++ {
		ctx, cancel := context.WithCancel(background)
		r.lock.Lock()
		r.end = cancel
		r.lock.Unlock()
		r.r.Run(ctx, fmt.Sprintf("run-%d-%d", r.id, n))
		cancel()
		time.Sleep(betweenRuns)
	}
}

// stop ends the run under way; with its memory, if it is killed.
func (r *runner) stop(kill bool) {
	r.dead.Store(kill)
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.end != nil {
		r.end()
	}
}

// inbox is the queue of requests.
type inbox struct{ *actor }

// ask puts a message into it.
func (s *sim) ask(body string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.asks++
	s.requests = append(s.requests, queue.Message{ID: fmt.Sprintf("q%d", s.asks), Body: body, Receipt: "r", Sent: time.Now(), Receives: 1, Sender: "AROAEXAMPLE:kim"})
	s.wake()
}

func (b inbox) take() (ms []queue.Message, next chan struct{}) {
	b.lock.Lock()
	defer b.lock.Unlock()
	ms, b.requests = b.requests, nil
	return ms, b.next
}

func (b inbox) Receive(ctx context.Context, wait time.Duration) ([]queue.Message, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		if b.dead.Load() || ctx.Err() != nil {
			return nil, errKilled
		}
		ms, next := b.take()
		if len(ms) > 0 {
			return ms, nil
		}
		select {
		case <-ctx.Done():
		case <-timeout.C:
			return nil, nil
		case <-next:
		}
	}
}

func (b inbox) Delete(context.Context, queue.Message) error { return nil }

func (b inbox) Bury(_ context.Context, m queue.Message, reason string) error {
	b.violation("request %s was buried: %s", m.ID, reason)
	return nil
}

// busOf is the bus as one program puts events on it.
type busOf struct{ *actor }

func (b busOf) Put(ctx context.Context, es []bus.Entry) ([]bus.Unsent, error) {
	_, err := call(ctx, b.actor, "put", "", "no-events", func() (struct{}, error) { b.told(es); return struct{}{}, nil })
	if err != nil {
		b.untold.Store(true)
	}
	return nil, err
}
