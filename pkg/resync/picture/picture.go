// Package picture keeps the pods of one cluster that any binding selects: listed
// once, then kept up by a stream, so that a round asks memory and not the API
// server. It decides nothing. What it says of a pod that is there is proof as of
// a moment ago; that a pod is not there proves something only while the picture
// is complete (I8), and even then the pod is to be read before its target goes.
//
// Pods that no binding selects cost nothing. Of the others it keeps what claims
// and witnesses need: labels and annotations are matched and let go.
package picture

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/internal/pause"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// downMax is how long a picture counts as complete without a stream: longer than
// an API server takes to be restarted behind its load balancer, shorter than two
// rounds. Until then what is missing from it is a moment old, as in any read.
const downMax = 30 * time.Second

// Source lists and watches pods; a *cluster.Client does. Watch is to tell first
// that it was taken up (cluster.Opened).
type Source interface {
	Each(ctx context.Context, s cluster.Scope, each func(*podevent.Pod)) (resourceVersion string, err error)
	Watch(ctx context.Context, s cluster.Scope, resourceVersion string, on func(cluster.Change)) error
}

// Config is one cluster and how its pods are matched.
type Config struct {
	Cluster         string // as in the events' detail.cluster
	Source          Source
	Annotations     podevent.AllowList // as the webhook has it
	Account, Region string             // of the events' envelope
	Now             func() time.Time
	Sleep           func(ctx context.Context, d time.Duration) error // nil: waits
	Log             *slog.Logger
}

// Picture is the selected pods of one cluster. It is safe for concurrent use.
type Picture struct {
	Config
	again chan struct{} // holds one entry once there is something new to list

	mu      sync.Mutex
	follows bool // Follow was called
	running bool
	epoch   int32 // of set and scopes
	begun   int32 // lists, whole or not
	lists   int   // whole ones
	set     patternSet
	names   names
	scopes  []*scope
	store   store
	past    past
	touched map[int32]time.Time // by pattern: when pods that it selects, or did, changed last
}

// patternSet is the patterns followed now. The matcher is used under the
// picture's lock alone.
type patternSet struct {
	matcher *podmatch.Matcher
	ids     []int32 // by index in the set
	has     map[int32]bool
}

// names numbers patterns by their texts. A number is never given twice, nor is 0.
type names struct {
	ids   map[string]int32
	texts map[int32]string
	last  int32
}

// scope is the state of one list and the stream that goes on from it.
type scope struct {
	cluster.Scope
	epoch     int32
	list      int32     // number of the last list, whole or not
	listed    bool      // the last list was whole
	listedAt  time.Time // when a whole one ended
	listTook  time.Duration
	heardAt   time.Time
	downSince time.Time        // zero: a stream is up, or a list has just been
	err       error            // of the last list or stream, nil once one is well
	unmatched map[string]error // by UID, pods that could not be matched
}

// New returns a picture without pods.
func New(c Config) *Picture {
	if c.Sleep == nil {
		c.Sleep = pause.For
	}
	return &Picture{Config: c, again: make(chan struct{}, 1), store: newStore(), touched: map[int32]time.Time{},
		names: names{ids: map[string]int32{}, texts: map[int32]string{}}}
}

// State says how far the picture can be relied on.
type State struct {
	// Complete: all scopes were listed whole with all patterns that are followed
	// now, and streams keep them up, or did until moments ago.
	Complete bool
	ListedAt time.Time     // when the oldest list ended; zero before there is one of each scope
	HeardAt  time.Time     // when the most silent stream was heard last
	Err      error         // what is wrong, whether or not it makes the picture incomplete
	Pods     int           // selected ones
	Lists    int           // whole ones, so far
	ListTook time.Duration // of the last whole list of each scope, the longest
}

// State returns the picture's state now.
func (p *Picture) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	s := State{Complete: p.follows, Pods: len(p.store.pods), Lists: p.lists}
	var errs []error
	for i, sc := range p.scopes {
		if i == 0 || sc.listedAt.Before(s.ListedAt) {
			s.ListedAt = sc.listedAt
		}
		if i == 0 || sc.heardAt.Before(s.HeardAt) {
			s.HeardAt = sc.heardAt
		}
		s.ListTook = max(s.ListTook, sc.listTook)
		s.Complete = s.Complete && sc.complete(now)
		errs = append(errs, sc.err)
		for _, err := range sc.unmatched {
			errs = append(errs, err)
			break // one says enough
		}
	}
	s.Err = errors.Join(errs...)
	return s
}

func (s *scope) complete(now time.Time) bool {
	return s.listed && len(s.unmatched) == 0 && (s.downSince.IsZero() || now.Sub(s.downSince) <= downMax)
}
