package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/elbridge/elbridge/local/bench/fleet"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// start serves a fleet within the test.
func start(t *testing.T, spec fleet.Spec) *fleet.Fleet {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- fleet.Serve(ctx, spec, w); _ = w.Close() }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet.Fleet{}
	if err := json.Unmarshal(line, &f.Ready); err != nil {
		t.Fatal(err)
	}
	return f
}

func client(t *testing.T, f *fleet.Fleet) *cluster.Client {
	t.Helper()
	path, err := f.Kubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return (&cluster.Dialer{UserAgent: "test", Now: time.Now}).Client(cluster.Config{Name: fleet.ClusterName, Kubeconfig: path})
}

func list(t *testing.T, c *cluster.Client, s cluster.Scope) (map[string]*podevent.Pod, string) {
	t.Helper()
	out := map[string]*podevent.Pod{}
	revision, err := c.Each(t.Context(), s, func(p *podevent.Pod) { out[p.UID] = p })
	if err != nil {
		t.Fatal(err)
	}
	return out, revision
}

func TestPods(t *testing.T) {
	const pods = 1234 // three pages, the last not full
	f := start(t, fleet.Spec{Pods: pods, Selected: 600})
	if f.PodSize < 5000 {
		t.Errorf("a pod has %.0f bytes, want 5000 at least", f.PodSize)
	}
	c := client(t, f)
	for _, zip := range []bool{true, false} {
		if err := f.Compression(t.Context(), zip); err != nil {
			t.Fatal(err)
		}
		if all, _ := list(t, c, cluster.Scope{}); len(all) != pods {
			t.Errorf("%d pods with other UIDs, compressed %v; want %d", len(all), zip, pods)
		}
	}
	some, _ := list(t, c, cluster.Scope{Namespace: "team-03", LabelSelector: "app=service-003"})
	if len(some) != 3 {
		t.Errorf("%d pods of service-003, want 3", len(some))
	}
	for _, p := range some {
		got, err := c.Pod(t.Context(), p.Namespace, p.Name)
		if err != nil || got.UID != p.UID || !got.Ready || got.Owner == nil || len(got.Ports) != 6 {
			t.Errorf("GET %s: %+v, error %v", p.Name, got, err)
		}
		by, err := c.PodsByIP(t.Context(), p.PodIP())
		if err != nil || len(by) != 1 || by[0].UID != p.UID {
			t.Errorf("pods with %s: %v, error %v", p.PodIP(), by, err)
		}
		if n, err := c.Node(t.Context(), p.NodeName); err != nil || !n.Ready {
			t.Errorf("node %+v, error %v", n, err)
		}
	}
	if _, err := c.Pod(t.Context(), "team-03", "service-003-x-00003"); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("a pod that isn't there: %v", err)
	}
}

func TestWatch(t *testing.T) {
	f := start(t, fleet.Spec{Pods: 50})
	c := client(t, f)
	before, revision := list(t, c, cluster.Scope{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	err := c.Watch(ctx, cluster.Scope{}, revision, func(ch cluster.Change) {
		switch {
		case ch.Kind == cluster.Opened:
			if err := f.Changes(ctx, 200); err != nil {
				t.Error(err)
			}
		case ch.Kind != cluster.Changed || before[ch.Pod.UID] == nil || ch.Pod.ResourceVersion == before[ch.Pod.UID].ResourceVersion:
			t.Errorf("%+v of %+v", ch, ch.Pod)
		default:
			before[ch.Pod.UID] = ch.Pod
			if seen++; seen == 20 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) || seen < 20 {
		t.Errorf("%d changes, error %v", seen, err)
	}
	if err := c.Watch(t.Context(), cluster.Scope{}, "1", func(cluster.Change) {}); !errors.Is(err, cluster.ErrExpired) {
		t.Errorf("from a revision of long ago: %v", err)
	}
}

// What the bindings select is what the groups hold: with nothing done, there is
// nothing to repair.
func TestAccount(t *testing.T) {
	f := start(t, fleet.Spec{Pods: 6000, Selected: 5200}) // some canaries too
	pods, _ := list(t, client(t, f), cluster.Scope{})
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	sdk := aws.Config{Region: fleet.Region, BaseEndpoint: &f.AWS, Credentials: credentials.NewStaticCredentialsProvider("AKIALOCALFLEET000000", "local-fleet-secret-0000000000000000000000", "")}
	source := bus.NewRules(eventbridge.NewFromConfig(sdk), fleet.BusARN)
	rules, err := source.List(t.Context())
	if err != nil || len(rules) != fleet.Rules {
		t.Fatalf("%d rules, error %v", len(rules), err)
	}
	var bindings []binding.Binding
	var patterns []*eventpattern.Pattern
	for _, r := range rules {
		targets, err := source.Targets(t.Context(), r.Name)
		if err != nil {
			t.Fatal(err)
		}
		bs, err := binding.FromRule(r, targets, fleet.QueueARN)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bs {
			bindings, patterns = append(bindings, b), append(patterns, b.Pattern)
		}
	}
	want := map[string]map[string]bool{}
	m := podmatch.New(eventpattern.NewSet(patterns), podmatch.Envelope{Account: fleet.Account, Region: fleet.Region})
	for _, p := range pods {
		ev := podevent.FromPod(fleet.ClusterName, p, nil, time.Time{})
		selected, err := m.Match(&ev)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range selected {
			arn := bindings[i].Group.ARN
			if want[arn] == nil {
				want[arn] = map[string]bool{}
			}
			want[arn][p.PodIP()] = true
		}
	}
	if len(bindings) != fleet.Bindings || len(want) != fleet.Groups {
		t.Errorf("%d bindings of %d groups, want %d of %d", len(bindings), len(want), fleet.Bindings, fleet.Groups)
	}
	api, looked := elbv2.NewFromConfig(sdk), 0
	for arn, addresses := range want {
		if looked++; looked > 20 { // of 200: the account's Describe calls are limited
			break
		}
		out, err := api.DescribeTargetHealth(t.Context(), &elbv2.DescribeTargetHealthInput{TargetGroupArn: &arn})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range out.TargetHealthDescriptions {
			if !addresses[*d.Target.Id] {
				t.Errorf("%s has %s, which no binding brings there", arn, *d.Target.Id)
			}
		}
		if len(out.TargetHealthDescriptions) != len(addresses) {
			t.Errorf("%s has %d targets, want %d", arn, len(out.TargetHealthDescriptions), len(addresses))
		}
	}
}

func TestSpec(t *testing.T) {
	for name, spec := range map[string]fleet.Spec{"no pods": {}, "more selected than there are": {Pods: 1, Selected: 2}, "a group's quota": {Pods: 200_000, Selected: 200_000}} {
		if err := fleet.Serve(t.Context(), spec, io.Discard); err == nil {
			t.Errorf("%s: a fleet of %+v is served", name, spec)
		}
	}
}
