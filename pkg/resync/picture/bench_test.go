package picture_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/resync/picture"
)

// fleet is a cluster of n pods of 500 workloads, made one by one as they are
// read off the wire: with strings of their own.
type fleet int

func (n fleet) pod(i int) *podevent.Pod {
	app := i % 500
	return &podevent.Pod{
		Namespace: fmt.Sprintf("team-%d", app%50), Name: fmt.Sprintf("app-%d-7d4b9c6f5d-%05d", app, i), UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i),
		ResourceVersion: fmt.Sprint(1000000 + i), NodeName: fmt.Sprintf("ip-10-64-%d-%d.eu-west-1.compute.internal", i/5000, i%100),
		Labels:      map[string]string{"app.kubernetes.io/name": fmt.Sprintf("app-%d", app), "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7d4b9c6f5d", "tier": "front"},
		Annotations: map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-11-30T12:00:00Z"}, ServiceAccount: "default",
		Owner:  &podevent.Owner{Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d-7d4b9c6f5d", app)},
		Ports:  []podevent.Port{{Name: strings.Clone("http"), ContainerPort: 8080, Protocol: "TCP"}, {Name: strings.Clone("metrics"), ContainerPort: 9090, Protocol: "TCP"}},
		PodIPs: []string{fmt.Sprintf("10.%d.%d.%d", 64+i/62500, i/250%250, i%250)}, HostIP: fmt.Sprintf("10.63.%d.%d", i/5000, i%100), Phase: strings.Clone("Running"), Ready: true, ContainersReady: true,
	}
}

func (n fleet) Each(_ context.Context, _ cluster.Scope, each func(*podevent.Pod)) (string, error) {
	for i := range int(n) {
		each(n.pod(i))
	}
	return "2000000", nil
}

func (n fleet) Watch(ctx context.Context, _ cluster.Scope, _ string, on func(cluster.Change)) error {
	on(cluster.Change{Kind: cluster.Opened})
	<-ctx.Done()
	return ctx.Err()
}

// listed returns a picture of the fleet by 500 bindings, of which one selects
// each pod of the first so many workloads.
func listed(b *testing.B, n fleet, selected int) *picture.Picture {
	b.Helper()
	p := picture.New(picture.Config{Cluster: "prod", Source: n, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	var details []string
	for i := range 500 {
		name := fmt.Sprintf("app-%d", i)
		if i >= selected {
			name = "nobody-" + name
		}
		details = append(details, fmt.Sprintf(`{"namespace":["team-%d"],"labels":{"app.kubernetes.io/name":[%q]}}`, i%50, name))
	}
	p.Follow(bindings(b, details...))
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }()
	for p.State().Lists == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	return p
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// cpu is the processor time that the process has had, garbage collection included.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkList is the first list of a cluster: what one of its pods costs in
// processor time, making it included, and in memory that stays.
func BenchmarkList(b *testing.B) {
	const n = 100_000
	b.Run("making", func(b *testing.B) {
		start := cpu()
		for b.Loop() {
			_, _ = fleet(n).Each(b.Context(), cluster.Scope{}, func(*podevent.Pod) {})
		}
		b.ReportMetric(float64(cpu()-start)/float64(b.N*n), "cpu-ns/pod")
	})
	for _, selected := range []int{500, 50, 0} {
		b.Run(fmt.Sprintf("selected=%d%%", selected/5), func(b *testing.B) {
			var kept uint64
			var spent time.Duration
			for b.Loop() {
				before, start := heap(), cpu()
				p := listed(b, n, selected)
				spent += cpu() - start
				after := heap()
				kept = after - min(before, after)
				if got := p.State().Pods; got != n*selected/500 {
					b.Fatalf("%d pods", got)
				}
				runtime.KeepAlive(p)
			}
			b.ReportMetric(float64(spent)/float64(b.N*n), "cpu-ns/pod")
			b.ReportMetric(float64(kept)/n, "B/pod")
		})
	}
}

// BenchmarkSelected is what a round asks of the picture for one group.
func BenchmarkSelected(b *testing.B) {
	p := listed(b, 100_000, 500)
	bs := bindings(b, `{"namespace":["team-7"],"labels":{"app.kubernetes.io/name":["app-7"]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if pods, _ := p.Selected(bs); len(pods) != 200 {
			b.Fatal(len(pods))
		}
	}
}
