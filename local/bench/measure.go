package bench

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elbridge/elbridge/local/stack"
)

const (
	lonePods  = 30 // one a second: what other controllers were measured with
	manyPods  = 200
	patchRuns = 300
	// parallelWrites is how many writers stand for kubelets.
	parallelWrites = 32
)

// lone measures one pod a second: from just before the status is written to the
// arrival of RegisterTargets.
func (b *bench) lone(ctx context.Context, r *Report) error {
	ds, err := b.series(ctx, "lone", lonePods, time.Second)
	if err != nil {
		return err
	}
	r.Add(latencies("pod status update to RegisterTargets, one pod a second", ds, "≤ 60 ms", "< 150 ms",
		"56 ms (aws-load-balancer-controller), 7.6 s (kube-ingress-aws-controller)")...)
	return nil
}

func (b *bench) delayed(ctx context.Context, r *Report) error {
	b.s.Cloud.Events.SetDelay(80 * time.Millisecond)
	defer b.s.Cloud.Events.SetDelay(0)
	ds, err := b.series(ctx, "delayed", lonePods/2, time.Second)
	if err != nil {
		return err
	}
	r.Add(latencies("the same with the bus delayed by 80 ms, as in the field", ds, "", "", "")...)
	return nil
}

// series gives n pods an address, one after the other.
func (b *bench) series(ctx context.Context, prefix string, n int, every time.Duration) ([]time.Duration, error) {
	for i := range n {
		if err := b.create(ctx, fmt.Sprintf("%s-%d", prefix, i)); err != nil {
			return nil, err
		}
	}
	var ds []time.Duration
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := range n {
		ip := b.address()
		start := time.Now()
		if err := b.assign(ctx, fmt.Sprintf("%s-%d", prefix, i), ip); err != nil {
			return nil, err
		}
		at, err := b.called(ctx, start, "RegisterTargets", ip)
		if err != nil {
			return nil, err
		}
		ds = append(ds, at.Sub(start))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return ds, nil
}

// deletes measures the same for graceful deletes of the lone pods.
func (b *bench) deletes(ctx context.Context, r *Report) error {
	var ds []time.Duration
	tick := time.NewTicker(500 * time.Millisecond) // two Deregister calls a second are within the account's rate
	defer tick.Stop()
	for i := range lonePods / 2 {
		name := fmt.Sprintf("lone-%d", i)
		var p struct{ Status struct{ PodIP string } }
		if err := b.s.Admin.Get(ctx, "/api/v1/namespaces/"+namespace+"/pods/"+name, &p); err != nil {
			return err
		}
		start := time.Now()
		if err := b.delete(ctx, name, nil); err != nil {
			return err
		}
		at, err := b.called(ctx, start, "DeregisterTargets", url.QueryEscape(p.Status.PodIP))
		if err != nil {
			return err
		}
		ds = append(ds, at.Sub(start))
		<-tick.C
	}
	r.Add(latencies("graceful delete to DeregisterTargets", ds, "< 1 s", "", "52 ms (aws-load-balancer-controller), 36 ms (kube-ingress-aws-controller)")...)
	return nil
}

// many gives 200 pods their addresses at once.
func (b *bench) many(ctx context.Context, r *Report) error {
	if err := b.parallel(ctx, manyPods, func(ctx context.Context, i int) error { return b.create(ctx, fmt.Sprintf("many-%d", i)) }); err != nil {
		return err
	}
	ips := make([]string, manyPods)
	for i := range ips {
		ips[i] = b.address()
	}
	time.Sleep(time.Second) // the registrar's pace must not stem from what was measured before
	recorder := b.s.Cloud.Server.Recorder
	start := time.Now()
	err := b.parallel(ctx, manyPods, func(ctx context.Context, i int) error { return b.assign(ctx, fmt.Sprintf("many-%d", i), ips[i]) })
	if err != nil {
		return err
	}
	written := time.Now()
	want := map[string]bool{}
	for _, ip := range ips {
		want[ip+":8080"] = true
	}
	wctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err = b.s.Held.Wait(wctx, b.group, func(targets map[string]string) (bool, error) {
		n := 0
		for k := range targets {
			if want[k] {
				n++
			}
		}
		return n == manyPods, nil
	})
	if err != nil {
		return err
	}
	registered := time.Now()
	calls, throttled := 0, 0
	for _, rec := range recorder.Since(0) {
		if rec.Service == "elasticloadbalancing" && rec.Time.After(start) {
			if rec.Operation == "RegisterTargets" {
				calls++
			}
			if rec.Code != "" {
				throttled++
			}
		}
	}
	instances := b.s.Runner.Stats(stack.Registrar).Instances
	r.Add(
		Figure{Name: "200 pods at once: all registered after the last status write", Value: registered.Sub(written).Seconds(), Unit: "s", Goal: "< 1 s", Peers: "1.3–2.2 s (aws-lbc), 95 s (kiac)"},
		Figure{Name: "200 pods at once: time of the status writes", Value: written.Sub(start).Seconds(), Unit: "s"},
		Figure{Name: "200 pods at once: RegisterTargets calls", Value: float64(calls), Unit: "calls", Goal: fmt.Sprintf("≤ 1 + %d instances", instances), Peers: "13–16 (aws-lbc), 19–20 (kiac)"},
		Figure{Name: "200 pods at once: refused ELB calls", Value: float64(throttled), Unit: "calls", Goal: "0"},
	)
	return nil
}

// parallel does n things with as many at a time as there are writers.
func (b *bench) parallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelWrites)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

// patches compares status patches that change readiness with and without the
// webhook's configuration.
func (b *bench) patches(ctx context.Context, r *Report) error {
	if err := b.create(ctx, "patched"); err != nil {
		return err
	}
	if err := b.assign(ctx, "patched", b.address()); err != nil {
		return err
	}
	with, err := b.flip(ctx)
	if err != nil {
		return err
	}
	restore, err := b.s.WithoutWebhook(ctx)
	if err != nil {
		return err
	}
	without, err := b.flip(ctx)
	if err != nil {
		return err
	}
	if err := restore(ctx); err != nil {
		return err
	}
	r.Add(
		Figure{Name: "status patch with the webhook, p50", Value: percentile(with, 0.5), Unit: "ms"},
		Figure{Name: "status patch without it, p50", Value: percentile(without, 0.5), Unit: "ms"},
		Figure{Name: "what the webhook adds to a status patch, p50", Value: percentile(with, 0.5) - percentile(without, 0.5), Unit: "ms"},
		Figure{Name: "what the webhook adds to a status patch, p95", Value: percentile(with, 0.95) - percentile(without, 0.95), Unit: "ms"},
	)
	return nil
}

func (b *bench) flip(ctx context.Context) ([]time.Duration, error) {
	var ds []time.Duration
	for i := range patchRuns {
		status := "False"
		if i%2 == 0 {
			status = "True"
		}
		start := time.Now()
		err := b.s.Admin.Patch(ctx, "/api/v1/namespaces/"+namespace+"/pods/patched/status", types.StrategicMergePatchType,
			fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%[1]q}]}}`, status))
		if err != nil {
			return nil, err
		}
		ds = append(ds, time.Since(start))
	}
	return ds, nil
}

// memory reads the webhook's resident memory with 100 and with 10,000 pods, each
// of which got an address and became ready through admission.
func (b *bench) memory(ctx context.Context, r *Report) error {
	made := 0
	for _, n := range []int{100, 10_000} {
		err := b.parallel(ctx, n-made, func(ctx context.Context, i int) error {
			name := fmt.Sprintf("mem-%d", made+i)
			if err := b.create(ctx, name); err != nil {
				return err
			}
			k := made + i
			return b.assign(ctx, name, fmt.Sprintf("10.64.%d.%d", 160+k/250, 1+k%250))
		})
		if err != nil {
			return err
		}
		made = n
		rss, err := b.webhookRSS(ctx)
		if err != nil {
			return err
		}
		r.Add(Figure{Name: fmt.Sprintf("webhook RSS, the larger of two replicas, %d pods in the cluster", n), Value: rss, Unit: "MiB", Goal: "< 25 MiB", Peers: "61–64 (kiac), 72–110 (aws-lbc)"})
		b.say("  %d pods: %.1f MiB", n, rss)
	}
	return nil
}

var rssLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// webhookRSS is the larger resident memory of the webhook's processes, in MiB.
func (b *bench) webhookRSS(ctx context.Context) (float64, error) {
	pods, err := b.s.Nodes.Pods(ctx)
	if err != nil {
		return 0, err
	}
	most := 0.0
	for _, p := range pods {
		for _, c := range p.Containers {
			if p.Namespace != stack.WebhookSpace || c.PID == 0 {
				continue
			}
			text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.PID), "status"))
			if err != nil {
				return 0, err
			}
			m := rssLine.FindSubmatch(text)
			if m == nil {
				return 0, fmt.Errorf("no VmRSS of process %d", c.PID)
			}
			kib, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				return 0, err
			}
			most = max(most, kib/1024)
		}
	}
	if most == 0 {
		return 0, fmt.Errorf("no webhook process")
	}
	return most, nil
}

// empty measures until the function that does nothing has answered.
func (b *bench) empty(ctx context.Context, r *Report) error {
	for i := range lonePods {
		if err := b.create(ctx, fmt.Sprintf("empty-%d", i)); err != nil {
			return err
		}
	}
	var ds []time.Duration
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := range lonePods {
		start := time.Now()
		before := b.s.Pump.Stats().Batches
		if err := b.assign(ctx, fmt.Sprintf("empty-%d", i), b.address()); err != nil {
			return err
		}
		for b.s.Pump.Stats().Batches == before {
			if ctx.Err() != nil || time.Since(start) > awaitCall {
				return fmt.Errorf("no batch within %s", awaitCall)
			}
			time.Sleep(100 * time.Microsecond)
		}
		ds = append(ds, time.Since(start))
		<-tick.C
	}
	r.Add(latencies("the same hops to a function that does nothing, its answer included", ds, "", "", "")...)
	return nil
}
