package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
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

// RuleBook keeps rules as they were read. Additions are served from it; before
// a removal it is read again. Nothing is right only because it is in here.
type RuleBook struct {
	source   Rules
	queueARN string
	now      func() time.Time
	faulty   func(rule binding.Rule, err error) // told of each rule that covers nothing

	mu      sync.Mutex
	entries map[string]ruleEntry // by rule ARN
}

type ruleEntry struct {
	rule        binding.Rule
	pattern     *eventpattern.Pattern // nil: not parsed
	ruleRead    time.Time
	targets     []binding.Target // as they were read
	bindings    []binding.Binding
	fault       error           // of the rule, or of some of its targets
	words       map[string]bool // of what a faulty rule's targets say
	targetsRead time.Time       // zero: targets never read
}

// NewRuleBook returns an empty book. faulty is told of each rule that covers
// nothing, or less than it says, whenever its targets were read; it may be nil.
func NewRuleBook(source Rules, queueARN string, now func() time.Time, faulty func(binding.Rule, error)) *RuleBook {
	if faulty == nil {
		faulty = func(binding.Rule, error) {}
	}
	return &RuleBook{source: source, queueARN: queueARN, now: now, faulty: faulty}
}

// Snapshot is the rules of the bus as of one reading, each list in the order of
// the rules' ARNs.
type Snapshot struct {
	Rules    []binding.Rule
	Bindings []binding.Binding
	Faults   []RuleFault
}

// Own returns the binding of a message: the constants it carries and the
// pattern and state that its rule has now. What is remembered serves for a
// while, unless the message shows that the rule has changed after it was read
// and before since, when the message was received. bus.ErrNotFound if the rule
// is gone.
func (b *RuleBook) Own(ctx context.Context, m *binding.Message, since time.Time) (*binding.Binding, error) {
	e, known := b.entry(m.Rule)
	if !known || e.pattern == nil || b.now().Sub(e.ruleRead) > ruleMaxAge || (e.ruleRead.Before(since) && e.contradicts(m)) {
		at := b.now()
		rule, err := b.source.Rule(ctx, m.Rule[strings.LastIndexByte(m.Rule, '/')+1:])
		switch {
		case err != nil:
			return nil, err
		case rule.ARN != m.Rule:
			return nil, fmt.Errorf("%w: %s is not of this bus", bus.ErrNotFound, m.Rule)
		}
		if !same(e.rule, rule) {
			e = ruleEntry{} // its targets are to be read again as well
		}
		if e.pattern == nil {
			if rule.Pattern == "" { // a schedule selects no pods
				return nil, fmt.Errorf("%w: %s has no event pattern", bus.ErrNotFound, m.Rule)
			}
			if e.pattern, err = eventpattern.Parse([]byte(rule.Pattern)); err != nil {
				return nil, err
			}
		}
		e.rule, e.ruleRead = rule, at
		b.store(m.Rule, e)
	}
	own := m.Binding
	own.Rule, own.Pattern, own.Enabled = e.rule.ARN, e.pattern, e.rule.Enabled()
	return &own, nil
}

// contradicts reports whether the rule, as it was read, would not have sent the
// message. An event that can't be read says nothing of it.
func (e ruleEntry) contradicts(m *binding.Message) bool {
	if !e.rule.Enabled() {
		return true
	}
	event, err := eventpattern.ParseEvent(m.Event)
	return err == nil && !e.pattern.Matches(event)
}

// Current returns the binding that the rule of own has now for the group that it
// names. It is own itself as long as the rule's targets are not known, and nil if
// the rule names the group no more. If own's constants are none of those known,
// the targets are read again, once after since. ask has them read anyway.
func (b *RuleBook) Current(ctx context.Context, own *binding.Binding, since time.Time, ask bool) (*binding.Binding, error) {
	e, _ := b.entry(own.Rule)
	known := !e.targetsRead.IsZero() && b.now().Sub(e.targetsRead) < targetsMaxAge
	if !known && !ask || known && e.has(own) {
		return own, nil
	}
	if !known || e.targetsRead.Before(since) {
		next, err := b.readTargets(ctx, e.rule, e)
		if err != nil {
			return nil, err
		}
		next.pattern = e.pattern
		next.ruleRead = e.ruleRead
		e = next
		b.store(own.Rule, e)
	}
	if e.has(own) {
		return own, nil
	}
	for i := range e.bindings {
		if now := &e.bindings[i]; reflect.DeepEqual(now.Group, own.Group) {
			return now, nil
		}
	}
	return nil, nil
}

// has reports whether one of the rule's targets has these very constants.
func (e ruleEntry) has(own *binding.Binding) bool {
	return slices.ContainsFunc(e.bindings, func(b binding.Binding) bool { return binding.SameConstants(b, *own) })
}

func (b *RuleBook) entry(arn string) (ruleEntry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[arn]
	return e, ok
}

func (b *RuleBook) store(arn string, e ruleEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries == nil {
		b.entries = map[string]ruleEntry{}
	}
	b.entries[arn] = e
}

// Cached returns the bindings known well enough to serve additions, in the order
// of their rules' ARNs.
func (b *RuleBook) Cached() []binding.Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	young := maps.Clone(b.entries)
	maps.DeleteFunc(young, func(_ string, e ruleEntry) bool {
		return now.Sub(e.ruleRead) > ruleMaxAge || now.Sub(e.targetsRead) > targetsMaxAge
	})
	return snapshot(young).Bindings
}

// snapshot puts entries into the order of their rules' ARNs.
func snapshot(entries map[string]ruleEntry) Snapshot {
	var out Snapshot
	for _, arn := range slices.Sorted(maps.Keys(entries)) {
		e := entries[arn]
		out.Rules = append(out.Rules, e.rule)
		out.Bindings = append(out.Bindings, e.bindings...)
		if e.fault != nil {
			out.Faults = append(out.Faults, RuleFault{Rule: e.rule, Err: e.fault, words: e.words})
		}
	}
	return out
}

// Fresh returns every rule and binding of the bus, read anew: the rules, and the
// targets of those that are new, changed or not looked at for a while. A fault is
// returned as long as it lasts. An error means that something was not read, and
// that nothing may be removed (I8).
func (b *RuleBook) Fresh(ctx context.Context) (Snapshot, error) { return b.FreshOldest(ctx, 0) }

// FreshOldest does the same and reads the targets of the n rules again that were
// looked at longest ago: whoever asks round after round sees new constants soon,
// and spreads the calls.
func (b *RuleBook) FreshOldest(ctx context.Context, n int) (Snapshot, error) {
	at := b.now()
	rules, err := b.source.List(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	old := b.oldest(rules, n)
	next := make([]ruleEntry, len(rules))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(targetReads)
	for i, rule := range rules {
		e, known := b.entry(rule.ARN)
		if known && same(e.rule, rule) && !old[rule.ARN] && at.Sub(e.targetsRead) < targetsMaxAge {
			e.ruleRead = at
			next[i] = e
			continue
		}
		g.Go(func() error {
			e, err := b.readTargets(ctx, rule, e)
			if err != nil {
				return err
			}
			e.ruleRead = at
			b.store(rule.ARN, e) // not lost if another one can't be read
			next[i] = e
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Snapshot{}, err
	}
	entries := make(map[string]ruleEntry, len(rules))
	for _, e := range next {
		entries[e.rule.ARN] = e
	}
	b.mu.Lock()
	b.entries = entries
	b.mu.Unlock()
	return snapshot(entries), nil // not what others have put there meanwhile
}

// oldest returns the n rules whose targets were read longest ago.
func (b *RuleBook) oldest(rules []binding.Rule, n int) map[string]bool {
	read := make(map[string]time.Time, len(rules))
	var arns []string
	for _, r := range rules {
		e, _ := b.entry(r.ARN)
		read[r.ARN] = e.targetsRead
		arns = append(arns, r.ARN)
	}
	slices.SortFunc(arns, func(x, y string) int { return cmp.Or(read[x].Compare(read[y]), cmp.Compare(x, y)) })
	out := make(map[string]bool, n)
	for _, arn := range arns[:min(n, len(arns))] {
		out[arn] = true
	}
	return out
}

// readTargets reads the targets of a rule, of which was is what is known. A faulty
// one covers nothing.
func (b *RuleBook) readTargets(ctx context.Context, rule binding.Rule, was ruleEntry) (ruleEntry, error) {
	at := b.now()
	targets, err := b.source.Targets(ctx, rule.Name)
	if err != nil && !errors.Is(err, bus.ErrNotFound) { // deleted since the list: covers nothing
		return ruleEntry{}, err
	}
	bs, err := was.bindings, was.fault
	if was.targetsRead.IsZero() || was.rule != rule || !reflect.DeepEqual(was.targets, targets) {
		bs, err = binding.FromRule(rule, targets, b.queueARN) // a rendering of each target: not done again for nothing
	}
	e := ruleEntry{rule: rule, targets: targets, bindings: bs, fault: err, targetsRead: at}
	if err != nil {
		e.words = wordsOf(targets, b.queueARN)
		b.faulty(rule, err)
	}
	if len(bs) > 0 {
		e.pattern = bs[0].Pattern
	}
	return e, nil
}

func same(a, b binding.Rule) bool { return a.Pattern == b.Pattern && a.State == b.State }
