// Package lint says what is wrong, or risky, with the rules of an elbridge bus,
// and what to do about it. It reads rules as the registrar and resync do (pkg/binding,
// pkg/eventpattern); what else is known, as of target groups or pods, comes in as
// facts. What is not known is not judged. The package is pure.
package lint

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Severity says how bad a finding is.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"   // it does not do what it was written for
	Warning Severity = "warning" // it does, until something happens
	Info    Severity = "info"    // worth knowing
)

// rank orders severities, worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// Rule is a rule with its targets, and the place where it is written.
type Rule struct {
	binding.Rule
	Targets []binding.Target
	Place   string // as in "rules.json: rules[3]" or "bindings.yaml:12"; empty on a bus
}

// Label is the rule's name, or its ARN where it has none.
func (r *Rule) Label() string { return cmp.Or(r.Name, r.ARN) }

// Problem says why a target group is not known.
type Problem string

// The problems.
const (
	Known     Problem = ""
	NotFound  Problem = "not found"
	Ambiguous Problem = "ambiguous"
	Unread    Problem = "not read" // whatever it is, it is not judged
)

// Group is what is known of a target group.
type Group struct {
	claim.Group
	Problem             Problem // set: nothing else is known
	Detail              string  // of the problem, for people
	Name                string
	Protocol            string            // HTTP, HTTPS, TCP, …; empty if not known
	Tags                map[string]string // nil if not known
	DeregistrationDelay time.Duration     // negative if not known
	Drained             bool              // it is known to hold no targets
}

// Pod is a live pod.
type Pod struct {
	Cluster string // as in the events' detail.cluster
	*podevent.Pod
	TerminationGracePeriod time.Duration // negative if not known
}

// Input is what is to be judged, and what is known beside it.
type Input struct {
	Rules []Rule
	// Queue is the ARN of the registrar's queue. If it is empty, it is taken from
	// the rules, see Queues.
	Queue string
	// Groups are the facts about target groups, by Ref of what names them. A group
	// that is not in it is not known.
	Groups map[string]Group
	// Clusters are the clusters that Pods holds all pods of.
	Clusters    []string
	Pods        []Pod
	Annotations podevent.AllowList // the webhook's
	At          time.Time          // of the reading of the pods
}

// Finding is one thing that is wrong or risky.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    Check    `json:"check"`
	Rule     string   `json:"rule,omitempty"`
	Target   string   `json:"target,omitempty"` // target id
	Path     string   `json:"path,omitempty"`   // of the rule, as in "EventPattern.detail.ready" or "$.binding.port"
	Group    string   `json:"group,omitempty"`  // target group
	Place    string   `json:"place,omitempty"`
	Message  string   `json:"message"` // what is so, and why it matters
	Fix      string   `json:"fix,omitempty"`
}

// Report is the outcome.
type Report struct {
	Rules    int       `json:"rules"`    // looked at
	Bindings int       `json:"bindings"` // understood
	Findings []Finding `json:"findings"` // worst first, then by rule; never nil
}

// Count returns how many findings have the severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Run judges the rules.
func Run(in Input) Report {
	l := newLinter(in)
	for i := range in.Rules {
		l.rule(&in.Rules[i])
	}
	l.bus()
	for _, b := range l.bound {
		l.pattern(b)
		l.group(b)
		l.pods(b)
	}
	l.pairs()
	return l.report(len(in.Rules))
}

// linter gathers findings.
type linter struct {
	in       Input
	queues   []string
	bound    []*bound
	findings []Finding
}

// bound is a binding with what the checks ask of it.
type bound struct {
	binding.Binding
	rule     *Rule
	branches []branch // what its pattern says
	group    string   // key of its group: equal for two bindings of one group
	selected []*Pod   // the live pods that its pattern selects, in their order
}

func newLinter(in Input) *linter {
	l := &linter{in: in, queues: []string{in.Queue}}
	if in.Queue == "" {
		l.queues = Queues(in.Rules)
	}
	for i := range in.Rules {
		r := &in.Rules[i]
		bs, err := bindings(r, l.queues)
		l.faults(r, err)
		for _, b := range bs {
			l.bound = append(l.bound, &bound{Binding: b, rule: r, branches: branches(b.Pattern.String())})
		}
	}
	l.nameGroups()
	l.selectPods()
	return l
}

func (l *linter) add(f Finding) {
	f.Severity = cmp.Or(f.Severity, severities[f.Check])
	l.findings = append(l.findings, f)
}

// of is a finding about a rule.
func (r *Rule) of(c Check) Finding { return Finding{Check: c, Rule: r.Label(), Place: r.Place} }

// of is a finding about a binding.
func (b *bound) of(c Check) Finding {
	f := b.rule.of(c)
	f.Target, f.Group = b.TargetID, b.groupName()
	return f
}

func (b *bound) groupName() string { return GroupName(b.Group) }

func (l *linter) report(rules int) Report {
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Target, b.Target),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Message, b.Message))
	})
	r := Report{Rules: rules, Bindings: len(l.bound), Findings: slices.Compact(l.findings)}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	return r
}

// list writes names as people do: "a, b and c".
func list(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}
