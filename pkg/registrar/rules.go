package registrar

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

const (
	// ruleMaxAge bounds how old a cached pattern may be that serves additions.
	ruleMaxAge = 30 * time.Second
	// targetsMaxAge bounds how old a rule's targets may be when a removal is
	// decided: ListRules shows a new pattern or state at once, new constants not.
	targetsMaxAge = 60 * time.Second
	// targetReads bounds parallel ListTargetsByRule calls: the account has 50 a
	// second for these operations.
	targetReads = 8
)

// ruleBook keeps rules as they were read. Additions are served from it; before
// a removal it is read again. Nothing is right only because it is in here.
type ruleBook struct {
	source   Rules
	queueARN string
	now      func() time.Time
	faulty   func(rule binding.Rule, err error) // told of each rule that covers nothing

	mu      sync.Mutex
	entries map[string]ruleEntry // by rule ARN
}

type ruleEntry struct {
	rule        binding.Rule
	pattern     *eventpattern.Pattern
	ruleRead    time.Time
	bindings    []binding.Binding
	targetsRead time.Time // zero: targets never read
}

// own returns the binding of a message: the constants it carries and the
// pattern and state that its rule has now. bus.ErrNotFound if the rule is gone.
func (b *ruleBook) own(ctx context.Context, m *binding.Message) (*binding.Binding, error) {
	e, known := b.entry(m.Rule)
	if !known || b.now().Sub(e.ruleRead) > ruleMaxAge {
		rule, err := b.source.Rule(ctx, m.Rule[strings.LastIndexByte(m.Rule, '/')+1:])
		if err != nil {
			return nil, err
		}
		if !same(e.rule, rule) {
			e = ruleEntry{}
			if e.pattern, err = eventpattern.Parse([]byte(rule.Pattern)); err != nil {
				return nil, err
			}
		}
		e.rule, e.ruleRead = rule, b.now()
		b.store(m.Rule, e)
	}
	own := m.Binding
	own.Rule, own.Pattern, own.Enabled = e.rule.ARN, e.pattern, e.rule.State != "DISABLED"
	return &own, nil
}

func (b *ruleBook) entry(arn string) (ruleEntry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[arn]
	return e, ok
}

func (b *ruleBook) store(arn string, e ruleEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries == nil {
		b.entries = map[string]ruleEntry{}
	}
	b.entries[arn] = e
}

// cached returns the bindings known so far, in the order of their rules' ARNs.
func (b *ruleBook) cached() []binding.Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []binding.Binding
	for _, arn := range slices.Sorted(maps.Keys(b.entries)) {
		out = append(out, b.entries[arn].bindings...)
	}
	return out
}

// fresh returns every binding of the bus, read anew: the rules, and the targets
// of those that are new, changed or not looked at for a while. An error means
// that something was not read, and that nothing may be removed (I8).
func (b *ruleBook) fresh(ctx context.Context) ([]binding.Binding, error) {
	at := b.now()
	rules, err := b.source.List(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	next := make(map[string]ruleEntry, len(rules))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(targetReads)
	for _, rule := range rules {
		e, known := b.entry(rule.ARN)
		if known && same(e.rule, rule) && at.Sub(e.targetsRead) < targetsMaxAge {
			e.ruleRead = at
			mu.Lock()
			next[rule.ARN] = e
			mu.Unlock()
			continue
		}
		g.Go(func() error {
			targets, err := b.source.Targets(ctx, rule.Name)
			if err != nil && !errors.Is(err, bus.ErrNotFound) { // deleted since the list: covers nothing
				return err
			}
			bs, err := binding.FromRule(rule, targets, b.queueARN)
			if err != nil {
				b.faulty(rule, err)
			}
			mu.Lock()
			defer mu.Unlock()
			entry := ruleEntry{rule: rule, ruleRead: at, bindings: bs, targetsRead: at}
			if len(bs) > 0 {
				entry.pattern = bs[0].Pattern
			} else {
				entry.ruleRead = time.Time{} // own reads it again should a message name it
			}
			next[rule.ARN] = entry
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.entries = next
	b.mu.Unlock()
	return b.cached(), nil
}

func same(a, b binding.Rule) bool { return a.Pattern == b.Pattern && a.State == b.State }
