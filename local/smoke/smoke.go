// Package smoke walks pods through their lives on a running local stack, and
// after each step checks that the target group holds exactly the addresses that
// live pods claim. It changes the cluster as users, controllers and accidents
// do, and never speaks to the registrar or the webhook itself.
//
// The same story is true in three ways: with events alone, with resync alone, and
// with both. What only events can do, such as to be there before a process ends,
// is claimed in the ways that have them.
package smoke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/stack"
)

// stepTimeout bounds one step. The longest waits for the schedule to begin another
// run of resync, which takes a minute at most.
const stepTimeout = 90 * time.Second

// Runner runs the steps one after the other on a stack.
type Runner struct {
	S   *stack.Stack
	Out io.Writer
	Way stack.Way // the stack's

	web string // target group of most steps
	url string // of its load balancer

	telling sync.Mutex
}

// Step is one act with what must be true after it.
type Step struct {
	Name string
	Do   func(ctx context.Context, r *Runner) (note string, err error)
	// Silent is true where no event tells of what happens, or nobody hears it: only
	// comparison can be behind the repair, also beside a living registrar.
	Silent bool
	// Beside is true of a step with a group of its own, which disturbs nobody: those
	// that follow each other are taken at once, since most of their time is waiting.
	Beside bool
}

// Result is how a step ended.
type Result struct {
	Way     stack.Way      `json:"way"`
	Name    string         `json:"name"`
	Seconds float64        `json:"seconds"`          // from the act until the group was right
	Causes  map[string]int `json:"causes,omitempty"` // what made functions act, by kind
	Note    string         `json:"note,omitempty"`
	NotRun  string         `json:"notRun,omitempty"` // why it makes no sense in this way
	Error   string         `json:"error,omitempty"`

	silent bool // as the step
}

// Known returns an error that lists the steps if none has only in its name.
func Known(only string) error {
	var names []string
	for _, s := range steps {
		if strings.Contains(s.Name, only) {
			return nil
		}
		names = append(names, s.Name)
	}
	return fmt.Errorf("no step has %q in its name; the steps are:\n  %s", only, strings.Join(names, "\n  "))
}

// Run runs all steps whose names contain only (all of them if it is empty), and
// returns what became of each. The first failure does not end the run: later
// steps stand for themselves. The error says how many failed.
func (r *Runner) Run(ctx context.Context, only string) ([]Result, error) {
	r.Way = r.S.Config.Way
	if err := r.setUp(ctx); err != nil {
		return nil, fmt.Errorf("setting up: %w", err)
	}
	var results []Result
	failed := 0
	for first, some := range batches(chosen(only)) {
		of := r.batch(ctx, some)
		if first == 0 && only != "" && of[0].Error == "" { // what the steps left out would have left
			if err := r.twoPods(ctx); err != nil {
				return append(results, of...), fmt.Errorf("preparing for a part of the steps: %w", err)
			}
		}
		for _, res := range of {
			if res.Error != "" {
				failed++
			}
		}
		results = append(results, of...)
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		select {
		case err := <-r.S.Failed():
			return results, err
		default:
		}
	}
	r.tellCalls()
	if failed > 0 {
		return results, fmt.Errorf("way %s: %d of %d steps failed", r.Way, failed, len(results))
	}
	return results, r.registrarActed(results)
}

// twoPods has the Deployment of most steps as they expect it.
func (r *Runner) twoPods(ctx context.Context) error {
	if err := r.scale(ctx, "web", 2); err != nil {
		return err
	}
	return r.exactly(ctx, want{pods: 2, healthy: true})
}

// chosen returns the first step and those whose names contain only.
func chosen(only string) (out []Step) {
	for i, s := range steps {
		if i == 0 || strings.Contains(s.Name, only) {
			out = append(out, s)
		}
	}
	return out
}

// batches divides steps into those that are taken at once.
func batches(all []Step) (out [][]Step) {
	for i, s := range all {
		if last := len(out) - 1; i > 0 && s.Beside && all[i-1].Beside {
			out[last] = append(out[last], s)
		} else {
			out = append(out, []Step{s})
		}
	}
	return out
}

// batch takes steps at once. What made functions act is told of a step that was
// alone, and else only looked at.
func (r *Runner) batch(ctx context.Context, some []Step) []Result {
	bounded, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	first := r.sequence()
	results := make([]Result, len(some))
	var wg sync.WaitGroup
	for i, s := range some {
		wg.Go(func() {
			if results[i] = r.step(bounded, s); len(some) > 1 {
				r.tell(results[i])
			}
		})
	}
	wg.Wait()
	ran := slices.IndexFunc(results, func(res Result) bool { return res.NotRun == "" && res.Error == "" })
	if ran >= 0 {
		kinds, err := r.causes(ctx, first)
		if err != nil {
			results[ran].Error = err.Error()
		}
		if len(some) == 1 {
			results[ran].Causes = kinds
		} else if err != nil {
			r.tell(results[ran])
		}
	}
	if len(some) == 1 {
		r.tell(results[0])
	}
	return results
}

func (r *Runner) step(ctx context.Context, s Step) Result {
	res := Result{Way: r.Way, Name: s.Name, silent: s.Silent}
	if res.NotRun = notInThisWay[s.Name][r.Way]; res.NotRun != "" {
		return res
	}
	start := time.Now()
	note, err := s.Do(ctx, r)
	res.Seconds, res.Note = time.Since(start).Seconds(), note
	if err != nil {
		res.Error = err.Error()
	}
	return res
}

func (r *Runner) tell(res Result) {
	r.telling.Lock()
	defer r.telling.Unlock()
	if res.NotRun != "" {
		_, _ = fmt.Fprintf(r.Out, "-       not run  %s (not in way %s: %s)\n", res.Name, res.Way, res.NotRun)
		return
	}
	mark := "ok  "
	if res.Error != "" {
		mark = "FAIL"
	}
	_, _ = fmt.Fprintf(r.Out, "%s %7.2f s  %s", mark, res.Seconds, res.Name)
	if res.Note != "" {
		_, _ = fmt.Fprintf(r.Out, " (%s)", res.Note)
	}
	if res.Error != "" {
		_, _ = fmt.Fprintf(r.Out, "\n       %s", res.Error)
	}
	_, _ = fmt.Fprintln(r.Out)
}

// setUp makes namespace, group, load balancer and rule of most steps.
func (r *Runner) setUp(ctx context.Context) (err error) {
	if err := r.S.Admin.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")); err != nil {
		return err
	}
	if r.web, err = r.S.AWS.Group(ctx, "web", 8080, true); err != nil {
		return err
	}
	if err := r.S.AWS.DrainFor(ctx, r.web, 10); err != nil {
		return err
	}
	if r.url, err = r.S.AWS.LoadBalancer(ctx, "web", 8080, r.web); err != nil {
		return err
	}
	return r.S.AWS.Rule(ctx, "web", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["web"]}}`, r.constants(r.web, ""))
}

// group makes a target group behind a load balancer of its own, so that its
// targets are in use, and a rule of the same name for pods with that app label.
func (r *Runner) group(ctx context.Context, name string, owned bool, more string) (arn string, err error) {
	if arn, err = r.S.AWS.Group(ctx, name, 8080, owned); err != nil {
		return "", err
	}
	if err := r.S.AWS.DrainFor(ctx, arn, 10); err != nil {
		return "", err
	}
	if _, err := r.S.AWS.LoadBalancer(ctx, name, 8080, arn); err != nil {
		return "", err
	}
	return arn, r.S.AWS.Rule(ctx, name, fmt.Sprintf(`{"cluster":["local"],"namespace":["shop"],"labels":{"app":[%q]}}`, name), r.constants(arn, more))
}

// constants writes a binding's constants; more is appended to them.
func (r *Runner) constants(group, more string) string {
	return fmt.Sprintf(`{"targetGroup":%q,"port":8080%s}`, group, more)
}

var errNever = errors.New("never happened")
