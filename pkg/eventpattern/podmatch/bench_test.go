package podmatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// fleet is pods of 500 workloads, as a LIST of a cluster returns them.
func fleet(n int) []podevent.Pod {
	pods := make([]podevent.Pod, n)
	for i := range pods {
		app := i % 500
		pods[i] = podevent.Pod{
			Namespace: fmt.Sprintf("team-%d", app%50), Name: fmt.Sprintf("app-%d-%d", app, i), UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i),
			ResourceVersion: "123456", NodeName: fmt.Sprintf("ip-10-64-%d-%d.eu-west-1.compute.internal", i/250%256, i%250),
			Labels: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", app), "app.kubernetes.io/part-of": "shop",
				"pod-template-hash": "7d4b9c6f5", "tier": "front"},
			Owner: &podevent.Owner{Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d-7d4b9c6f5", app)}, ServiceAccount: "default",
			Ports:  []podevent.Port{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}, {Name: "metrics", ContainerPort: 9090, Protocol: "TCP"}},
			PodIPs: []string{fmt.Sprintf("10.64.%d.%d", i/250%256, i%250)}, HostIP: "10.64.0.11", Phase: "Running", Ready: true, ContainersReady: true,
		}
	}
	return pods
}

// bindings are patterns of which one matches each pod of the fleet.
func bindings(tb testing.TB, n int) *eventpattern.Set {
	tb.Helper()
	var all []*eventpattern.Pattern
	for i := range n {
		p, err := eventpattern.Parse(fmt.Appendf(nil, `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["prod"],"namespace":["team-%d"],"labels":{"app.kubernetes.io/name":["app-%d"]}}}`, i%50, i))
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, p)
	}
	return eventpattern.NewSet(all)
}

// BenchmarkDecoded is resync's case: every pod of a cluster against every binding,
// without JSON, beside the same by way of the event's text.
func BenchmarkDecoded(b *testing.B) {
	pods := fleet(1000)
	at := time.Unix(1e9, 0)
	for _, n := range []int{1, 10, 100, 500, 1000} {
		set := bindings(b, n)
		b.Run(fmt.Sprintf("value/bindings=%d", n), func(b *testing.B) {
			m := podmatch.New(set, env)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e := podevent.FromPod("prod", &pods[i%len(pods)], nil, at)
				if _, err := m.Match(&e); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
	set := bindings(b, 500)
	b.Run("json/bindings=500", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e := podevent.FromPod("prod", &pods[i%len(pods)], nil, at)
			wrapped, err := e.Envelope(env.ID, env.Account, env.Region)
			if err != nil {
				b.Fatal(err)
			}
			text, err := wrapped.JSON()
			if err != nil {
				b.Fatal(err)
			}
			if hits, err := set.Match(text); err != nil || len(hits) != 1 {
				b.Fatal(hits, err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
	})
}
