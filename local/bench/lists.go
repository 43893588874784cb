package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/elbridge/elbridge/local/bench/fleet"
	"github.com/elbridge/elbridge/local/bench/usage"
)

const (
	fewPods   = 1_000
	fleetPods = 100_000
	// changesPerMinute is the share of all pods that change in a minute: a cluster
	// whose pods live for some hours and have a few changes each.
	changesPerMinute = 0.01
	// watched is how long the stream is measured.
	watched = time.Minute
)

// Lists measures what one list and one stream of pods cost, with pkg/cluster
// alone, against a server of very many pods. command leads to fleet.Command.
func Lists(ctx context.Context, r *Report, say func(string, ...any), command ...string) error {
	dir, err := os.MkdirTemp("", "elbridge-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	lister, err := build(ctx, dir, "./local/bench/lister")
	if err != nil {
		return err
	}
	for _, pods := range []int{fewPods, fleetPods} {
		if err := listsOf(ctx, r, say, dir, lister, pods, command); err != nil {
			return fmt.Errorf("lists of %d pods: %w", pods, err)
		}
	}
	return nil
}

// build compiles a program as the Makefile does.
func build(ctx context.Context, dir, pkg string) (string, error) {
	path := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags=lambda.norpc", "-ldflags=-s -w -buildid=", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

func listsOf(ctx context.Context, r *Report, say func(string, ...any), dir, lister string, pods int, command []string) error {
	say("measuring lists of %d pods", pods)
	f, err := fleet.Start(ctx, fleet.Spec{Pods: pods, Selected: pods}, command...)
	if err != nil {
		return err
	}
	defer f.Stop() //nolint:errcheck // it was asked to end
	config, err := f.Kubeconfig(dir)
	if err != nil {
		return err
	}
	l := listing{f: f, lister: lister, config: config, pods: pods}
	r.Add(Figure{Name: l.name("a pod's protobuf"), Value: f.PodSize, Unit: "B", Goal: "≥ 5000, as in the field"})
	for _, zip := range []bool{true, false} {
		if err := f.Compression(ctx, zip); err != nil {
			return err
		}
		l.how = map[bool]string{true: "gzip", false: "no compression"}[zip]
		if _, err := l.run(ctx, nil, "--how", "decode"); err != nil { // the server puts its pages together
			return err
		}
		for _, m := range []struct{ how, what, goal string }{
			{"each", "Each, nothing kept", map[bool]string{true: "< 10 s"}[pods == fleetPods]},
			{"pods", "Each, every pod kept", ""},
			{"decode", "baseline: pages into corev1.PodList", ""},
		} {
			if m.how == "pods" && !zip {
				continue // what is kept does not depend on how it came
			}
			if err := l.measure(ctx, r, m.how, m.what, m.goal); err != nil {
				return err
			}
		}
	}
	return l.stream(ctx, r)
}

type listing struct {
	f              *fleet.Fleet
	lister, config string
	pods           int
	how            string // the pages come
}

func (l *listing) name(what string) string { return fmt.Sprintf("%d pods: %s", l.pods, what) }

// measure lists twice, and takes the run that cost less: what others do on the
// machine costs caches and clock.
func (l *listing) measure(ctx context.Context, r *Report, how, what, goal string) error {
	var cost usage.Cost
	var bytesOut int64
	for n := range 2 {
		before, err := l.f.Counts(ctx)
		if err != nil {
			return err
		}
		c, err := l.run(ctx, nil, "--how", how)
		if err != nil {
			return err
		}
		after, err := l.f.Counts(ctx)
		if err != nil {
			return err
		}
		if bytesOut = after.BytesOut - before.BytesOut; n == 0 || c.CPU < cost.CPU {
			cost = c
		}
	}
	if cost.Pods != l.pods {
		return fmt.Errorf("%s: %d pods, want %d", what, cost.Pods, l.pods)
	}
	what = l.name("one LIST, " + l.how + ", " + what)
	r.Add(
		Figure{Name: what + ": CPU", Value: cost.CPU, Unit: "s", Goal: goal},
		Figure{Name: what + ": wall", Value: cost.Wall, Unit: "s"},
		Figure{Name: what + ": peak RSS", Value: cost.PeakRSS, Unit: "MiB", Goal: map[bool]string{true: "< 256 MiB"}[how == "each"]},
		Figure{Name: what + ": on the wire", Value: float64(bytesOut) / 1e6, Unit: "MB"},
	)
	return nil
}

// run runs the lister.
func (l *listing) run(ctx context.Context, listed func() error, args ...string) (cost usage.Cost, err error) {
	cmd := exec.CommandContext(ctx, l.lister, append([]string{"--kubeconfig", l.config}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	said := &onLine{do: listed}
	cmd.Stderr = said
	if err := cmd.Run(); err != nil {
		return cost, fmt.Errorf("%w: %s", err, said.text.String())
	}
	if said.err != nil {
		return cost, said.err
	}
	return cost, json.Unmarshal(out.Bytes(), &cost)
}

// onLine does something once, at the first output.
type onLine struct {
	text bytes.Buffer
	do   func() error
	err  error
}

func (o *onLine) Write(b []byte) (int, error) {
	if o.do != nil {
		o.err = o.do()
		o.do = nil
	}
	return o.text.Write(b)
}

// stream measures a watch while pods change.
func (l *listing) stream(ctx context.Context, r *Report) error {
	var before fleet.Counts
	cost, err := l.run(ctx, func() (err error) {
		if before, err = l.f.Counts(ctx); err != nil {
			return err
		}
		return l.f.Changes(ctx, float64(l.pods)*changesPerMinute/60)
	}, "--how", "watch", "--for", watched.String())
	if err != nil {
		return err
	}
	after, err := l.f.Counts(ctx)
	if err != nil {
		return err
	}
	if cost.Pods == 0 {
		return fmt.Errorf("no event within %s", watched)
	}
	what := l.name(fmt.Sprintf("WATCH for %s, %g %% of pods change a minute: ", watched, changesPerMinute*100))
	r.Add(
		Figure{Name: what + "events", Value: float64(cost.Pods), Unit: ""},
		Figure{Name: what + "CPU", Value: cost.CPU, Unit: "s"},
		Figure{Name: what + "CPU an event", Value: cost.CPU / float64(cost.Pods) * 1e6, Unit: "µs"},
		Figure{Name: what + "on the wire", Value: float64(after.BytesOut-before.BytesOut) / 1e6, Unit: "MB"},
		Figure{Name: what + "an event on the wire", Value: float64(after.BytesOut-before.BytesOut) / float64(cost.Pods), Unit: "B"},
	)
	return nil
}
