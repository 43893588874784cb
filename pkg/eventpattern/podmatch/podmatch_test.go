package podmatch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/podevent"
)

var env = podmatch.Envelope{ID: "6f3c1d2e", Account: "111122223333", Region: "eu-west-1"}

// viaJSON is the event as the bus has it, read again.
func viaJSON(t interface{ Fatal(...any) }, e *podevent.Event) *eventpattern.Event {
	wrapped, err := e.Envelope(env.ID, env.Account, env.Region)
	if err != nil {
		t.Fatal(err)
	}
	text, err := wrapped.JSON()
	if err != nil {
		t.Fatal(err)
	}
	out, err := eventpattern.ParseEvent(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// values are the scalars of an event, sorted: "where value".
func values(e *eventpattern.Event) []string {
	var out []string
	for where, value := range e.All() {
		out = append(out, where+" "+value)
	}
	slices.Sort(out)
	return out
}

var (
	text   = rapid.OneOf(rapid.SampledFrom([]string{"", "a", "web", "web-1", "<&>", "10.64.1.7", "é\u2028😀", "\"\\\n\x00\x7f", "true", "1"}), rapid.String())
	labels = rapid.MapOfN(rapid.SampledFrom([]string{"app", "app.kubernetes.io/name", "a.b", "", "x"}), text, 0, 4)
	ips    = rapid.SliceOfN(rapid.SampledFrom([]string{"10.64.1.7", "fd00::17", ""}), 0, 3)
	number = rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 40))
)

func drawEvent(t *rapid.T) podevent.Event {
	s := func(name string) string { return text.Draw(t, name) }
	b := func(name string) bool { return rapid.Bool().Draw(t, name) }
	e := podevent.Event{
		Schema: podevent.Schema, Cluster: s("cluster"), Namespace: s("namespace"), Name: s("name"), UID: s("uid"),
		ResourceVersion: s("resourceVersion"), PodIP: s("podIP"), PodIPs: ips.Draw(t, "podIPs"), HostIP: s("hostIP"),
		HostNetwork: b("hostNetwork"), NodeName: s("nodeName"), Phase: s("phase"), Ready: b("ready"),
		ContainersReady: b("containersReady"), Terminating: b("terminating"), ServiceAccount: s("serviceAccount"),
		Reason: podevent.Reason(s("reason")), Webhook: podevent.Webhook{Version: s("version"), Instance: s("instance")},
		ObservedAt: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nano")),
	}
	if b("grace") {
		e.DeletionGracePeriodSeconds = new(number.Draw(t, "grace"))
	}
	if b("labelled") {
		e.Labels, e.Annotations = labels.Draw(t, "labels"), labels.Draw(t, "annotations")
	}
	if b("owned") {
		e.Owner = &podevent.Owner{Kind: s("kind"), Name: s("owner")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "ports") {
		e.Ports = append(e.Ports, podevent.Port{Name: s("port"), Protocol: s("protocol"),
			ContainerPort: rapid.Int32().Draw(t, "containerPort"), HostPort: rapid.Int32Range(0, 2).Draw(t, "hostPort")})
	}
	if b("changed") {
		e.Previous = &podevent.Previous{PodIP: s("before"), PodIPs: ips.Draw(t, "before"), Labels: labels.Draw(t, "before"), Terminating: b("ended")}
	}
	if b("cut") {
		e.Cut = &podevent.Cut{Annotations: rapid.IntRange(0, 2).Draw(t, "cut"), Ports: rapid.IntRange(0, 2).Draw(t, "cut"), Labels: 1}
	}
	return e
}

// A pod event built from the Go value is the one read from its JSON.
func TestEvent_IsTheOneOfTheBus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvent(t)
		got, err := podmatch.Event(&e, env)
		if err != nil {
			t.Fatal(err)
		}
		if g, w := values(got), values(viaJSON(t, &e)); !slices.Equal(g, w) {
			t.Fatalf("built\n%s\nread\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
		}
	})
}

// An event that would be cut on the bus is cut here as well.
func TestEvent_Cut(t *testing.T) {
	for _, n := range []int{1000, 41_000, 200_000, 500_000} {
		e := podevent.Event{Schema: 1, Cluster: "c", Namespace: "n", Name: "p", UID: "u", ObservedAt: time.Unix(1e9, 0),
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": strings.Repeat("x", n), "b": "y"}}
		got, err := podmatch.Event(&e, env)
		if err != nil {
			t.Fatal(err)
		}
		if g, w := values(got), values(viaJSON(t, &e)); !slices.Equal(g, w) {
			t.Errorf("an annotation of %d bytes: %d values, want %d", n, len(g), len(w))
		}
	}
}

var patterns = []string{
	`{"source":["elbridge"],"detail":{"cluster":["web"],"labels":{"app":["web",{"prefix":"web-"}]}}}`,
	`{"detail":{"labels":{"app.kubernetes.io/name":[{"exists":true}]},"ready":[true]}}`,
	`{"detail":{"labels.a":{"b":[{"anything-but":"a"}]}}}`,
	`{"detail":{"ports":{"name":["web"],"hostPort":[{"numeric":[">",0]}]}}}`,
	`{"detail":{"ports":{"containerPort":[{"exists":true}],"name":[{"exists":false}]}}}`,
	`{"detail":{"podIPs":[{"cidr":"10.64.0.0/16"}],"previous":{"labels":{"x":[{"wildcard":"*e*"}]}}}}`,
	`{"detail":{"$or":[{"deletionGracePeriodSeconds":[{"numeric":["<=",30]}]},{"owner":{"kind":[{"exists":false}]}}]}}`,
	`{"resources":[{"prefix":"node/"}],"time":[{"suffix":"Z"}],"account":["111122223333"]}`,
	`{"detail":{"observedAt":[{"wildcard":"*.??0Z"},{"suffix":"0Z"}],"cut":{"ports":[1,2]}}}`,
	`{"detail":{"annotations":{"x":[{"equals-ignore-case":"WEB"}]},"webhook":{"version":[""]}}}`,
}

func compile(t testing.TB) ([]*eventpattern.Pattern, *eventpattern.Set) {
	t.Helper()
	var all []*eventpattern.Pattern
	for _, text := range patterns {
		p, err := eventpattern.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all, eventpattern.NewSet(all)
}

// A Matcher, which keeps only what its set looks at and is used again and again,
// finds what the patterns find one by one in the event's JSON.
func TestMatcher_FindsWhatPatternsFind(t *testing.T) {
	all, set := compile(t)
	m := podmatch.New(set, env)
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvent(t)
		var want []int
		read := viaJSON(t, &e)
		for i, p := range all {
			if p.Matches(read) {
				want = append(want, i)
			}
		}
		got, err := m.Match(&e)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("Match: %v, %v, want %v", got, err, want)
		}
	})
}

// Once it has grown, a Matcher makes no garbage: resync matches every pod of a
// cluster.
func TestMatcher_Allocations(t *testing.T) {
	_, set := compile(t)
	m := podmatch.New(set, env)
	e := podevent.Event{Cluster: "web", Labels: map[string]string{"app": "web-1", "tier": "front"}, PodIPs: []string{"10.64.1.7"},
		Ports: []podevent.Port{{Name: "web", ContainerPort: 8080, Protocol: "TCP"}}}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := m.Match(&e); err != nil {
			t.Fatal(err)
		}
	}); n > 8 { // two times, a list of resources and their texts
		t.Errorf("%v allocations an event", n)
	}
}
