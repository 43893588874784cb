package histories_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/registrar"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// letter is a message in the registrars' queue.
type letter struct {
	m       queue.Message
	ips     []string
	visible time.Time
	taken   bool
	gone    bool
}

// publish puts events on the bus: every rule that matches now sends a message,
// unless they are lost.
func (s *sim) publish(in string, events []podevent.Event, a act) {
	if s.plan.resync() && a.Lost {
		s.note("events lost")
		return
	}
	for _, e := range events {
		for _, name := range ruleNames {
			r := s.hrules[name]
			if r == nil || r.disabled || !slices.Contains(r.apps, e.Labels["app"]) || !r.covers(in) {
				continue
			}
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

func (s *sim) message(ev podevent.Event, ruleName string) queue.Message {
	env, err := ev.Envelope("event-"+ev.UID, account, region)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := env.JSON()
	if err != nil {
		s.t.Fatal(err)
	}
	s.messages++
	body := fmt.Sprintf(`{"binding":%s,"rule":%q,"event":%s}`, s.hrules[ruleName].constants(), ruleARN(ruleName), text)
	return queue.Message{ID: fmt.Sprintf("m%d", s.messages), Body: body, Receipt: "r", Sent: time.Now(), Receives: 1}
}

// instance is one registrar, with the batch that it works on.
type instance struct {
	*actor
	r     *registrar.Registrar
	batch []*letter
	began time.Time
	again map[string]time.Duration
}

func (s *sim) instance() *instance {
	i := &instance{actor: s.actor(false)}
	i.boot()
	return i
}

// boot is a cold start.
func (i *instance) boot() {
	i.dead.Store(false)
	i.r = &registrar.Registrar{
		Config: registrar.Config{BusARN: busARN, QueueARN: queueARN, Verify: registrar.VerifyAlways, HintMaxAge: registrar.DefaultHintMaxAge,
			DescribeSpare: 1000, RegisterPace: 100 * time.Millisecond, Observe: i.plan.Observe},
		Clusters: map[string]reconcile.Cluster{}, Observed: map[string]bool{},
		Groups: func(*binding.Binding) reconcile.Groups { return gatedGroups{i.actor} },
		Rules:  gatedRules{i.actor}, Queue: i, Events: busOf{i.actor}, Handover: i,
		Meter: telemetry.NewMeter(io.Discard, time.Now, nil), Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Sleep: registrar.Sleep,
	}
	for _, name := range i.clusterNames {
		i.r.Clusters[name] = kube{i.actor, name}
	}
}

// Ask hands groups over to resync.
func (i *instance) Ask(_ context.Context, groups []string) error {
	i.ask(fmt.Sprintf(`{"schema":1,"trigger":"hint-expired","request":{"id":"expired","groups":["%s"]}}`, strings.Join(groups, `","`)))
	return nil
}

// receive gives an idle registrar a batch of visible messages, and reports
// whether it did.
func (s *sim) receive() bool {
	idle := slices.IndexFunc(s.cpus, func(c *instance) bool { return c.batch == nil })
	var visible []*letter
	for _, l := range s.queue {
		if !l.taken && !l.gone && !l.visible.After(time.Now()) {
			visible = append(visible, l)
		}
	}
	if idle < 0 || len(visible) == 0 || time.Now().Before(s.outage) {
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
	s.note("%s takes %s", c.name(), strings.Join(names, " "))
	go func() {
		ctx, cancel := context.WithTimeout(background, 30*time.Second)
		defer cancel()
		failed := c.r.Process(ctx, ms)
		c.yield(fmt.Sprintf("%d ends", c.id))
		c.done(failed)
	}()
	return true
}

// done is what the event source mapping makes of the answer.
func (i *instance) done(failed []string) {
	dead := i.dead.Load()
	for _, l := range i.batch {
		l.taken = false
		wait, told := i.again[l.m.ID]
		switch {
		case dead, slices.Contains(failed, l.m.ID) && !told:
			l.visible = i.began.Add(30 * time.Second)
		case slices.Contains(failed, l.m.ID):
			l.visible = time.Now().Add(wait)
		default:
			l.gone = true
		}
	}
	i.note("%s done, dead=%t, again %v", i.name(), dead, failed)
	i.batch = nil
	if dead {
		i.boot()
	}
}

func (i *instance) Again(ctx context.Context, m queue.Message, d time.Duration) error {
	for _, most := range []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second} {
		if d <= most {
			d = most
			break
		}
	}
	_, err := call(ctx, i.actor, "again "+m.ID, "", "", func() (struct{}, error) { i.again[m.ID] = d; return struct{}{}, nil })
	return err
}

func (i *instance) Bury(ctx context.Context, m queue.Message, reason string) error {
	_, err := call(ctx, i.actor, "bury "+m.ID, "", "", func() (struct{}, error) {
		if !i.groupWent { // what names a group that is not there can't be followed
			i.violation("message %s was buried: %s", m.ID, reason)
		}
		return struct{}{}, nil
	})
	return err
}
