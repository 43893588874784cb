package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/time/rate"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// place is a bus, its target groups and a cluster.
type place struct {
	rules   []binding.Rule
	targets map[string][]binding.Target
	gone    map[string]bool // rules that are deleted between the list and the look
	groups  map[string]targetgroup.Facts
	health  map[string]map[claim.Key]plan.Target
	pods    []*podevent.Pod
	denied  error // of groups
}

func (p *place) List(context.Context) ([]binding.Rule, error) { return p.rules, nil }

func (p *place) Targets(_ context.Context, rule string) ([]binding.Target, error) {
	if p.gone[rule] {
		return nil, fmt.Errorf("rule %s: %w", rule, bus.ErrNotFound)
	}
	return p.targets[rule], nil
}

func (p *place) Facts(_ context.Context, ref binding.GroupRef) (targetgroup.Facts, error) {
	if p.denied != nil {
		return targetgroup.Facts{}, p.denied
	}
	for _, f := range p.groups {
		if f.ARN == ref.ARN || f.Name == ref.Name {
			return f, nil
		}
	}
	return targetgroup.Facts{}, targetgroup.ErrNotFound
}

func (p *place) Health(_ context.Context, g claim.Group) (map[claim.Key]plan.Target, error) {
	return p.health[g.ARN], nil
}

func (p *place) Pod(_ context.Context, namespace, name string) (*podevent.Pod, error) {
	for _, q := range p.pods {
		if q.Namespace == namespace && q.Name == name {
			return q, nil
		}
	}
	return nil, cluster.ErrNotFound
}

func (p *place) PodsByIP(_ context.Context, ip string) ([]*podevent.Pod, error) {
	var out []*podevent.Pod
	for _, q := range p.pods {
		if q.PodIP() == ip { // as the API server: the first address alone
			out = append(out, q)
		}
	}
	return out, nil
}

func (p *place) Inspect(context.Context, string, string) ([]cluster.Inspection, error) {
	var out []cluster.Inspection
	for _, q := range p.pods {
		out = append(out, cluster.Inspection{Pod: q, TerminationGracePeriod: -1})
	}
	return out, nil
}

func (p *place) view() *view {
	from := func(*binding.Binding) groupReader { return p }
	return &view{rules: p, groups: from, pods: func(string) (podReader, error) { return p, nil },
		survey: &surveyor{home: homeGroups{p}, from: from, pace: rate.NewLimiter(rate.Inf, factsCalls)}}
}

// somewhere has one rule, its group with one right and one left-over target, one
// rule that can't be read, and one that is deleted just now.
func somewhere() *place {
	rule := func(name string) binding.Rule {
		return binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name, Name: name, Bus: "elbridge", State: "ENABLED", Pattern: docPattern}
	}
	target := func(constants string) []binding.Target {
		return []binding.Target{{ID: "registrar", ARN: docQueue, Transformer: &binding.Transformer{
			Template: `{"binding":{` + constants + `},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}
	}
	return &place{
		rules:   []binding.Rule{rule("web"), rule("broken"), rule("deleted")},
		targets: map[string][]binding.Target{"web": target(`"targetGroup":"` + groupARN + `"`), "broken": target(`"port":0`)},
		gone:    map[string]bool{"deleted": true},
		groups:  map[string]targetgroup.Facts{"web": {Group: claim.Group{ARN: groupARN, Type: claim.IP, Family: claim.IPv4, Port: 80}, Name: "web", Tags: map[string]string{"elbridge:owner": busARN}}},
		health: map[string]map[claim.Key]plan.Target{groupARN: {
			{ID: "10.64.1.1", Port: 80}: {Health: plan.Healthy}, {ID: "10.64.1.9", Port: 80}: {Health: plan.Unhealthy, Reason: "Target.Timeout"}}},
		pods: []*podevent.Pod{
			{Namespace: "ingress", Name: "a", UID: "a", PodIPs: []string{"10.64.1.1", "fd00::1"}, Phase: "Running", Ready: true},
			{Namespace: "ingress", Name: "b", UID: "b", PodIPs: []string{"fd00::2", "10.64.1.2"}, Phase: "Running"},
			{Namespace: "shop", Name: "c", UID: "c", PodIPs: []string{"10.64.1.3"}, Phase: "Running"},
		},
	}
}

func options(output string) *viewOptions {
	return &viewOptions{shared: &shared{bus: "elbridge"}, output: output}
}

func TestBindings(t *testing.T) {
	o := options("table")
	r, unread, err := o.bindings(context.Background(), somewhere().view())
	if err != nil || unread != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, "table", r, r.table); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"RULE GROUP STATE PODS CLAIMS TARGETS HEALTHY DRAINING DRIFT NOTE", "broken - invalid - - - - - - $.binding.port: 0: want a number", "web web enabled 2 2 2 1 0 +1 -1 -"} {
		found := false
		for _, line := range lines {
			found = found || strings.HasPrefix(strings.Join(strings.Fields(line), " "), want)
		}
		if !found {
			t.Errorf("no line %d like %q in\n%s", i, want, out.String())
		}
	}
	if r.Cluster != "prod" {
		t.Errorf("cluster %q, want the one that the rules pin", r.Cluster)
	}
}

func TestBindings_WithoutCluster(t *testing.T) {
	v := somewhere().view()
	v.pods = nil
	r, _, err := options("json").bindings(context.Background(), v)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "pods") || !strings.Contains(string(text), `"targets":2`) {
		t.Errorf("said %s", text)
	}
}

// What could not be read is not told as if it were empty.
func TestBindings_UnreadGroup_I8(t *testing.T) {
	p := somewhere()
	p.denied = targetgroup.ErrDenied
	r, unread, err := options("json").bindings(context.Background(), p.view())
	if err != nil || !errors.Is(unread, targetgroup.ErrDenied) {
		t.Fatalf("unread %v, error %v, want ErrDenied", unread, err)
	}
	web := r.Bindings[len(r.Bindings)-1]
	if web.Rule != "web" || web.Targets != nil || web.Missing != nil || web.Extra != nil || !strings.Contains(web.Note, "not read: access denied") {
		t.Errorf("row %+v", web)
	}
}

func TestExplainPod(t *testing.T) {
	for name, tt := range map[string]struct{ namespace, pod, want, err string }{
		"registered":            {"ingress", "a", "claims 10.64.1.1:80: healthy", ""},
		"namespace in the name": {"default", "ingress/b", "claims 10.64.1.2:80: not registered", ""},
		"not selected":          {"shop", "c", `detail.namespace is "shop", want ["ingress"]`, ""},
		"gone":                  {"shop", "d", "", "explain --target"},
		"broken rule is named":  {"ingress", "a", "rule broken: target registrar: $.binding.port", ""},
		"no cause is made up":   {"ingress", "a", "last change: not known", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := options("table").explainPod(context.Background(), &out, somewhere().view(), tt.namespace, tt.pod)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("said\n%s\nwant %q in it", out.String(), tt.want)
			}
		})
	}
}

func TestExplainTarget(t *testing.T) {
	for name, tt := range map[string]struct{ group, key, want, err string }{
		"claimed":         {"web", "10.64.1.1:80", "a live pod claims it, and it is registered", ""},
		"by ARN":          {groupARN, "10.64.1.1:80", "a live pod claims it, and it is registered", ""},
		"left over":       {"web", "10.64.1.9:80", "no pod has this address", ""},
		"second address":  {"web", "10.64.1.2:80", "pod ingress/b", ""},
		"unselected pod":  {"web", "10.64.1.3:80", `detail.namespace is "shop"`, ""},
		"reason of ELB":   {"web", "10.64.1.9:80", "unhealthy (Target.Timeout)", ""},
		"no such group":   {"other", "10.64.1.1:80", "", "target group other: not found"},
		"no such address": {"web", "nowhere", "", "want IP:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := options("table").explainTarget(context.Background(), &out, somewhere().view(), tt.group, tt.key)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("said\n%s\nwant %q in it", out.String(), tt.want)
			}
		})
	}
}

func TestExplain_NoCluster(t *testing.T) {
	v := somewhere().view()
	v.pods = nil
	if err := options("table").explainPod(context.Background(), &bytes.Buffer{}, v, "ingress", "a"); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("error %v, want the flags to give", err)
	}
}

func TestClusterName(t *testing.T) {
	bs, _ := bindingsOf(nil, "")
	if _, err := (&clusterFlags{}).clusterName(bs); err == nil {
		t.Error("a cluster that nobody names has a name")
	}
	for want, c := range map[string]clusterFlags{"said": {name: "said", eks: "eks"}, "eks": {eks: "eks"}} {
		if got, err := c.clusterName(bs); got != want || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
