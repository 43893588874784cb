package histories_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/resync"
)

// Histories are drawn as data: what happens, and a tape of choices for who moves
// next. They run in a bubble with a clock of its own, and every call of a
// program waits at a gate before and after its effect, so that one history is
// one interleaving, whatever the machine does. ELBRIDGE_HISTORIES is how many are
// tried; a failure prints rapid's seed and the history.

// history is one drawn case.
type history struct {
	plan setup
	acts []act
	tape []byte
}

// setup is what stays the same all along.
type setup struct {
	Instances   int           // registrars that run at the same time
	Resyncs     int           // resyncs that do; there is to be one
	RunLength   time.Duration // of their runs
	Far         bool          // there is a second cluster
	ReuseAtOnce bool          // a free address is given away at once, not after 30 s
	RuleChanges bool          // rules change while pods do
	Observe     bool          // I19, for everything
	When        string        // registerWhen of the web rule
	Second      string        // mode of the second rule of the web group
	Percent     int           // maxRemovalPercent of the web group
	Foreign     bool          // the api group has no owner tag
	CIDRs       bool          // and its binding has podCIDRs
}

func (p setup) resync() bool { return p.Resyncs > 0 }

// act is one thing that happens in the cluster, to the load balancer or to AWS.
type act struct {
	Kind string
	Pod  int
	Arg  int
	Far  bool // in the second cluster, if there is one
	Slow bool // the write is stored some time after admission saw it
	Dup  bool // its events arrive twice
	Lost bool // or, where there is a resync, never
}

func (a act) String() string {
	var flags string
	for _, f := range []struct {
		name string
		set  bool
	}{{"far", a.Far}, {"slow", a.Slow}, {"dup", a.Dup}, {"lost", a.Lost}} {
		if f.set {
			flags += " " + f.name
		}
	}
	return fmt.Sprintf("%s pod%d %d%s", a.Kind, a.Pod, a.Arg, flags)
}

// kinds of acts; the frequent ones stand here more than once.
var kinds = []string{"up", "up", "up", "create", "ip", "ready", "unready", "relabel", "delete", "delete", "refused", "gone", "gone", "force",
	"evict", "finish", "replace", "node", "health", "sick", "drained", "time", "time", "takeover", "takeover", "crash", "fault", "fault", "calm", "rule"}

// further kinds are of histories with a resync.
var further = []string{"on", "on", "on", "on", "on", "on", "on", "rule", "rule", "kill", "kill", "turn", "outage", "drop", "drop", "stray", "stream", "stream", "silence",
	"freeze", "thaw", "thaw", "ask", "ask", "group-went", "group-made", "group-made", "up", "up", "up", "gone", "gone", "force", "delete", "finish", "health", "calm", "calm"}

// hasty are the kinds that make the truth move between a reading and a call.
var hasty = []string{"up", "up", "takeover", "takeover", "replace", "force", "delete", "gone", "relabel", "health"}

func drawHistory(t *rapid.T, registrars, resyncs bool) history {
	h := history{plan: setup{
		ReuseAtOnce: rapid.Bool().Draw(t, "reuse"),
		RuleChanges: rapid.IntRange(0, 3).Draw(t, "ruleChanges") == 3,
		Observe:     rapid.IntRange(0, 9).Draw(t, "observe") == 9,
		When:        rapid.SampledFrom([]string{"HasIP", "HasIP", "ContainersReady", "Ready"}).Draw(t, "when"),
		Second:      rapid.SampledFrom([]string{"manage", "manage", "observe"}).Draw(t, "second"),
		Percent:     rapid.SampledFrom([]int{20, 50, 100}).Draw(t, "percent"),
		Foreign:     rapid.Bool().Draw(t, "foreign"),
		CIDRs:       rapid.Bool().Draw(t, "cidrs"),
	}}
	if registrars {
		h.plan.Instances = rapid.IntRange(1, 3).Draw(t, "instances")
	}
	kinds := kinds
	if h.plan.ReuseAtOnce && rapid.Bool().Draw(t, "hasty") {
		kinds = hasty
	}
	if resyncs {
		h.plan.Resyncs = rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "resyncs")
		h.plan.RunLength = rapid.SampledFrom([]time.Duration{time.Minute, resync.DefaultRunLength}).Draw(t, "runLength")
		h.plan.Far = rapid.IntRange(0, 2).Draw(t, "far") == 2
		kinds = append(append([]string{}, kinds...), further...)
		h.plan.RuleChanges = h.plan.RuleChanges || rapid.IntRange(0, 5).Draw(t, "moreRuleChanges") == 5
	}
	one := rapid.Custom(func(t *rapid.T) act {
		a := act{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Pod: rapid.IntRange(0, len(podNames)-1).Draw(t, "pod"),
			Arg: rapid.IntRange(0, 11).Draw(t, "arg"), Slow: rapid.IntRange(0, 3).Draw(t, "slow") == 3, Dup: rapid.IntRange(0, 4).Draw(t, "dup") == 4}
		if resyncs {
			a.Far, a.Lost = h.plan.Far && rapid.Bool().Draw(t, "inFar"), rapid.IntRange(0, 2).Draw(t, "lost") == 2
		}
		return a
	})
	longs := []int{5, 12, 25, 40}
	if resyncs {
		longs = []int{10, 25, 50, 80}
	}
	long := rapid.SampledFrom(longs).Draw(t, "long")
	h.acts = rapid.SliceOfN(one, long, long).Draw(t, "acts")
	h.tape = rapid.SliceOfN(rapid.Byte(), 25*long, 25*long).Draw(t, "tape")
	return h
}

// TestHistories_I1_I2_I3_I4_I8_I9_I10_I18_I19 runs random histories of pods,
// losses, duplicates, crashes and faults through registrars and resyncs. While
// they run: no claimed target is taken out but by a decision that the claim
// overtook, nothing is registered that nobody claims, removals without a witness
// stay within the rails, nothing goes that can't be judged, observing changes
// nothing, groups of others keep what nobody can show, and every change has its
// cause. Afterwards, with faults gone: the target set is what live pods claim,
// but for removals that are held with a reason. With registrars alone that is
// once every hint is processed, with a resync within a round.
func TestHistories_I1_I2_I3_I4_I8_I9_I10_I18_I19(t *testing.T) {
	for _, of := range []struct {
		name                string
		registrars, resyncs bool
		percent             int // of all histories
	}{{"registrars", true, false, 20}, {"both", true, true, 60}, {"resyncs", false, true, 20}} {
		t.Run(of.name, func(t *testing.T) {
			happened := tally{}
			histories(t, of.percent, happened, func(rt *rapid.T) {
				h := drawHistory(rt, of.registrars, of.resyncs)
				var s *sim
				synctest.Test(t, func(t *testing.T) {
					s = newSim(t, h)
					s.run()
				})
				happened.add(s.met)
				if len(s.wrong) > 0 {
					rt.Fatalf("%s\n\n%+v\n%s", strings.Join(s.wrong, "\n"), h.plan, strings.Join(s.trace, "\n"))
				}
			})
		})
	}
}

const (
	// defaultHistories take CI 80 s of processor time with the race detector.
	defaultHistories = 1000
	shortHistories   = 100 // of go test -short
	// batch is how many are tried from one seed.
	batch = 20
)

// histories runs its share of them, in batches that each have a seed: the seeds
// follow each other, and -rapid.seed gives the first.
func histories(t *testing.T, percent int, happened tally, check func(*rapid.T)) {
	all, err := strconv.Atoi(os.Getenv("ELBRIDGE_HISTORIES"))
	if err != nil || all <= 0 {
		if all = defaultHistories; testing.Short() {
			all = shortHistories
		}
	}
	set := func(name, value string) {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	seeds, checks := flag.Lookup("rapid.seed").Value.String(), flag.Lookup("rapid.checks").Value.String()
	defer func() { set("rapid.seed", seeds); set("rapid.checks", checks) }()
	first, _ := strconv.ParseUint(seeds, 10, 64) // 0: none was given
	alone := first > 0                           // one that failed is tried again by itself
	if !alone {
		first = rand.Uint64N(1 << 62)
	}
	rounds := max(1, all*percent/100/batch)
	if alone {
		rounds = 1
	} else {
		set("rapid.checks", strconv.Itoa(batch))
	}
	began := time.Now()
	// One history is one interleaving; what wakes up at the same moment runs in an
	// order that one processor keeps, but for the race detector, which shuffles it.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for n := range rounds {
		set("rapid.seed", strconv.FormatUint(first+uint64(n)*1000, 10))
		quiet := &progress{T: t}
		rapid.Check(quiet, check)
		if n%250 == 249 {
			t.Logf("%d histories in %s, seed now %d", (n+1)*batch, time.Since(began).Round(time.Second), first+uint64(n)*1000)
		}
	}
	t.Logf("%d histories in %s, seeds %d and %d more, 1000 apart; they had %s", rounds*batch, time.Since(began).Round(time.Millisecond), first, rounds-1, happened)
}

// progress leaves out what rapid says of each batch that passed.
type progress struct{ *testing.T }

func (p *progress) Logf(format string, args ...any) {
	if !strings.HasPrefix(format, "[rapid] OK") {
		p.T.Helper()
		p.T.Logf(format, args...)
	}
}

// sim is a world that moves by a tape.
type sim struct {
	t    *testing.T
	plan setup
	todo []act
	tape []byte
	end  bool // the acts are over, and so are the faults

	start    time.Time
	clock    int // counts what happens
	groups   map[string]*group
	hrules   map[string]*hrule
	gone     map[string]*hrule // deleted rules
	nodes    map[string]bool   // Ready
	busTags  map[string]string
	frozen   map[string]int // since when, by ARN
	frozenAt map[string]time.Time

	clusterNames []string
	pods         map[string]*podevent.Pod // by cluster/name
	rv, uids     int
	etcd         []stored
	compacted    int
	streams      map[string]*streams
	next         chan struct{} // closed when a stream or who waits for requests has something to look at
	writes       []write
	freedAt      map[string]time.Time // addresses

	queue          []*letter
	messages       int
	requests       []queue.Message
	asks           int
	fault, faultIn string
	outage         time.Time // no registrar runs until then
	groupWent      bool

	cpus    []*instance
	runners []*runner
	killed  []*runner
	ids     int
	turn    int        // the actor that moves while the others stall
	lock    sync.Mutex // of gates, streams, requests
	gates   []*gate

	version   int // of claims
	known     int
	claimed   map[claimant]span // since when a pod claims a key without a gap
	lastly    map[claimant]bool // whether a managing rule claimed a key when it was claimed last
	lastClaim map[claimant]span // when a pod claimed a key last
	removed   []removal
	changes   []change
	untold    atomic.Bool // events of changes may have been lost
	hashes    []string    // of plans that are held, as they were told
	approved  bool
	calls     int // of DeregisterTargets
	runs      int

	met          tally
	trace, wrong []string
}

// write is a change that admission has seen and etcd has not.
type write struct {
	at    time.Time
	pod   string
	store func()
}

func (s *sim) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%8.3f ", time.Since(s.start).Seconds())+fmt.Sprintf(format, args...))
}

func (s *sim) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.note("VIOLATION %s", text)
	s.wrong = append(s.wrong, text)
}

// tick counts one more thing that happened.
func (s *sim) tick() int { s.clock++; return s.clock }

// choice takes the next choice among n off the tape; an empty one repeats 0.
func (s *sim) choice(n int) int {
	if n <= 1 || len(s.tape) == 0 {
		return 0
	}
	c := int(s.tape[0]) % n
	s.tape = s.tape[1:]
	return c
}

// run plays the history and settles what is left.
func (s *sim) run() {
	for len(s.todo) > 0 && len(s.wrong) == 0 {
		s.step(s.choice(16))
	}
	s.settle()
	s.close()
}

// step lets one of those who can move do so.
func (s *sim) step(c int) {
	synctest.Wait()
	switch {
	case c < 8 && s.waiting() > 0:
		s.releaseOne()
	case c == 8 || c == 9:
		s.receive()
	case c == 10:
		s.storeOne()
	case c == 11:
		s.sleep(20 * time.Millisecond)
	case c == 12:
		s.sleep(500 * time.Millisecond)
	default:
		a := s.todo[0]
		s.todo = s.todo[1:]
		s.note("act %v", a)
		s.act(a)
	}
	s.observe()
}

// sleep moves the clock and stores what other webhooks have held long enough.
func (s *sim) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	s.move()
	for len(s.writes) > 0 && time.Since(s.writes[0].at) > 25*time.Second {
		s.storeOne()
	}
}

func (s *sim) storeOne() {
	if len(s.writes) > 0 {
		w := s.writes[0]
		s.writes = s.writes[1:]
		s.note("stored: %s", w.pod)
		w.store()
	}
}

// on lets everybody go on for a while, without a stall.
func (s *sim) on(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && len(s.wrong) == 0; {
		for s.waiting() > 0 && len(s.wrong) == 0 {
			s.releaseOne()
			s.observe()
		}
		s.receive()
		if s.waiting() == 0 {
			s.sleep(500 * time.Millisecond)
			s.observe()
		}
	}
}

// settle ends the faults and delivers what there is until nothing comes again,
// or only what is held.
func (s *sim) settle() {
	s.note("the end: faults are over")
	s.end, s.fault, s.outage = true, "", time.Time{}
	for len(s.writes) > 0 {
		s.storeOne()
	}
	s.observe()
	if s.plan.resync() {
		s.mended()
		s.observe()
		s.rightAgain()
		return
	}
	s.finish()
	s.touchAll()
	s.observe()
	for range 40 {
		s.finish()
		s.healthy()
		s.sleep(2 * time.Second)
		for range len(s.cpus) {
			if s.choice(3) < 2 {
				s.receive()
			}
		}
		s.observe()
	}
	if len(s.wrong) == 0 {
		s.checkEnd()
	}
}

// finish lets every registrar end what it is at.
func (s *sim) finish() {
	for synctest.Wait(); s.busy() && len(s.wrong) == 0; synctest.Wait() {
		if s.waiting() > 0 {
			s.releaseOne()
		} else {
			s.sleep(20 * time.Millisecond)
		}
		s.observe()
	}
}

// close lets every goroutine of the bubble end.
func (s *sim) close() {
	for _, c := range s.cpus {
		c.dead.Store(true)
	}
	for _, r := range s.runners {
		r.stop(true)
	}
	for synctest.Wait(); s.busy() || s.running(); synctest.Wait() {
		if s.waiting() > 0 {
			s.release(0)
		} else {
			time.Sleep(time.Second)
		}
	}
	s.checkRails()
	s.checkTold()
	s.tally()
}

func (s *sim) busy() bool {
	for _, c := range s.cpus {
		if c.batch != nil {
			return true
		}
	}
	return false
}

func (s *sim) running() bool {
	return slices.ContainsFunc(slices.Concat(s.runners, s.killed), func(r *runner) bool { return !r.ended.Load() })
}

var podNames = []string{"a", "b", "c", "db-0", "host-0"}

// podText is a pod for the trace.
func podText(p *podevent.Pod) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%s uid=%s app=%s ips=%v node=%s ready=%t terminating=%t %s rv=%s", p.Name, p.UID, p.Labels["app"], p.PodIPs, p.NodeName, p.Ready, p.Terminating, p.Phase, p.ResourceVersion)
}

var background = context.Background()
