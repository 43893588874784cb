package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/elbridge/elbridge/local/bench/fleet"
	"github.com/elbridge/elbridge/local/bench/usage"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

const (
	// settled is the round after which all 200 groups have been compared, with a
	// quarter of the account's Describe rate, 50 a round; begun the one after which
	// rules, groups and tags have been read. What comes is done for the first time
	// no more.
	settled, begun = 4, 2
	// mostPartial bounds the rounds that end before the list is read.
	mostPartial = 30
	// quietRounds are measured from then on.
	quietRounds = 2
	// roundWait bounds the wait for a round, and listedWait that for the first list.
	roundWait  = 3 * time.Minute
	listedWait = 10 * time.Minute
	// small is the memory of the function that the goals are for, in MB.
	small = 256
)

// Resync measures the resync function, the real binary, against very many pods
// and groups. command leads to fleet.Command.
func Resync(ctx context.Context, r *Report, say func(string, ...any), bootstrap string, command ...string) error {
	for _, selected := range []int{fleetPods, fleetPods / 10, fleetPods / 100} {
		m := &resyncRun{bootstrap: bootstrap, command: command, report: r, say: say, spec: fleet.Spec{Pods: fleetPods, Selected: selected}, memory: small}
		m.name = fmt.Sprintf("resync of %d pods, %d %% selected", fleetPods, selected*100/fleetPods)
		m.whole = selected == fleetPods
		if err := m.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// ResyncLimited measures the same with as much CPU as Lambda gives the function.
func ResyncLimited(ctx context.Context, r *Report, say func(string, ...any), bootstrap string, command ...string) error {
	for _, mb := range []int{small, 2 * small} {
		limit, err := newShare(mb)
		if errors.Is(err, errNoControl) {
			say("%v: figures under Lambda's share of CPU are left out", err)
			return nil
		}
		if err != nil {
			return err
		}
		m := &resyncRun{bootstrap: bootstrap, command: command, report: r, say: say, spec: fleet.Spec{Pods: fleetPods, Selected: fleetPods}, memory: mb, limit: limit}
		m.name = fmt.Sprintf("resync of %d pods, all selected, with the CPU of %d MB (%.3f vCPU by cgroup)", fleetPods, mb, float64(mb)/mbPerCPU)
		err = m.run(ctx)
		limit.remove()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// resyncRun is one run of the function.
type resyncRun struct {
	bootstrap string
	command   []string
	report    *Report
	say       func(string, ...any)
	name      string
	spec      fleet.Spec
	memory    int    // MB
	limit     *share // nil: none
	whole     bool   // with changes and drift

	f  *fleet.Fleet
	in *instance
}

func (m *resyncRun) add(what string, value float64, unit, goal string) {
	m.report.Add(Figure{Name: m.name + ": " + what, Value: value, Unit: unit, Goal: goal})
	m.say("  %s: %s %s", what, number(value), unit)
}

func (m *resyncRun) run(ctx context.Context) (err error) {
	m.say("measuring %s", m.name)
	if m.f, err = fleet.Start(ctx, m.spec, m.command...); err != nil {
		return err
	}
	defer m.f.Stop() //nolint:errcheck // it was asked to end
	place := func(int) error { return nil }
	if m.limit != nil {
		place = m.limit.place
	}
	start := time.Now()
	if m.in, err = invoke(ctx, m.bootstrap, m.env(), 15*time.Minute, place); err != nil {
		return err
	}
	defer m.in.stop()
	steps := []func() error{func() error { return m.first(ctx, start) }, func() error { return m.quiet(ctx) }}
	if m.whole {
		steps = append(steps, func() error { return m.changing(ctx) }, func() error { return m.drift(ctx) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("%w (what the function said is in %s)", err, m.in.log.Name())
		}
	}
	return os.Remove(m.in.log.Name())
}

func (m *resyncRun) env() []string {
	return append(m.f.Env(), telemetry.EnvBus+"="+fleet.BusARN, telemetry.EnvQueueURL+"="+m.f.QueueURL(fleet.Queue), telemetry.EnvQueueARN+"="+fleet.QueueARN,
		telemetry.EnvDeadLetterURL+"="+m.f.QueueURL(fleet.DeadLetters), telemetry.EnvResyncQueueURL+"="+m.f.QueueURL(fleet.Requests),
		telemetry.EnvClusters+`=[{"name":"`+fleet.ClusterName+`","eks":{}}]`, fmt.Sprintf("AWS_LAMBDA_FUNCTION_MEMORY_SIZE=%d", m.memory))
}

// first measures until the list is read: its stream is opened then.
func (m *resyncRun) first(ctx context.Context, start time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, listedWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		counts, err := m.f.Counts(ctx)
		if err != nil {
			return err
		}
		if counts.Watches > 0 {
			cpu, err := usage.CPU(m.in.pid())
			if err != nil {
				return err
			}
			m.add("from the start to the end of the first LIST, CPU", cpu.Seconds(), "s", "< 10 s")
			m.add("from the start to the end of the first LIST, wall", time.Since(start).Seconds(), "s", "")
			m.add("first LIST on the wire", float64(counts.BytesOut)/1e6, "MB", "")
			m.add("first LIST, requests", float64(counts.Lists), "lists", "")
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no list was read to its end within %s", listedWait)
		}
	}
}

// told is the function's own line about a round.
type told struct {
	Msg, Result                                  string
	Round, Groups, Found, Repaired, Held, Failed int
	Unread                                       int
	Seconds                                      float64 `json:"duration_seconds"`
	Problems                                     []string
}

// round waits for the end of the next round.
func (m *resyncRun) round(ctx context.Context) (told, error) {
	late := time.NewTimer(roundWait)
	defer late.Stop()
	for {
		select {
		case line, ok := <-m.in.lines:
			if !ok {
				return told{}, errors.New("the function ended")
			}
			var t told
			if json.Unmarshal(line, &t) == nil && t.Msg == "round" {
				return t, nil
			}
		case <-late.C:
			return told{}, fmt.Errorf("no round ended within %s", roundWait)
		case <-ctx.Done():
			return told{}, ctx.Err()
		}
	}
}

// reading is what was used up to a moment.
type reading struct {
	cpu    time.Duration
	counts fleet.Counts
}

func (m *resyncRun) read(ctx context.Context) (reading, error) {
	cpu, err := usage.CPU(m.in.pid())
	if err != nil {
		return reading{}, err
	}
	counts, err := m.f.Counts(ctx)
	return reading{cpu, counts}, err
}

// rounds measures so many rounds.
func (m *resyncRun) rounds(ctx context.Context, n int) (before, after reading, groups int, err error) {
	if before, err = m.read(ctx); err != nil {
		return
	}
	for range n {
		t, err := m.round(ctx)
		if err != nil {
			return before, after, groups, err
		}
		if t.Found > 0 || t.Unread > 0 || len(t.Problems) > 0 {
			return before, after, groups, fmt.Errorf("round %d found %d, left %d groups unread: %v: it was to find nothing", t.Round, t.Found, t.Unread, t.Problems)
		}
		groups += t.Groups
	}
	after, err = m.read(ctx)
	return
}

// settle waits for so many whole rounds. Those that began before the list was read
// are not whole.
func (m *resyncRun) settle(ctx context.Context, whole int) error {
	partial := 0
	for whole > 0 {
		t, err := m.round(ctx)
		switch {
		case err != nil:
			return err
		case t.Found > 0 || partial > mostPartial:
			return fmt.Errorf("round %d found %d differences, and %d rounds were not whole: %v: want none, and %d at most", t.Round, t.Found, partial, t.Problems, mostPartial)
		case t.Result == "complete":
			whole--
		default:
			partial++
		}
	}
	m.add("rounds that only added, as the list was not read yet", float64(partial), "rounds", "")
	return nil
}

// quiet measures rounds without changes.
func (m *resyncRun) quiet(ctx context.Context) error {
	first := begun
	if m.whole {
		first = settled
	}
	if err := m.settle(ctx, first); err != nil {
		return err
	}
	before, after, groups, err := m.rounds(ctx, quietRounds)
	if err != nil {
		return err
	}
	m.add("a round without changes, CPU", (after.cpu-before.cpu).Seconds()/quietRounds, "s", "< 0.5 s")
	m.add("a round without changes, groups compared", float64(groups)/quietRounds, "", "")
	m.add("a round without changes, API server's bytes", float64(after.counts.BytesOut-before.counts.BytesOut)/quietRounds/1e3, "kB", "")
	if m.whole {
		m.calls(before.counts, after.counts, groups)
	}
	peak, err := usage.PeakRSS(m.in.pid())
	if err != nil {
		return err
	}
	m.add("peak RSS", peak, "MiB", "< 256 MiB")
	rss, err := usage.RSS(m.in.pid())
	m.add("RSS after quiet rounds", rss, "MiB", "")
	return err
}

// calls are AWS's, by operation.
func (m *resyncRun) calls(before, after fleet.Counts, groups int) {
	for _, op := range slices.Sorted(maps.Keys(after.AWS)) {
		n := after.AWS[op] - before.AWS[op]
		if n == 0 {
			continue
		}
		goal := ""
		if op == "DescribeTargetHealth" {
			goal = fmt.Sprintf("≤ %.3g, one a group compared", float64(groups)/quietRounds)
		}
		m.add("a round without changes, "+op, float64(n)/quietRounds, "calls", goal)
	}
	m.add("refused AWS calls", float64(after.Refused), "calls", "0")
}

// changing measures rounds while pods change, none of them so that a claim does.
func (m *resyncRun) changing(ctx context.Context) error {
	if err := m.f.Changes(ctx, float64(m.spec.Pods)*changesPerMinute/60); err != nil {
		return err
	}
	if _, err := m.round(ctx); err != nil { // one that began before
		return err
	}
	before, after, groups, err := m.rounds(ctx, quietRounds)
	if err != nil {
		return err
	}
	m.add(fmt.Sprintf("a round while %g %% of pods change a minute, CPU", changesPerMinute*100), (after.cpu-before.cpu).Seconds()/quietRounds, "s", "")
	m.add(fmt.Sprintf("a round while %g %% of pods change a minute, groups compared", changesPerMinute*100), float64(groups)/quietRounds, "", "")
	return m.f.Changes(ctx, 0)
}

// drift takes a target out by hand, and measures until it is registered again.
func (m *resyncRun) drift(ctx context.Context) error {
	const trials = 2
	most := time.Duration(0)
	for trial := range trials {
		before, err := m.f.Counts(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		if _, err := m.f.TakeOut(ctx, trial*fleet.Groups/trials); err != nil {
			return err
		}
		for {
			now, err := m.f.Counts(ctx)
			if err != nil {
				return err
			}
			if now.AWS["RegisterTargets"] > before.AWS["RegisterTargets"] {
				break
			}
			if time.Since(start) > roundWait {
				return fmt.Errorf("a target that was taken out is missing after %s", roundWait)
			}
			time.Sleep(20 * time.Millisecond)
		}
		most = max(most, time.Since(start))
	}
	m.add(fmt.Sprintf("from a target taken out by hand to RegisterTargets, the longest of %d", trials), most.Seconds(), "s", "≤ 80 s, the period of 200 groups")
	return nil
}
