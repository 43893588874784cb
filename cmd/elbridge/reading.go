package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/explain"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// Calls in parallel; of those to ELB newPace says how many a second.
const (
	ruleReads  = 8
	groupReads = 4
)

// ruleReader reads the rules of a bus.
type ruleReader interface {
	List(ctx context.Context) ([]binding.Rule, error)
	Targets(ctx context.Context, rule string) ([]binding.Target, error)
}

// groupReader reads target groups.
type groupReader interface {
	Facts(ctx context.Context, ref binding.GroupRef) (targetgroup.Facts, error)
	Health(ctx context.Context, g claim.Group) (map[claim.Key]plan.Target, error)
}

// podReader reads a cluster.
type podReader interface {
	Pod(ctx context.Context, namespace, name string) (*podevent.Pod, error)
	PodsByIP(ctx context.Context, ip string) ([]*podevent.Pod, error)
	Inspect(ctx context.Context, namespace, labels string) ([]cluster.Inspection, error)
}

// readRules reads the rules of a bus with their targets, in the bus's order.
func readRules(ctx context.Context, from ruleReader) ([]lint.Rule, error) {
	listed, err := from.List(ctx)
	if err != nil {
		return nil, err
	}
	read := make([]*lint.Rule, len(listed))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(ruleReads)
	for i, r := range listed {
		g.Go(func() error {
			targets, err := from.Targets(ctx, r.Name)
			switch {
			case errors.Is(err, bus.ErrNotFound): // deleted since the list
				return nil
			case err != nil:
				return err
			}
			read[i] = &lint.Rule{Rule: r, Targets: targets}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []lint.Rule
	for _, r := range read {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out, nil
}

// readGroups reads what the bindings name: facts, and targets too if asked. One
// that can't be read keeps nobody from the others; the problem is told with it,
// and the error joins what was not read.
func readGroups(ctx context.Context, bs []binding.Binding, from func(*binding.Binding) groupReader, targets bool) (map[string]explain.Group, error) {
	return pacedGroups(ctx, bs, from, targets, newPace())
}

func pacedGroups(ctx context.Context, bs []binding.Binding, from func(*binding.Binding) groupReader, targets bool, pace *rate.Limiter) (map[string]explain.Group, error) {
	out := map[string]explain.Group{}
	var unread []error
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(groupReads)
	seen := map[string]bool{}
	for i := range bs {
		b := &bs[i]
		ref := lint.Ref(b.Group)
		if seen[ref] {
			continue
		}
		seen[ref] = true
		g.Go(func() error {
			read, err := pacedGroup(ctx, from(b), b.Group, targets, pace)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				read = explain.Group{Group: lint.Group{Problem: lint.Unread, Detail: err.Error()}}
				unread = append(unread, fmt.Errorf("target group %s was not read: %w", lint.GroupName(b.Group), err))
			}
			out[ref] = read
			return nil
		})
	}
	_ = g.Wait() // each group carries its error
	slices.SortFunc(unread, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return out, errors.Join(unread...)
}

func readGroup(ctx context.Context, from groupReader, ref binding.GroupRef, targets bool) (explain.Group, error) {
	return pacedGroup(ctx, from, ref, targets, newPace())
}

func pacedGroup(ctx context.Context, from groupReader, ref binding.GroupRef, targets bool, pace *rate.Limiter) (explain.Group, error) {
	if err := pace.WaitN(ctx, factsCalls); err != nil {
		return explain.Group{}, err
	}
	f, err := from.Facts(ctx, ref)
	switch {
	case errors.Is(err, targetgroup.ErrNotFound):
		return explain.Group{Group: lint.Group{Problem: lint.NotFound}}, nil
	case errors.Is(err, targetgroup.ErrAmbiguous):
		return explain.Group{Group: lint.Group{Problem: lint.Ambiguous, Detail: err.Error()}}, nil
	case err != nil:
		return explain.Group{}, err
	}
	out := explain.Group{Group: lint.Group{Group: f.Group, Name: f.Name, Protocol: f.Protocol, Tags: f.Tags, DeregistrationDelay: f.DeregistrationDelay}}
	if targets {
		if err := pace.Wait(ctx); err != nil {
			return explain.Group{}, err
		}
		if out.Targets, err = from.Health(ctx, f.Group); err != nil {
			return explain.Group{}, err
		}
		out.Drained = len(out.Targets) == 0
	}
	return out, nil
}

// facts are groups as lint takes them.
func facts(groups map[string]explain.Group) map[string]lint.Group {
	out := make(map[string]lint.Group, len(groups))
	for ref, g := range groups {
		out[ref] = g.Group
	}
	return out
}

// bindingsOf reads the bindings of rules at a queue, or at the queue that they
// themselves name.
func bindingsOf(rules []lint.Rule, queue string) ([]binding.Binding, []*binding.Fault) {
	queues := lint.Queues(rules)
	if queue != "" {
		queues = []string{queue}
	}
	bs, err := lint.Bindings(rules, queues)
	return bs, binding.Faults(err)
}

func sortedStrings(s []string) []string {
	slices.Sort(s)
	return s
}
