package registrar_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// Histories are drawn as data: what happens, and a tape of choices for who moves
// next. They run in a bubble with a clock of its own, and every call of a
// registrar waits at a gate before and after its effect, so that one history is
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
	Instances   int    // registrars that run at the same time
	ReuseAtOnce bool   // a free address is given away at once, not after 30 s
	RuleChanges bool   // rules change while pods do
	Observe     bool   // I19, for everything
	When        string // registerWhen of the web rule
	Second      string // mode of the second rule of the web group
	Percent     int    // maxRemovalPercent of the web group
	Foreign     bool   // the api group has no owner tag
	CIDRs       bool   // and its binding has podCIDRs
}

// act is one thing that happens in the cluster, to the load balancer or to AWS.
type act struct {
	Kind string
	Pod  int
	Arg  int
	Slow bool // the write is stored some time after admission saw it
	Dup  bool // its events arrive twice
}

func (a act) String() string {
	var flags string
	if a.Slow {
		flags += " slow"
	}
	if a.Dup {
		flags += " dup"
	}
	return fmt.Sprintf("%s pod%d %d%s", a.Kind, a.Pod, a.Arg, flags)
}

// kinds of acts; the frequent ones stand here more than once.
var kinds = []string{"up", "up", "up", "create", "ip", "ready", "unready", "relabel", "delete", "delete", "refused", "gone", "gone", "force",
	"evict", "finish", "replace", "node", "health", "sick", "drained", "time", "time", "takeover", "takeover", "crash", "fault", "fault", "calm", "rule"}

// hasty are the kinds that make the truth move between a reading and a call.
var hasty = []string{"up", "up", "takeover", "takeover", "replace", "force", "delete", "gone", "relabel", "health"}

func drawHistory(t *rapid.T) history {
	h := history{plan: setup{
		Instances:   rapid.IntRange(1, 3).Draw(t, "instances"),
		ReuseAtOnce: rapid.Bool().Draw(t, "reuse"),
		RuleChanges: rapid.IntRange(0, 3).Draw(t, "ruleChanges") == 3,
		Observe:     rapid.IntRange(0, 9).Draw(t, "observe") == 9,
		When:        rapid.SampledFrom([]string{"HasIP", "HasIP", "ContainersReady", "Ready"}).Draw(t, "when"),
		Second:      rapid.SampledFrom([]string{"manage", "manage", "observe"}).Draw(t, "second"),
		Percent:     rapid.SampledFrom([]int{20, 50, 100}).Draw(t, "percent"),
		Foreign:     rapid.Bool().Draw(t, "foreign"),
		CIDRs:       rapid.Bool().Draw(t, "cidrs"),
	}}
	kinds := kinds
	if h.plan.ReuseAtOnce && rapid.Bool().Draw(t, "hasty") {
		kinds = hasty
	}
	one := rapid.Custom(func(t *rapid.T) act {
		return act{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Pod: rapid.IntRange(0, len(podNames)-1).Draw(t, "pod"),
			Arg: rapid.IntRange(0, 11).Draw(t, "arg"), Slow: rapid.IntRange(0, 3).Draw(t, "slow") == 3, Dup: rapid.IntRange(0, 4).Draw(t, "dup") == 4}
	})
	long := rapid.SampledFrom([]int{5, 12, 25, 40}).Draw(t, "long")
	h.acts = rapid.SliceOfN(one, long, long).Draw(t, "acts")
	h.tape = rapid.SliceOfN(rapid.Byte(), 25*long, 25*long).Draw(t, "tape")
	return h
}

// TestHistories_I1_I2_I3_I4_I8_I9_I18_I19 runs random histories with several
// registrars at once. While they run: no claimed target is taken out but by a
// decision that the claim overtook, removals without a witness stay within the
// rails, observing changes nothing, groups of others keep what nobody can show.
// Afterwards, with faults gone and every hint processed: the target set is what
// live pods claim, but for removals that are held with a reason.
func TestHistories_I1_I2_I3_I4_I8_I9_I18_I19(t *testing.T) {
	check := func(rt *rapid.T) {
		h := drawHistory(rt)
		var s *sim
		synctest.Test(t, func(t *testing.T) {
			s = newSim(t, h)
			s.run()
		})
		if len(s.wrong) > 0 {
			rt.Fatalf("%s\n\n%+v\n%s", strings.Join(s.wrong, "\n"), h.plan, strings.Join(s.trace, "\n"))
		}
	}
	for range historyRounds() {
		rapid.Check(t, check)
	}
}

// historyRounds is how often rapid's own number of checks (100) is run.
func historyRounds() int {
	n, err := strconv.Atoi(os.Getenv("ELBRIDGE_HISTORIES"))
	if err != nil || n <= 0 {
		return 2
	}
	return max(1, n/100)
}

// sim is a world that moves by a tape.
type sim struct {
	*world
	plan setup
	todo []act
	tape []byte
	end  bool // the acts are over, and so are the faults

	start   time.Time
	uids    int
	hrules  map[string]*hrule
	writes  []write
	queue   []*letter
	freedAt map[string]time.Time // addresses
	fault   string
	cpus    []*instance
	turn    int        // the instance that moves while the others stall
	lock    sync.Mutex // of gates
	gates   []*gate
	claimed map[claimant]span // since when a pod claims a key without a gap
	lastly  map[claimant]bool // whether a managing rule claimed a key when it was claimed last
	removed []removal
	calls   int // of DeregisterTargets
	runs    int

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

// settle ends the faults and delivers what there is until nothing comes again,
// or only what is held.
func (s *sim) settle() {
	s.note("the end: faults are over")
	s.end, s.fault = true, ""
	for _, g := range s.groups {
		g.quota = 1000
	}
	for len(s.writes) > 0 {
		s.storeOne()
	}
	s.observe()
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
		c.dead = true
	}
	for synctest.Wait(); s.busy(); synctest.Wait() {
		if s.waiting() > 0 {
			s.release(0)
		} else {
			time.Sleep(time.Second)
		}
	}
	s.checkRails()
}

func (s *sim) busy() bool {
	for _, c := range s.cpus {
		if c.batch != nil {
			return true
		}
	}
	return false
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
