package registrar_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/registrar"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// letter is a message in the queue.
type letter struct {
	m       queue.Message
	ips     []string
	visible time.Time
	taken   bool
	gone    bool
}

// publish puts events on the bus: every rule that matches now sends a message.
func (s *sim) publish(events []podevent.Event, a act) {
	for _, e := range events {
		for _, name := range []string{"web", "web2", "api"} {
			r := s.hrules[name]
			if r.disabled || !slices.Contains(r.apps, e.Labels["app"]) {
				continue
			}
			s.now = time.Now()
			l := &letter{m: s.message(e, name), visible: time.Now(), ips: slices.Clone(e.PodIPs)}
			if e.Previous != nil {
				l.ips = append(l.ips, e.Previous.PodIPs...)
			}
			s.queue = append(s.queue, l)
			s.note("message %s: %s %s uid=%s rv=%s by %s", l.m.ID, e.Reason, e.Name, e.UID, e.ResourceVersion, name)
			if a.Dup {
				twin := *l
				twin.m.ID += "-twin"
				twin.visible = time.Now().Add(time.Duration(a.Arg) * time.Second)
				s.queue = append(s.queue, &twin)
			}
		}
	}
}

// instance is one registrar, with the batch that it works on.
type instance struct {
	*sim
	id    int
	r     *registrar.Registrar
	batch []*letter
	began time.Time
	run   int
	dead  bool // it was killed: nothing it does has an effect any more
	again map[string]time.Duration
	saw   map[string]groupCount // at its last reading of a group
}

func (s *sim) instance() *instance {
	i := &instance{sim: s, id: len(s.cpus), saw: map[string]groupCount{}}
	i.boot()
	return i
}

// boot is a cold start.
func (i *instance) boot() {
	i.dead = false
	i.r = i.registrar()
	i.r.Config.Observe = i.plan.Observe
	i.r.Config.RegisterPace = 100 * time.Millisecond
	i.r.Clusters = map[string]reconcile.Cluster{"local": i}
	i.r.Groups = func(*binding.Binding) reconcile.Groups { return gatedGroups{i, groupsOf{i.world}} }
	i.r.Rules = gatedRules{i, rulesOf{i.world}}
	i.r.Queue, i.r.Events = i, i
	i.r.Now, i.r.Sleep = time.Now, registrar.Sleep
}

// receive gives an idle instance a batch of visible messages, and reports
// whether it did.
func (s *sim) receive() bool {
	idle := slices.IndexFunc(s.cpus, func(c *instance) bool { return c.batch == nil })
	var visible []*letter
	for _, l := range s.queue {
		if !l.taken && !l.gone && !l.visible.After(time.Now()) {
			visible = append(visible, l)
		}
	}
	if idle < 0 || len(visible) == 0 {
		return false
	}
	c := s.cpus[idle]
	var ms []queue.Message
	var names []string
	for range min(10, 1+s.choice(len(visible))) {
		n := s.choice(len(visible))
		l := visible[n]
		visible = slices.Delete(visible, n, n+1)
		l.taken = true
		l.m.Receives++
		c.batch = append(c.batch, l)
		ms = append(ms, l.m)
		names = append(names, l.m.ID)
	}
	s.runs++
	c.began, c.run, c.again = time.Now(), s.runs, map[string]time.Duration{}
	s.note("instance %d takes %s", c.id, strings.Join(names, " "))
	go func() {
		ctx, cancel := context.WithTimeout(background, 30*time.Second)
		defer cancel()
		failed := c.r.Process(ctx, ms)
		_ = c.yield(fmt.Sprintf("%d ends", c.id))
		c.done(failed)
	}()
	return true
}

// done is what the event source mapping makes of the answer.
func (i *instance) done(failed []string) {
	for _, l := range i.batch {
		l.taken = false
		wait, told := i.again[l.m.ID]
		switch {
		case i.dead, slices.Contains(failed, l.m.ID) && !told:
			l.visible = i.began.Add(30 * time.Second)
		case slices.Contains(failed, l.m.ID):
			l.visible = time.Now().Add(wait)
		default:
			l.gone = true
		}
	}
	i.note("instance %d done, dead=%t, again %v", i.id, i.dead, failed)
	i.batch = nil
	if i.dead {
		i.boot()
	}
}

// gate is where a call waits for its turn.
type gate struct {
	name string
	open chan struct{}
}

// yield waits until the tape lets this call go on.
func (s *sim) yield(name string) error {
	g := &gate{name: name, open: make(chan struct{})}
	s.lock.Lock()
	s.gates = append(s.gates, g)
	s.lock.Unlock()
	<-g.open
	return nil
}

func (s *sim) waiting() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.gates)
}

// releaseOne lets a call of the instance go on whose turn it is, or of another
// one where it has none. A turn lasts for some calls, so that a whole decision of
// one falls between two calls of another.
func (s *sim) releaseOne() {
	if s.choice(8) == 7 {
		s.turn = s.choice(len(s.cpus))
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

// call is one call of a registrar: it waits, has its effect, and waits again.
func call[T any](i *instance, name string, faults string, do func() (T, error)) (T, error) {
	var none T
	name = fmt.Sprintf("%d %s", i.id, name)
	if err := i.yield(name); err != nil {
		return none, err
	}
	if i.dead {
		return none, errKilled
	}
	if i.fault != "" && strings.Contains(faults, i.fault) {
		return none, faultErr(i.fault)
	}
	out, err := do()
	if err := i.yield(name + " answers"); err != nil {
		return none, err
	}
	if i.dead {
		return none, errKilled
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

func (i *instance) Pod(ctx context.Context, ns, name string) (*podevent.Pod, error) {
	return call(i, "pod "+name, "unreachable", func() (*podevent.Pod, error) { return i.world.Pod(ctx, ns, name) })
}

func (i *instance) Pods(ctx context.Context, ns, labels string) ([]*podevent.Pod, error) {
	return call(i, "pods "+labels, "unreachable", func() ([]*podevent.Pod, error) { return i.world.Pods(ctx, ns, labels) })
}

func (i *instance) PodsByIP(ctx context.Context, ip string) ([]*podevent.Pod, error) {
	return call(i, "pods at "+ip, "unreachable", func() ([]*podevent.Pod, error) { return i.world.PodsByIP(ctx, ip) })
}

func (i *instance) Node(ctx context.Context, name string) (cluster.Node, error) {
	return call(i, "node "+name, "unreachable no-nodes", func() (cluster.Node, error) { return i.world.Node(ctx, name) })
}

// Again waits as long as the longest wait of its kind, so that a history does
// not depend on jitter.
func (i *instance) Again(_ context.Context, m queue.Message, d time.Duration) error {
	for _, most := range []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second} {
		if d <= most {
			d = most
			break
		}
	}
	_, err := call(i, "again "+m.ID, "", func() (struct{}, error) { i.again[m.ID] = d; return struct{}{}, nil })
	return err
}

func (i *instance) Bury(_ context.Context, m queue.Message, reason string) error {
	_, err := call(i, "bury "+m.ID, "", func() (struct{}, error) {
		i.violation("message %s was buried: %s", m.ID, reason)
		return struct{}{}, nil
	})
	return err
}

func (i *instance) Put(_ context.Context, es []bus.Entry) ([]bus.Unsent, error) {
	return call(i, "put", "no-events", func() ([]bus.Unsent, error) { i.told(es); return nil, nil })
}

type gatedRules struct {
	i *instance
	rulesOf
}

func (r gatedRules) List(ctx context.Context) ([]binding.Rule, error) {
	return call(r.i, "rules", "no-rules", func() ([]binding.Rule, error) { return r.rulesOf.List(ctx) })
}

func (r gatedRules) Rule(ctx context.Context, name string) (binding.Rule, error) {
	return call(r.i, "rule "+name, "no-rules", func() (binding.Rule, error) { return r.rulesOf.Rule(ctx, name) })
}

func (r gatedRules) Targets(ctx context.Context, name string) ([]binding.Target, error) {
	return call(r.i, "targets "+name, "no-rules", func() ([]binding.Target, error) { return r.rulesOf.Targets(ctx, name) })
}

func (r gatedRules) Tags(ctx context.Context, arn string) (map[string]string, error) {
	return call(r.i, "bus tags", "no-rules", func() (map[string]string, error) { return r.rulesOf.Tags(ctx, arn) })
}

type gatedGroups struct {
	i *instance
	groupsOf
}

func (g gatedGroups) Describe(ctx context.Context, ref binding.GroupRef) (claim.Group, error) {
	return call(g.i, "describe "+short(ref.ARN), "throttled no-health", func() (claim.Group, error) { return g.groupsOf.Describe(ctx, ref) })
}

func (g gatedGroups) Health(ctx context.Context, gr claim.Group) (map[claim.Key]plan.Target, error) {
	return call(g.i, "health "+short(gr.ARN), "throttled no-health", func() (map[claim.Key]plan.Target, error) {
		g.i.saw[gr.ARN] = g.i.count(gr.ARN)
		return g.groupsOf.Health(ctx, gr)
	})
}

func (g gatedGroups) Tags(ctx context.Context, arn string) (map[string]string, error) {
	return call(g.i, "tags "+short(arn), "throttled", func() (map[string]string, error) { return g.groupsOf.Tags(ctx, arn) })
}

func (g gatedGroups) Register(ctx context.Context, gr claim.Group, ks []claim.Key, zone string) targetgroup.Result {
	return g.mutate("register", gr, ks, func() targetgroup.Result {
		g.i.checkCall("register", gr.ARN, ks)
		return g.groupsOf.Register(ctx, gr, ks, zone)
	})
}

func (g gatedGroups) Deregister(ctx context.Context, gr claim.Group, ks []claim.Key) targetgroup.Result {
	return g.mutate("deregister", gr, ks, func() targetgroup.Result {
		g.i.checkCall("deregister", gr.ARN, ks)
		g.i.checkRemoval(gr.ARN, ks)
		return g.groupsOf.Deregister(ctx, gr, ks)
	})
}

// mutate is call for calls whose failure is told key by key, and whose answer
// may be lost after they had their effect.
func (g gatedGroups) mutate(verb string, gr claim.Group, ks []claim.Key, do func() targetgroup.Result) targetgroup.Result {
	s := g.i.sim
	res, err := call(g.i, verb+" "+short(gr.ARN), "throttled", func() (targetgroup.Result, error) {
		s.groups[gr.ARN].quota = 1000
		if s.fault == "quota" {
			s.groups[gr.ARN].quota = 2
		}
		res := do()
		s.note("instance %d: %s %s %v, failed %v; now %s", g.i.id, verb, short(gr.ARN), ks, res.Failed, s.groupText(gr.ARN))
		if s.fault == "lost-answer" {
			return res, faultErr(s.fault)
		}
		return res, nil
	})
	if err == nil {
		return res
	}
	failed := targetgroup.Result{Failed: map[claim.Key]error{}, Calls: 1}
	for _, k := range ks {
		failed.Failed[k] = err
	}
	return failed
}

func short(arn string) string {
	if arn == webARN {
		return "web"
	}
	return "api"
}
