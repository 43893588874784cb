package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Limits of EventBridge: targets of a rule (fixed), and the default quotas of
// rules on a bus and characters of a pattern (both may be raised).
const (
	maxTargets    = 5
	quotaRules    = 300
	quotaPattern  = 2048
	longestPlaces = 3 // how many names a message lists
)

var awsName = regexp.MustCompile(`^[.\-_A-Za-z0-9]{1,64}$`)

// Queues returns the ARNs of the queues that bindings go to: those of targets
// whose template carries a binding or, where there is none, of all SQS targets of
// rules that may mean pods.
func Queues(rules []Rule) []string {
	carrying, all := map[string]bool{}, map[string]bool{}
	for i := range rules {
		for _, t := range rules[i].Targets {
			if !strings.Contains(t.ARN, ":sqs:") {
				continue
			}
			all[t.ARN] = all[t.ARN] || mayMeanPods(rules[i].Pattern)
			if t.Transformer != nil && strings.Contains(t.Transformer.Template, `"binding"`) {
				carrying[t.ARN] = true
			}
		}
	}
	if len(carrying) == 0 {
		maps.DeleteFunc(all, func(_ string, pods bool) bool { return !pods })
		carrying = all
	}
	return slices.Sorted(maps.Keys(carrying))
}

// mayMeanPods reports whether a pattern leaves room for pod events: rules that
// name other detail-types, such as those that ask resync for a round, mean no
// binding. What can't be read may mean anything.
func mayMeanPods(pattern string) bool {
	var p struct {
		DetailType []string `json:"detail-type"`
	}
	return json.Unmarshal([]byte(pattern), &p) != nil || p.DetailType == nil || slices.Contains(p.DetailType, podevent.DetailTypePodStateChange)
}

// Bindings reads the bindings of rules at the queues. The error joins the faults
// of all rules, as binding.FromRule does.
func Bindings(rules []Rule, queues []string) ([]binding.Binding, error) {
	var out []binding.Binding
	var errs []error
	for i := range rules {
		bs, err := bindings(&rules[i], queues)
		out, errs = append(out, bs...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

func bindings(r *Rule, queues []string) ([]binding.Binding, error) {
	var out []binding.Binding
	var errs []error
	for _, q := range queues {
		bs, err := binding.FromRule(r.Rule, r.Targets, q)
		out, errs = append(out, bs...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

func (l *linter) faults(r *Rule, err error) {
	for _, f := range binding.Faults(err) {
		out := r.of(Invalid)
		out.Target, out.Path, out.Message = f.TargetID, f.Path, f.Reason
		out.Fix = "until then this target covers nothing; the others go on"
		l.add(out)
	}
}

// rule judges what EventBridge itself would refuse or take in silence.
func (l *linter) rule(r *Rule) {
	if n := len(r.Targets); n > maxTargets {
		f := r.of(TooManyTargets)
		f.Message = fmt.Sprintf("%d targets: EventBridge takes %d a rule", n, maxTargets)
		f.Fix = "write a second rule with the same pattern"
		l.add(f)
	}
	if r.Name != "" && !awsName.MatchString(r.Name) {
		f := r.of(BadName)
		f.Message = fmt.Sprintf("%q is no rule name: want 1 to 64 of letters, digits, . - and _", r.Name)
		l.add(f)
	}
	seen := map[string]bool{}
	for _, t := range r.Targets {
		f := r.of(DuplicateTarget)
		f.Target = t.ID
		switch {
		case !awsName.MatchString(t.ID):
			f.Check = BadName
			f.Message = fmt.Sprintf("%q is no target id: want 1 to 64 of letters, digits, . - and _", t.ID)
			l.add(f)
		case seen[t.ID]:
			f.Message = fmt.Sprintf("two targets with the id %s: the second replaces the first", t.ID)
			f.Fix = "give each target an id of its own"
			l.add(f)
		}
		seen[t.ID] = true
	}
	l.rulePattern(r)
}

func (l *linter) rulePattern(r *Rule) {
	if n := len([]rune(r.Pattern)); n > quotaPattern && n <= eventpattern.MaxPatternLength {
		f := r.of(LongPattern)
		f.Path = "EventPattern"
		f.Message = fmt.Sprintf("%d characters: the default quota of EventBridge is %d", n, quotaPattern)
		f.Fix = "split the rule, or raise the quota before you deploy"
		l.add(f)
	}
	ours := slices.ContainsFunc(r.Targets, func(t binding.Target) bool { return slices.Contains(l.queues, t.ARN) })
	switch {
	case ours && r.State == "DISABLED":
		f := r.of(Disabled)
		f.Message = "the rule is disabled: its group keeps what it holds, and no pod is added by it"
		f.Fix = `enable it, or empty its group with "empty":true before you delete it`
		l.add(f)
	case !ours && r.selectsPods():
		f := r.of(NoBinding)
		f.Message = "it matches pod events, and has no target at the registrar's queue: it is no binding"
		l.add(f)
	}
}

// selectsPods reports whether a rule's pattern wants pod events by name.
func (r *Rule) selectsPods() bool {
	p, err := eventpattern.Parse([]byte(r.Pattern))
	if err != nil {
		return false
	}
	for _, b := range branches(p.String()) {
		if !slices.Contains(b.exact("detail-type"), podEventType) {
			return false
		}
	}
	return true
}

// bus judges the rules together.
func (l *linter) bus() {
	if n := len(l.in.Rules); n > quotaRules {
		l.add(Finding{Check: TooManyRules, Message: fmt.Sprintf("%d rules: the default quota of a bus is %d", n, quotaRules),
			Fix: "raise the quota, or let one rule select the pods of several bindings"})
	}
	if len(l.queues) > 1 {
		l.add(Finding{Check: SeveralQueues, Message: "bindings go to several queues: " + list(l.queues),
			Fix: "say which one is the registrar's; what goes elsewhere is no binding"})
	}
	first := map[string]*Rule{}
	for i := range l.in.Rules {
		r := &l.in.Rules[i]
		key := r.Bus + "/" + r.Label()
		if before, twice := first[key]; twice {
			f := r.of(DuplicateRule)
			f.Message = "two rules of this name: the second replaces the first"
			if before.Place != "" {
				f.Message += ", which is at " + before.Place
			}
			l.add(f)
			continue
		}
		first[key] = r
	}
}
