package webhook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/elbridge/elbridge/pkg/internal/pause"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// PodReader reads one pod, by a quorum read.
type PodReader interface {
	// Pod returns ErrPodGone if there is no such pod.
	Pod(ctx context.Context, namespace, name string) (*podevent.Pod, error)
}

// ErrPodGone says that the API server has no such pod.
var ErrPodGone = errors.New("no such pod")

const (
	maxEvictions = 256 // watched at a time
	maxReads     = 8   // of them at a time
)

// evictionWaits are the waits before each read of an evicted pod: admission
// comes before the eviction, which may also be refused for a disruption budget.
// Three and a half seconds in all; what takes effect later shows in the pod's
// next change.
var evictionWaits = [...]time.Duration{
	10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond,
	time.Second, 2 * time.Second,
}

// Results of evictions, a closed set.
const (
	evictionSeen       = "seen"       // took effect
	evictionRefused    = "refused"    // the pod lives on
	evictionUnknown    = "unknown"    // no such pod from the start
	evictionUnreadable = "unreadable" // the API server did not show the pod
	evictionFull       = "full"       // too many are watched already
	evictionJoined     = "joined"     // the pod is watched already
	evictionStopped    = "stopped"    // shutting down
)

// eviction is a pod that somebody asked to evict.
type eviction struct {
	namespace, name string
	uid             string // precondition, or ""
}

// evictor watches evicted pods until a deletionTimestamp shows: an eviction
// reaches admission only as a request that may still be refused, and what it
// does to the pod bypasses admission. Each watched pod has a goroutine, which
// ends after the last wait or with the context.
type evictor struct {
	pods   PodReader
	emit   func(old, pod *podevent.Pod)
	result func(string) // counts
	log    *slog.Logger
	reads  *semaphore.Weighted
	wait   func(context.Context, time.Duration) error

	mu       sync.Mutex
	watching map[eviction]bool
	stopped  bool
	all      sync.WaitGroup
	ctx      context.Context // of the goroutines, whose owner this is
	cancel   context.CancelFunc
}

func newEvictor(pods PodReader, emit func(old, pod *podevent.Pod), result func(string), log *slog.Logger) *evictor {
	ctx, cancel := context.WithCancel(context.Background())
	return &evictor{
		pods: pods, emit: emit, result: result, log: log, wait: pause.For,
		reads:    semaphore.NewWeighted(maxReads),
		watching: map[eviction]bool{},
		ctx:      ctx, cancel: cancel,
	}
}

// watch begins to watch a pod and returns at once.
func (v *evictor) watch(e eviction) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.stopped:
		v.result(evictionStopped)
	case v.watching[e]:
		v.result(evictionJoined)
	case len(v.watching) >= maxEvictions:
		v.result(evictionFull)
	default:
		v.watching[e] = true
		v.all.Go(func() {
			v.result(v.follow(e))
			v.mu.Lock()
			defer v.mu.Unlock()
			delete(v.watching, e)
		})
	}
}

// stop ends all watches and waits for their goroutines.
func (v *evictor) stop() {
	v.mu.Lock()
	v.stopped = true
	v.mu.Unlock()
	v.cancel()
	v.all.Wait()
}

func (v *evictor) waiting() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.watching)
}

// follow reads the pod until it is seen to go, and tells what became of it.
func (v *evictor) follow(e eviction) string {
	var last *podevent.Pod // as it was last seen alive
	var problem error
	for _, d := range evictionWaits {
		if v.wait(v.ctx, d) != nil {
			return evictionStopped
		}
		pod, err := v.read(e)
		switch {
		case errors.Is(err, ErrPodGone):
			return v.gone(last)
		case err != nil:
			problem = err
			continue
		case e.uid != "" && pod.UID != e.uid, last != nil && pod.UID != last.UID:
			return v.gone(last) // another pod of the same name
		case pod.Terminating:
			v.emit(last, pod)
			return evictionSeen
		}
		last, problem = pod, nil
	}
	if problem != nil {
		v.log.Warn("evicted pod not readable", "pod", e.namespace+"/"+e.name, "err", problem)
		return evictionUnreadable
	}
	return evictionRefused
}

// gone is the end of an eviction without grace: between two reads.
func (v *evictor) gone(last *podevent.Pod) string {
	if last == nil {
		return evictionUnknown
	}
	v.emit(last, nil)
	return evictionSeen
}

func (v *evictor) read(e eviction) (*podevent.Pod, error) {
	if err := v.reads.Acquire(v.ctx, 1); err != nil {
		return nil, err
	}
	defer v.reads.Release(1)
	return v.pods.Pod(v.ctx, e.namespace, e.name)
}
