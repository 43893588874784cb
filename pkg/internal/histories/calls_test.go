package histories_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// actor is a program with its memory: a registrar or a resync.
type actor struct {
	*sim
	id     int
	resync bool
	dead   atomic.Bool // it was killed: nothing it does has an effect any more
	run    int         // a registrar's decision under way: its batch

	decides   map[string][2]int       // a resync's decisions under way: its last two readings of groups
	saw       map[string]groupCount   // at its last reading of a group
	readings  map[[2]string][]reading // of pods, by cluster and name, and of who has an address
	partial   map[string]time.Time    // clusters that are not listed to the end, and since when
	tagsRead  map[string]int
	rulesRead int
	waited    time.Duration // in calls, all together; under the lock
}

// reading is when a program read something about pods.
type reading struct {
	issued, answered time.Time
	at               int           // by the count of what happens
	waited           time.Duration // of the actor, by the answer
}

// idle is how long the program has sat on the reading, calls aside.
func (a *actor) idle(r reading, now time.Time) time.Duration {
	a.lock.Lock()
	defer a.lock.Unlock()
	return now.Sub(r.answered) - (a.waited - r.waited)
}

// young returns the readings that the program may still act on: two groups of one
// program each have their own.
func (a *actor) young(clusterName, of string, now time.Time) []reading {
	a.lock.Lock()
	all := slices.Clone(a.readings[[2]string{clusterName, of}])
	a.lock.Unlock()
	return slices.DeleteFunc(all, func(r reading) bool { return a.idle(r, now) > reconcile.DecisionMaxAge })
}

// haveRead keeps a reading that was answered now.
func (a *actor) haveRead(issued time.Time, at int, clusterName, of string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	id := [2]string{clusterName, of}
	a.readings[id] = append(a.readings[id], reading{issued, time.Now(), at, a.waited})
}

func (s *sim) actor(resync bool) *actor {
	a := &actor{sim: s, id: s.ids, resync: resync, saw: map[string]groupCount{}, partial: map[string]time.Time{}, decides: map[string][2]int{}, readings: map[[2]string][]reading{}, tagsRead: map[string]int{}}
	s.ids++
	for _, name := range s.clusterNames {
		a.partial[name] = time.Now()
	}
	return a
}

func (a *actor) name() string {
	if a.resync {
		return fmt.Sprintf("resync %d", a.id)
	}
	return fmt.Sprintf("registrar %d", a.id)
}

// listed notes whether a cluster was listed to the end.
func (a *actor) listed(clusterName string, whole bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if _, partial := a.partial[clusterName]; whole {
		delete(a.partial, clusterName)
	} else if !partial {
		a.partial[clusterName] = time.Now()
	}
}

// decision is the number of the one under way about a group. A resync may read a
// group again after it has read pods: the reading before that began it.
func (a *actor) decision(arn string) int {
	if a.resync {
		return a.decides[arn][0]
	}
	return a.run
}

// gate is where a call waits for its turn.
type gate struct {
	name string
	open chan struct{}
}

// yield waits until the tape lets this call go on.
func (s *sim) yield(name string) {
	g := &gate{name: name, open: make(chan struct{})}
	s.lock.Lock()
	s.gates = append(s.gates, g)
	s.lock.Unlock()
	<-g.open
}

func (s *sim) waiting() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.gates)
}

// releaseOne lets a call of the actor go on whose turn it is, or of another one
// where it has none. A turn lasts for some calls, so that a whole decision of one
// falls between two calls of another.
func (s *sim) releaseOne() {
	if s.choice(8) == 7 {
		s.turn = s.actorIDs()[s.choice(len(s.actorIDs()))]
	}
	s.lock.Lock()
	var own []int
	slices.SortStableFunc(s.gates, func(a, b *gate) int { return cmp.Compare(a.name, b.name) })
	for n, g := range s.gates {
		if strings.HasPrefix(g.name, strconv.Itoa(s.turn)+" ") {
			own = append(own, n)
		}
	}
	s.lock.Unlock()
	if len(own) == 0 {
		s.release(s.choice(s.waiting()))
		return
	}
	s.release(own[s.choice(len(own))])
}

func (s *sim) actorIDs() []int {
	var out []int
	for _, c := range s.cpus {
		out = append(out, c.id)
	}
	for _, r := range s.runners {
		out = append(out, r.id)
	}
	return out
}

// release opens the nth gate in the order of their names.
func (s *sim) release(n int) {
	s.lock.Lock()
	slices.SortStableFunc(s.gates, func(a, b *gate) int { return cmp.Compare(a.name, b.name) })
	g := s.gates[n]
	s.gates = slices.Delete(s.gates, n, n+1)
	s.lock.Unlock()
	close(g.open)
	synctest.Wait()
}

var errKilled = errors.New("killed")

// call is one call of a program: it waits, has its effect, and waits again. One
// that was on its way when its context ended may have its effect. It meets the
// fault of the moment if faults names that, in whatever cluster it is.
func call[T any](ctx context.Context, a *actor, name, inCluster, faults string, do func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	entered := time.Now()
	defer func() {
		a.lock.Lock()
		defer a.lock.Unlock()
		a.waited += time.Since(entered)
	}()
	name = fmt.Sprintf("%d %s", a.id, name)
	a.yield(name)
	if a.dead.Load() {
		return none, errKilled
	}
	if a.fault != "" && strings.Contains(faults, a.fault) && (inCluster == "" || a.faultIn == "" || a.faultIn == inCluster) {
		return none, faultErr(a.fault)
	}
	out, err := do()
	a.yield(name + " answers")
	if a.dead.Load() {
		return none, errKilled
	}
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	return out, err
}

func faultErr(fault string) error {
	switch fault {
	case "throttled":
		return fmt.Errorf("%w by the story", targetgroup.ErrThrottled)
	case "unreachable", "no-nodes":
		return fmt.Errorf("%w by the story", cluster.ErrUnreachable)
	default:
		return fmt.Errorf("%w by the story", targetgroup.ErrUnavailable)
	}
}

// steady is a wait as long as the longest of its kind, so that a history does not
// depend on jitter.
func steady(d time.Duration, kinds ...time.Duration) time.Duration {
	for _, most := range kinds {
		if d <= most && d >= most/2 {
			return most
		}
	}
	return d
}
