package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// homeGroups are the groups of a place, as a listing shows them.
type homeGroups struct{ *place }

func (h homeGroups) List(context.Context) ([]targetgroup.Listed, error) {
	var out []targetgroup.Listed
	for _, f := range h.groups {
		out = append(out, targetgroup.Listed{Group: f.Group, Name: f.Name})
	}
	return out, h.denied
}

func (h homeGroups) TagsOf(_ context.Context, arns []string) (map[string]map[string]string, error) {
	if len(arns) > tagsAtOnce {
		return nil, fmt.Errorf("%d groups in one call", len(arns))
	}
	out := map[string]map[string]string{}
	for _, f := range h.groups {
		out[f.ARN] = f.Tags
	}
	return out, nil
}

// unhealthyPlace is a place whose targets can't be read.
type unhealthyPlace struct{ *place }

func (p unhealthyPlace) Health(context.Context, claim.Group) (map[claim.Key]plan.Target, error) {
	return nil, targetgroup.ErrThrottled
}

// nodes are a place's pods, on nodes that are Ready or not.
type nodes struct {
	*place
	ready map[string]bool
	mu    sync.Mutex
	asked map[string]int
}

func (n *nodes) Node(_ context.Context, name string) (cluster.Node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[name]++
	ready, ok := n.ready[name]
	if !ok {
		return cluster.Node{}, cluster.ErrNotFound
	}
	return cluster.Node{Name: name, Ready: ready}, nil
}

func (p *place) living() *living {
	return &living{view: p.view(), bus: func(context.Context) (busFacts, error) { return busFacts{arn: busARN, tags: map[string]string{}}, nil }}
}

func livingFlags(output string) *livingOptions { return &livingOptions{viewOptions: *options(output)} }

// ruled gives a place the rules that are written as "name | group constants | more
// of the pattern's detail".
func (p *place) ruled(lines ...string) *place {
	p.rules, p.targets = nil, map[string][]binding.Target{}
	for _, line := range lines {
		f := append(strings.Split(line, "|"), "", "")
		name, constants, detail := strings.TrimSpace(f[0]), strings.TrimSpace(f[1]), strings.TrimSpace(f[2])
		if detail == "" {
			detail = `"cluster":["prod"],"namespace":["ingress"]`
		}
		r := binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name, Name: name, Bus: "elbridge", State: "ENABLED",
			Pattern: `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{` + detail + `}}`}
		p.rules = append(p.rules, r)
		p.targets[name] = []binding.Target{{ID: "registrar", ARN: docQueue, Transformer: &binding.Transformer{
			Template: `{"binding":{` + constants + `},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}
	}
	return p
}

const webGroup = `"targetGroup":"` + groupARN + `"`

func exitOf(err error) int {
	code := exitError{}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return code.code
	default:
		return 1
	}
}

func TestObserveReport_I19(t *testing.T) {
	observed := webGroup + `,"mode":"observe"`
	tests := map[string]struct {
		rules []string
		all   bool
		agree bool // the group is as the rules have it
		exit  int
		want  []string
	}{
		"nobody observes":    {rules: []string{"web | " + webGroup}, exit: 0, want: []string{"no binding of bus elbridge is in mode observe"}},
		"differs":            {rules: []string{"web | " + observed}, exit: 2, want: []string{"rule web → group web, mode observe: would change", "register 10.64.1.2:80 pod ingress/b: rule web selects the pod", "deregister 10.64.1.9:80 (witness load-balancer): no pod has the address"}},
		"agrees":             {rules: []string{"web | " + observed}, agree: true, exit: 0, want: []string{"agrees: managing it changes nothing"}},
		"all":                {rules: []string{"web | " + webGroup}, all: true, exit: 2, want: []string{"mode manage: not done yet", "register 10.64.1.2:80"}},
		"by name":            {rules: []string{`web | "targetGroup":{"name":"web"},"mode":"observe"`}, exit: 2, want: []string{"would change"}},
		"by tags":            {rules: []string{`web | "targetGroup":{"tags":{"elbridge:owner":"` + busARN + `"}},"mode":"observe"`}, exit: 2, want: []string{"would change"}},
		"I8 another cluster": {rules: []string{"web | " + observed + ` | "cluster":["prod","dev"]`}, exit: 1, want: []string{"not known: the pods of cluster dev were not read"}},
		"a rule is broken":   {rules: []string{"web | " + observed, `bad | "port":0`}, agree: true, exit: 0, want: []string{"covers nothing: rule bad"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := somewhere().ruled(tt.rules...)
			if tt.agree {
				p.health[groupARN] = map[claim.Key]plan.Target{{ID: "10.64.1.1", Port: 80}: {Health: plan.Healthy}, {ID: "10.64.1.2", Port: 80}: {Health: plan.Initial}}
			}
			o := livingFlags("table")
			o.cluster.name = "prod"
			r, unread, err := o.observeReport(context.Background(), p.living(), tt.all)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := write(&out, "table", r, r.table); err != nil {
				t.Fatal(err)
			}
			if got := exitOf(r.exit(unread)); got != tt.exit {
				t.Errorf("exit %d, want %d", got, tt.exit)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("said\n%swant %q in it", out.String(), want)
				}
			}
		})
	}
}

func TestObserveReport_Unread_I8(t *testing.T) {
	p := somewhere().ruled("web | " + webGroup + `,"mode":"observe"`)
	l := p.living()
	l.survey.from = func(*binding.Binding) groupReader { return unhealthyPlace{p} }
	r, unread, err := livingFlags("table").observeReport(context.Background(), l, false)
	if err != nil || exitOf(r.exit(unread)) != 1 {
		t.Fatalf("unread %v, error %v", unread, err)
	}
	if b := r.Bindings[0]; len(b.Unknown) != 1 || !strings.Contains(b.Unknown[0], targetgroup.ErrThrottled.Error()) || len(b.Register)+len(b.Deregister)+len(b.Held) > 0 {
		t.Errorf("said %+v", b)
	}
	named := somewhere().ruled(`web | "targetGroup":{"name":"web"},"mode":"observe"`)
	named.denied = targetgroup.ErrDenied
	if r, unread, err := livingFlags("table").observeReport(context.Background(), named.living(), false); err != nil || !errors.Is(r.exit(unread), targetgroup.ErrDenied) {
		t.Errorf("unread %v, error %v, want ErrDenied", unread, err)
	}
	l.pods = nil
	if _, _, err := livingFlags("table").observeReport(context.Background(), l, false); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("error %v, want the flags to give", err)
	}
}

// Groups of the bus's account come from one listing; the others are read one by one.
func TestSurvey(t *testing.T) {
	const away = "arn:aws:elasticloadbalancing:eu-west-1:444455556666:targetgroup/away/0123456789abcdef"
	p := somewhere().ruled("web | "+webGroup, `name | "targetGroup":{"name":"web"}`, `gone | "targetGroup":{"name":"gone"}`,
		`away | "targetGroup":"`+away+`","roleArn":"arn:aws:iam::444455556666:role/elbridge"`, `none | "targetGroup":{"tags":{"no":"such"}}`)
	p.groups["away"] = targetgroup.Facts{Group: claim.Group{ARN: away, Type: claim.IP, Port: 80}, Name: "away"}
	l := p.living()
	l.survey.busARN = busARN
	rules, err := readRules(context.Background(), l.rules)
	if err != nil {
		t.Fatal(err)
	}
	bs, faults := bindingsOf(rules, "")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s, err := l.survey.facts(context.Background(), bs, false)
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]lint.Problem{groupARN: lint.Known, "name:web": lint.Known, "name:gone": lint.NotFound, away: lint.Known, `tags:"no"="such"`: lint.Ambiguous} {
		if g, ok := s.byRef[ref]; !ok || g.Problem != want {
			t.Errorf("%s: %+v, want %q", ref, g, want)
		}
	}
	if err := l.survey.targets(context.Background(), s, bs, nil); err != nil {
		t.Fatal(err)
	}
	if n, m := len(s.byRef[groupARN].Targets), len(s.byRef["name:web"].Targets); n != 2 || m != 2 {
		t.Errorf("%d and %d targets of one group, want 2", n, m)
	}
	var got []string
	for _, b := range withARNs(bs, s) {
		got = append(got, b.Group.ARN)
	}
	if len(got) != 3 {
		t.Errorf("bindings of %v, want those whose group there is", got)
	}
}

// Only nodes of ended pods that a group holds are read, each once.
func TestReadyNodes_I9(t *testing.T) {
	p := somewhere().ruled("web | " + webGroup)
	p.pods = []*podevent.Pod{
		{Namespace: "ingress", Name: "a", UID: "a", NodeName: "up", PodIPs: []string{"10.64.1.1"}, Phase: "Running", Terminating: true},
		{Namespace: "ingress", Name: "b", UID: "b", NodeName: "up", PodIPs: []string{"10.64.1.9"}, Phase: "Failed"},
		{Namespace: "ingress", Name: "c", UID: "c", NodeName: "lives", PodIPs: []string{"10.64.1.9"}, Phase: "Running"},
		{Namespace: "ingress", Name: "d", UID: "d", NodeName: "elsewhere", PodIPs: []string{"10.64.1.8"}, Phase: "Failed"},
		{Namespace: "ingress", Name: "e", UID: "e", NodeName: "gone", PodIPs: []string{"10.64.1.1"}, Phase: "Failed"},
	}
	n := &nodes{place: p, ready: map[string]bool{"up": true}, asked: map[string]int{}}
	l := p.living()
	l.pods = func(string) (podReader, error) { return n, nil }
	rules, err := readRules(context.Background(), l.rules)
	if err != nil {
		t.Fatal(err)
	}
	bs, _ := bindingsOf(rules, "")
	l.survey.busARN = busARN
	s, err := l.survey.facts(context.Background(), bs, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.survey.targets(context.Background(), s, bs, nil); err != nil {
		t.Fatal(err)
	}
	w, err := livingFlags("table").world(context.Background(), l, busFacts{arn: busARN}, bs, s)
	if err != nil {
		t.Fatal(err)
	}
	if !w.Ready("prod", "up") || w.Ready("prod", "gone") || w.Ready("prod", "lives") {
		t.Error("want the node up alone to be Ready")
	}
	if len(n.asked) != 2 || n.asked["up"] != 1 || n.asked["gone"] != 1 {
		t.Errorf("asked for %v", n.asked)
	}
}
