package resync_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/resync"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

const (
	account  = "111122223333"
	region   = "eu-west-1"
	busARN   = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	queueARN = "arn:aws:sqs:eu-west-1:111122223333:registrar"
	interval = resync.DefaultInterval
)

// world is clusters, target groups and rules that hold state, in a bubble with a
// clock of its own. It begins with the cluster "local", the group "web" and the
// rule "web", which binds pods with app=web of the namespace shop to it.
type world struct {
	t        *testing.T
	mu       sync.Mutex
	clusters map[string]*kube
	groups   map[string]*group // by name
	rules    map[string]*rule
	busTags  map[string]string
	calls    []call
	skew     time.Duration // of the clock, without a monotonic reading if it is not 0
	observed map[string]bool

	rulesErr    error            // of ListRules
	targetsErr  map[string]error // of ListTargetsByRule
	describeErr error            // of the tags of all groups
	listErr     map[string]error // of the listing of groups, by role
	onRules     func(ctx context.Context) error

	inbox   []queue.Message
	arrived chan struct{} // closed at the next message
	deleted []string
	buried  map[string]string
	nextMsg int

	events  []told
	putErr  error
	log     lines
	metrics lines
	config  resync.Config
	r       *resync.Resync
	runs    sync.WaitGroup
	end     context.CancelFunc
}

// call is one call of ELBv2.
type call struct {
	at        time.Time
	operation string
	group     string
	keys      string
}

type told struct {
	at time.Time
	bus.Entry
}

// lines keeps what is written to it, and counts the ends of rounds in it.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
	rounds int
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(b, []byte(`"msg":"round"`)) {
		l.rounds++
	}
	return l.Buffer.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

type rule struct {
	name, pattern, state string
	constants            []string // of each of its targets
}

// story runs tell in a world of its own and ends what it started.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, clusters: map[string]*kube{}, groups: map[string]*group{}, rules: map[string]*rule{}, busTags: map[string]string{},
			targetsErr: map[string]error{}, listErr: map[string]error{}, arrived: make(chan struct{}), buried: map[string]string{}, observed: map[string]bool{},
			config: resync.Config{Settings: reconcile.Settings{BusARN: busARN, QueueARN: queueARN}, RunLength: resync.DefaultRunLength, Interval: interval, Share: resync.DefaultShare}}
		w.cluster("local")
		w.group("web")
		w.bind("web", "app=web", `{"targetGroup":"`+arnOf("web")+`","port":8080}`)
		w.r = w.instance()
		w.end = func() {}
		defer func() { w.end(); w.runs.Wait() }()
		tell(w)
		if t.Failed() {
			t.Logf("what was told:\n%s", strings.Join(w.all(), "\n"))
		}
	})
}

// instance is a function after a cold start.
func (w *world) instance() *resync.Resync {
	clusters := map[string]resync.Cluster{}
	for name, k := range w.clusters {
		clusters[name] = k
	}
	return &resync.Resync{
		Config: w.config, Clusters: clusters, Observed: w.observed,
		Groups: func(b *binding.Binding) resync.Groups { return groupsOf{w, b.RoleARN} },
		Rules:  rulesOf{w}, Inbox: inboxOf{w}, Events: w,
		Meter: telemetry.NewMeter(&w.metrics, w.now, nil),
		Log:   slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:   w.now, Sleep: resync.Sleep,
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.skew != 0 {
		return time.Now().Add(w.skew).Round(0)
	}
	return time.Now()
}

// jump turns the wall clock.
func (w *world) jump(d time.Duration) { w.do(func() { w.skew += d }) }

func (w *world) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// start begins a run, and another when it ends.
func (w *world) start() { w.run(w.r, "run") }

func (w *world) run(r *resync.Resync, name string) (end context.CancelFunc) {
	ctx, cancel := context.WithCancel(w.t.Context())
	before := w.end
	w.end = func() { before(); cancel() }
	w.runs.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			r.Run(ctx, fmt.Sprintf("%s-%d", name, n))
		}
	})
	return cancel
}

// rounds waits for the end of n more rounds.
func (w *world) rounds(n int) {
	w.t.Helper()
	for until := w.roundsEnded() + n; w.roundsEnded() < until; {
		if time.Since(w.began()) > 3*time.Hour {
			w.t.Fatalf("%d rounds after three hours, want %d", w.roundsEnded(), until)
		}
		time.Sleep(50 * time.Millisecond)
	}
	synctest.Wait()
}

func (w *world) began() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func (w *world) roundsEnded() int {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.rounds
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// --- rules ---------------------------------------------------------------------

func ruleARN(name string) string {
	return "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name
}

// patternOf selects pods of the namespace shop by a label, in one cluster, or in
// all of them if it is "".
func patternOf(cluster, label string) string {
	k, v, _ := strings.Cut(label, "=")
	in := ""
	if cluster != "" {
		in = `"cluster":["` + cluster + `"],`
	}
	return `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{` + in + `"namespace":["shop"],"labels":{"` + k + `":["` + v + `"]}}}`
}

func (w *world) bind(name, label string, constants ...string) *rule {
	return w.bindIn("local", name, label, constants...)
}

func (w *world) bindIn(cluster, name, label string, constants ...string) *rule {
	r := &rule{name: name, pattern: patternOf(cluster, label), state: "ENABLED", constants: constants}
	w.do(func() { w.rules[name] = r })
	return r
}

// constants are of a binding to a group, with further ones as `"mode":"observe"`.
func constants(group string, more ...string) string {
	return `{` + strings.Join(append([]string{`"targetGroup":"` + arnOf(group) + `"`, `"port":8080`}, more...), ",") + `}`
}

// rebind changes the constants of the rule "web".
func (w *world) rebind(more ...string) {
	w.do(func() { w.rules["web"].constants = []string{constants("web", more...)} })
}

type rulesOf struct{ w *world }

func (r rulesOf) List(ctx context.Context) ([]binding.Rule, error) {
	if r.w.onRules != nil {
		if err := r.w.onRules(ctx); err != nil {
			return nil, err
		}
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.rulesErr != nil {
		return nil, r.w.rulesErr
	}
	var out []binding.Rule
	for _, name := range slices.Sorted(maps.Keys(r.w.rules)) {
		out = append(out, r.w.rules[name].rule())
	}
	return out, nil
}

func (r *rule) rule() binding.Rule {
	return binding.Rule{ARN: ruleARN(r.name), Name: r.name, Bus: "elbridge", State: r.state, Pattern: r.pattern}
}

func (r rulesOf) Rule(_ context.Context, name string) (binding.Rule, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if x := r.w.rules[name]; x != nil {
		return x.rule(), nil
	}
	return binding.Rule{}, bus.ErrNotFound
}

func (r rulesOf) Targets(_ context.Context, name string) ([]binding.Target, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if err := r.w.targetsErr[name]; err != nil {
		return nil, err
	}
	x := r.w.rules[name]
	if x == nil {
		return nil, bus.ErrNotFound
	}
	var out []binding.Target
	for i, c := range x.constants {
		out = append(out, binding.Target{ID: fmt.Sprintf("t%d", i), ARN: queueARN, Transformer: &binding.Transformer{
			Template: `{"binding":` + c + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}})
	}
	return out, nil
}

func (r rulesOf) Tags(context.Context, string) (map[string]string, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return maps.Clone(r.w.busTags), nil
}

// --- requests ------------------------------------------------------------------

type inboxOf struct{ w *world }

func (b inboxOf) Receive(ctx context.Context, wait time.Duration) ([]queue.Message, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		b.w.mu.Lock()
		ms, arrived := b.w.inbox, b.w.arrived
		b.w.inbox = nil
		b.w.mu.Unlock()
		if len(ms) > 0 {
			return ms, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, nil
		case <-arrived:
		}
	}
}

func (b inboxOf) Delete(_ context.Context, m queue.Message) error {
	b.w.do(func() { b.w.deleted = append(b.w.deleted, m.ID) })
	return nil
}

func (b inboxOf) Bury(_ context.Context, m queue.Message, reason string) error {
	b.w.do(func() { b.w.buried[m.ID] = reason })
	return nil
}

// send puts a message into the queue of requests and returns its id.
func (w *world) send(body string) string { return w.sendAgo(0, body) }

func (w *world) sendAgo(ago time.Duration, body string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nextMsg++
	id := fmt.Sprintf("m%d", w.nextMsg)
	w.inbox = append(w.inbox, queue.Message{ID: id, Body: body, Receipt: "r", Sent: time.Now().Add(w.skew - ago), Receives: 1, Sender: "AROAEXAMPLE:kim"})
	close(w.arrived)
	w.arrived = make(chan struct{})
	return id
}

// request asks for a round and waits for its end.
func (w *world) request(more string) {
	w.t.Helper()
	w.send(`{"schema":1,"trigger":"request",` + more + `}`)
	w.rounds(1)
}

// Put is the bus.
func (w *world) Put(ctx context.Context, es []bus.Entry) ([]bus.Unsent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.putErr != nil {
		return nil, w.putErr
	}
	for _, e := range es {
		if !json.Valid(e.Detail) {
			w.t.Errorf("an event's detail is no JSON: %s", e.Detail)
		}
		w.events = append(w.events, told{time.Now(), e})
	}
	return nil, nil
}
