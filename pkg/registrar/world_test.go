package registrar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
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
	"github.com/elbridge/elbridge/pkg/telemetry"
)

const (
	account = "111122223333"
	region  = "eu-west-1"
	busARN  = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	qARN    = "arn:aws:sqs:eu-west-1:111122223333:registrar"
	webARN  = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"
	apiARN  = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/api/fedcba9876543210"
)

// world is one cluster, some rules and target groups, all of them holding state.
type world struct {
	t  testing.TB
	mu sync.Mutex

	now    time.Time
	rv     int
	pods   map[string]*podevent.Pod // namespace/name
	nodes  map[string]bool          // Ready
	rules  map[string]*rule
	groups map[string]*group
	bus    map[string]string // tags

	podReads   func(name string) error // a fault, or something that happens meanwhile
	nodeReads  func()
	rulesErr   error
	busErr     error
	log        bytes.Buffer
	visibility map[string]time.Duration // by message id
	buried     map[string]string
	events     []bus.Entry
	nextMsg    int
	r          *registrar.Registrar
}

type rule struct {
	name, pattern, state, constants string
}

type group struct {
	arn       string
	targets   map[claim.Key]plan.Health
	tags      map[string]string
	calls     []string
	quota     int
	healthErr error
	callErr   error
	onCall    func(verb string)
	onHealth  func()
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), rv: 100, pods: map[string]*podevent.Pod{},
		nodes: map[string]bool{"node-a": true, "node-b": true}, rules: map[string]*rule{}, groups: map[string]*group{}, bus: map[string]string{},
		visibility: map[string]time.Duration{}, buried: map[string]string{}}
	for _, arn := range []string{webARN, apiARN} {
		w.groups[arn] = &group{arn: arn, targets: map[claim.Key]plan.Health{}, tags: map[string]string{"elbridge:owner": busARN}, quota: 1000}
	}
	w.bind("web", `{"app":["web"]}`, `{"targetGroup":"`+webARN+`","port":8080}`)
	w.r = w.registrar()
	return w
}

// registrar is a fresh instance, as after a cold start.
func (w *world) registrar() *registrar.Registrar {
	return &registrar.Registrar{
		Config:   registrar.Config{BusARN: busARN, QueueARN: qARN, Verify: registrar.VerifyAlways, HintMaxAge: registrar.DefaultHintMaxAge, DescribeSpare: 1000},
		Clusters: map[string]reconcile.Cluster{"local": w}, Observed: map[string]bool{},
		Groups: func(*binding.Binding) reconcile.Groups { return groupsOf{w} },
		Rules:  rulesOf{w}, Queue: w, Events: w,
		Meter: telemetry.NewMeter(&w.log, w.clock, nil), Log: slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Now: w.clock,
		Sleep: func(_ context.Context, d time.Duration) error { w.pass(d); return nil },
	}
}

// clock moves a little with every look at it, so that loops on it end.
func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

func (w *world) pass(d time.Duration) { w.mu.Lock(); w.now = w.now.Add(d); w.mu.Unlock() }

func (w *world) bind(name, labels, constants string) {
	w.rules[name] = &rule{name: name, state: "ENABLED", constants: constants,
		pattern: `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["local"],"namespace":["shop"],"labels":` + labels + `}}`}
}

// set stores a pod given as "name ip=10.0.0.1 app=web ready ended uid=u1 node=node-a".
func (w *world) set(text string) *podevent.Pod {
	f := strings.Fields(text)
	w.rv++
	p := &podevent.Pod{Namespace: "shop", Name: f[0], UID: f[0], ResourceVersion: strconv.Itoa(w.rv), NodeName: "node-a", Phase: "Running",
		Labels: map[string]string{"app": "web"}, Ports: []podevent.Port{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}}}
	for _, w := range f[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "ip":
			p.PodIPs = strings.Split(v, ",")
		case "app":
			p.Labels = map[string]string{"app": v}
		case "uid":
			p.UID = v
		case "node":
			p.NodeName = v
		case "ready":
			p.Ready, p.ContainersReady = true, true
		case "host":
			p.HostNetwork = true
		case "terminating":
			p.Terminating = true
		case "ended":
			p.Phase = "Failed"
		default:
			panic("unknown word " + w)
		}
	}
	w.pods["shop/"+p.Name] = p
	return p
}

func (w *world) remove(name string) { delete(w.pods, "shop/"+name) }

// targets puts "10.0.0.1=healthy 10.0.0.2:9090=draining" into the web group.
func (w *world) targets(text string) {
	for _, f := range strings.Fields(text) {
		id, health, _ := strings.Cut(f, "=")
		k := claim.Key{ID: id, Port: 8080}
		if host, port, ok := strings.Cut(id, ":"); ok {
			n, _ := strconv.Atoi(port)
			k = claim.Key{ID: host, Port: int32(n)}
		}
		w.groups[webARN].targets[k] = plan.Health(health)
	}
}

// holds returns the web group's targets that are not draining, sorted.
func (w *world) holds(arn string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(w.groups[arn].targets), claim.Compare) {
		if w.groups[arn].targets[k] != plan.Draining {
			out = append(out, strings.TrimSuffix(k.String(), ":8080"))
		}
	}
	return strings.Join(out, " ")
}

// hint is a message about a pod as it was before its change; resourceVersion is
// the one before the change, so a stored change settles it.
func (w *world) hint(p podevent.Pod, reason podevent.Reason, ruleName string) queue.Message {
	ev := podevent.FromPod("local", &p, nil, w.now)
	ev.Reason = reason
	ev.ResourceVersion = "before"
	return w.message(ev, ruleName)
}

func (w *world) message(ev podevent.Event, ruleName string) queue.Message {
	env, err := ev.Envelope("event-"+ev.UID, account, region)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := env.JSON()
	if err != nil {
		w.t.Fatal(err)
	}
	w.nextMsg++
	body := fmt.Sprintf(`{"binding":%s,"rule":%q,"event":%s}`, w.rules[ruleName].constants, ruleARN(ruleName), text)
	return queue.Message{ID: fmt.Sprintf("m%d", w.nextMsg), Body: body, Receipt: "r", Sent: w.now, Receives: 1}
}

func ruleARN(name string) string {
	return "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name
}

func (w *world) process(ms ...queue.Message) []string {
	return w.r.Process(context.Background(), ms)
}

// --- what the registrar sees -------------------------------------------------

func (w *world) Pod(_ context.Context, ns, name string) (*podevent.Pod, error) {
	if w.podReads != nil {
		if err := w.podReads(name); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[ns+"/"+name]; p != nil {
		c := *p
		return &c, nil
	}
	return nil, cluster.ErrNotFound
}

func (w *world) Pods(_ context.Context, ns, labels string) ([]*podevent.Pod, error) {
	return w.find(func(p *podevent.Pod) bool {
		for _, req := range strings.Split(labels, ",") {
			if k, v, ok := strings.Cut(req, "="); ok && p.Labels[k] != v {
				return false
			}
		}
		return ns == "" || p.Namespace == ns
	})
}

func (w *world) PodsByIP(_ context.Context, ip string) ([]*podevent.Pod, error) {
	return w.find(func(p *podevent.Pod) bool { return p.PodIP() == ip })
}

func (w *world) find(ok func(*podevent.Pod) bool) ([]*podevent.Pod, error) {
	if w.podReads != nil {
		if err := w.podReads(""); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*podevent.Pod
	for _, p := range w.pods {
		if ok(p) {
			c := *p
			out = append(out, &c)
		}
	}
	return out, nil
}

func (w *world) Node(_ context.Context, name string) (cluster.Node, error) {
	if w.nodeReads != nil {
		w.nodeReads()
	}
	ready, known := w.nodes[name]
	if !known {
		return cluster.Node{}, cluster.ErrNotFound
	}
	return cluster.Node{Name: name, Ready: ready}, nil
}

func (w *world) Again(_ context.Context, m queue.Message, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visibility[m.ID] = d
	return nil
}

func (w *world) Bury(_ context.Context, m queue.Message, reason string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buried[m.ID] = reason
	return nil
}

func (w *world) Put(_ context.Context, es []bus.Entry) ([]bus.Unsent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busErr != nil {
		return nil, w.busErr
	}
	w.events = append(w.events, es...)
	return nil, nil
}

// event returns the details of the events of a type put so far.
func (w *world) eventsOf(detailType string) []map[string]any {
	var out []map[string]any
	for _, e := range w.events {
		if e.DetailType == detailType {
			m := map[string]any{}
			if err := json.Unmarshal(e.Detail, &m); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, m)
		}
	}
	return out
}

type rulesOf struct{ w *world }

func (r rulesOf) of(x *rule) binding.Rule {
	return binding.Rule{ARN: ruleARN(x.name), Name: x.name, Bus: "elbridge", State: x.state, Pattern: x.pattern}
}

func (r rulesOf) List(context.Context) ([]binding.Rule, error) {
	if r.w.rulesErr != nil {
		return nil, r.w.rulesErr
	}
	var out []binding.Rule
	for _, name := range slices.Sorted(maps.Keys(r.w.rules)) {
		out = append(out, r.of(r.w.rules[name]))
	}
	return out, nil
}

func (r rulesOf) Rule(_ context.Context, name string) (binding.Rule, error) {
	if x, ok := r.w.rules[name]; ok {
		return r.of(x), nil
	}
	return binding.Rule{}, bus.ErrNotFound
}

func (r rulesOf) Targets(_ context.Context, name string) ([]binding.Target, error) {
	x := r.w.rules[name]
	return []binding.Target{{ID: "registrar", ARN: qARN, Transformer: &binding.Transformer{
		Template: `{"binding":` + x.constants + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}, nil
}

func (r rulesOf) Tags(context.Context, string) (map[string]string, error) { return r.w.bus, nil }

type groupsOf struct{ w *world }

func (g groupsOf) get(arn string) (*group, error) {
	if x, ok := g.w.groups[arn]; ok {
		return x, nil
	}
	return nil, targetgroup.ErrNotFound
}

func (g groupsOf) Describe(_ context.Context, ref binding.GroupRef) (claim.Group, error) {
	var carrying []string
	for arn, x := range g.w.groups {
		if ref.Carried(x.tags) {
			carrying = append(carrying, arn)
		}
	}
	switch {
	case len(carrying) > 1:
		return claim.Group{}, targetgroup.ErrAmbiguous
	case len(carrying) == 1:
		ref.ARN = carrying[0]
	}
	x, err := g.get(ref.ARN)
	if err != nil {
		return claim.Group{}, err
	}
	return claim.Group{ARN: x.arn, Type: claim.IP, Family: claim.IPv4, Port: 80}, nil
}

func (g groupsOf) Health(_ context.Context, gr claim.Group) (map[claim.Key]plan.Target, error) {
	x, err := g.get(gr.ARN)
	if err == nil && x.onHealth != nil {
		x.onHealth()
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if err != nil || x.healthErr != nil {
		return nil, errors.Join(err, x.healthErr)
	}
	out := map[claim.Key]plan.Target{}
	for k, h := range x.targets {
		out[k] = plan.Target{Health: h}
	}
	return out, nil
}

func (g groupsOf) Tags(_ context.Context, arn string) (map[string]string, error) {
	x, err := g.get(arn)
	if err != nil {
		return nil, err
	}
	return x.tags, nil
}

func (g groupsOf) Register(_ context.Context, gr claim.Group, ks []claim.Key, _ string) targetgroup.Result {
	return g.call("register", gr, ks, func(x *group, k claim.Key) error {
		serving := 0
		for _, h := range x.targets {
			if h != plan.Draining {
				serving++
			}
		}
		if h := x.targets[k]; h != "" && h != plan.Draining {
			return nil // it is there already
		}
		if serving >= x.quota {
			return targetgroup.ErrQuota
		}
		x.targets[k] = plan.Initial
		return nil
	})
}

func (g groupsOf) Deregister(_ context.Context, gr claim.Group, ks []claim.Key) targetgroup.Result {
	return g.call("deregister", gr, ks, func(x *group, k claim.Key) error {
		if _, ok := x.targets[k]; ok {
			x.targets[k] = plan.Draining
		}
		return nil
	})
}

func (g groupsOf) call(verb string, gr claim.Group, ks []claim.Key, do func(*group, claim.Key) error) targetgroup.Result {
	res := targetgroup.Result{Failed: map[claim.Key]error{}, Calls: 1}
	g.w.mu.Lock()
	x, err := g.get(gr.ARN)
	if err == nil {
		err = x.callErr
	}
	var names []string
	for _, k := range ks {
		names = append(names, k.ID)
		e := err
		if e == nil {
			e = do(x, k)
		}
		if e != nil {
			res.Failed[k] = e
		}
	}
	var after func(string)
	if x != nil {
		x.calls = append(x.calls, verb+" "+strings.Join(names, " "))
		after = x.onCall
	}
	g.w.mu.Unlock()
	if after != nil {
		after(verb)
	}
	return res
}
