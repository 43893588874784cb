// Package explain answers an operator's question: why is this pod, or this
// target, in a target group, or why not? It asks what the registrar asks (which
// bindings select the pod, what it claims under them) of what was read, and tells
// the answer with its reasons. It decides and changes nothing. The package is pure.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// NoCause is what can be said of a target's last change by one who has not read
// the audit log.
const NoCause = `not known: each change is told with its cause as an event "Targets Changed" on the bus and in the log of the function that made it`

// Group is what was read of a target group.
type Group struct {
	lint.Group
	Targets map[claim.Key]plan.Target // nil if not read
}

// World is what was read of rules, groups and one cluster.
type World struct {
	Cluster     string // its name in events
	Bindings    []binding.Binding
	Faults      []*binding.Fault // of rules and targets that cover nothing
	Groups      map[string]Group // by lint.Ref
	Annotations podevent.AllowList
	At          time.Time
}

// Verdict is what one binding says of the pod.
type Verdict struct {
	Rule     string `json:"rule"`
	Target   string `json:"target"` // target id of the rule
	Group    string `json:"group"`
	Selected bool   `json:"selected"`
	// Reason is the pattern's answer in one line: what matched, or the first
	// condition that fails with the value seen.
	Reason  string                   `json:"reason"`
	Pattern eventpattern.Explanation `json:"pattern"`
	// Claim is the key that the pod claims; Refusal says why it claims none.
	Claim   string `json:"claim,omitempty"`
	Refusal string `json:"refusal,omitempty"`
	// State is the claimed target's in ELB: its health, "not registered", or "not read".
	State       string `json:"state,omitempty"`
	StateReason string `json:"stateReason,omitempty"` // ELB's reason code
	// Stale are other addresses and ports of the pod that the group holds.
	Stale []string `json:"stale,omitempty"`
	Note  string   `json:"note,omitempty"` // what else decides, as a disabled rule
}

// PodAnswer is what the bindings say of a pod.
type PodAnswer struct {
	Cluster   string    `json:"cluster"`
	Pod       string    `json:"pod"` // namespace/name
	UID       string    `json:"uid"`
	Node      string    `json:"node,omitempty"`
	PodIPs    []string  `json:"podIPs"`
	State     string    `json:"state"`    // phase, readiness and whether it is terminating
	Bindings  []Verdict `json:"bindings"` // selecting ones first, then by rule
	Invalid   []string  `json:"invalid"`  // rules that cover nothing
	LastCause string    `json:"lastCause"`
}

// Pod says what the bindings make of a pod.
func (w *World) Pod(p *podevent.Pod) (PodAnswer, error) {
	e, err := w.event(p)
	if err != nil {
		return PodAnswer{}, err
	}
	a := PodAnswer{Cluster: w.Cluster, Pod: p.Namespace + "/" + p.Name, UID: p.UID, Node: p.NodeName, PodIPs: orEmpty(p.PodIPs), State: state(p),
		Bindings: []Verdict{}, Invalid: w.invalid(), LastCause: NoCause}
	for i := range w.Bindings {
		a.Bindings = append(a.Bindings, w.verdict(p, e, &w.Bindings[i]))
	}
	slices.SortStableFunc(a.Bindings, func(x, y Verdict) int {
		return cmp.Or(-compareBool(x.Selected, y.Selected), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Target, y.Target))
	})
	return a, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// event is the event that describes the pod now, as rules match it.
func (w *World) event(p *podevent.Pod) (*eventpattern.Event, error) {
	account, region := "", ""
	for i := range w.Bindings { // patterns may name the account and region of their bus
		if parts := strings.Split(w.Bindings[i].Rule, ":"); len(parts) > 5 {
			region, account = parts[3], parts[4]
			break
		}
	}
	e := podevent.FromPod(w.Cluster, p, w.Annotations, w.At)
	return podmatch.Event(&e, podmatch.Envelope{ID: "00000000-0000-4000-8000-000000000000", Account: account, Region: region})
}

func (w *World) verdict(p *podevent.Pod, e *eventpattern.Event, b *binding.Binding) Verdict {
	x := b.Pattern.Explain(e)
	v := Verdict{Rule: ruleName(b.Rule), Target: b.TargetID, Group: lint.GroupName(b.Group), Selected: x.Match, Reason: x.String(), Pattern: x}
	if !x.Match {
		return v
	}
	v.Note = note(b)
	g, looked := w.Groups[lint.Ref(b.Group)]
	switch {
	case !looked:
		v.State = notRead
		return v
	case g.Problem == lint.Unread:
		v.State, v.StateReason = notRead, g.Detail
		return v
	case g.Problem != lint.Known:
		v.Refusal = fmt.Sprintf("target group %s", g.Problem)
		if g.Detail != "" {
			v.Refusal += ": " + g.Detail
		}
		return v
	}
	key, refusal := claim.Of(p, b, g.Group.Group)
	if refusal != claim.None {
		v.Refusal = string(refusal)
	} else {
		v.Claim = key.String()
		v.State, v.StateReason = health(g, key)
	}
	v.Stale = stale(g, p, key)
	return v
}

const (
	notRead       = "not read"
	notRegistered = "not registered"
)

// health is a key's state in a group.
func health(g Group, k claim.Key) (state, reason string) {
	if g.Targets == nil {
		return notRead, ""
	}
	t, ok := g.Targets[k]
	if !ok {
		return notRegistered, ""
	}
	return string(t.Health), t.Reason
}

// stale returns what else of the pod's addresses the group holds, besides its claim.
func stale(g Group, p *podevent.Pod, claimed claim.Key) []string {
	var out []string
	addresses := claim.Addresses(p.PodIPs, g.Family)
	for k, t := range g.Targets {
		if k != claimed && slices.Contains(addresses, k.ID) {
			out = append(out, fmt.Sprintf("%s %s", k, t.Health))
		}
	}
	slices.Sort(out)
	return out
}

// note says what beside the pod decides whether a claim is acted on.
func note(b *binding.Binding) string {
	var out []string
	if !b.Enabled {
		out = append(out, "the rule is disabled: what the group holds stays, nothing is added")
	}
	if b.Mode == binding.Observe {
		out = append(out, "mode observe: changes are only told")
	}
	return strings.Join(out, "; ")
}

func (w *World) invalid() []string {
	out := []string{}
	for _, f := range w.Faults {
		out = append(out, f.Error())
	}
	return out
}

// state is a pod's life in a few words.
func state(p *podevent.Pod) string {
	out := cmp.Or(p.Phase, "no phase")
	switch {
	case p.Terminating:
		out += ", terminating"
	case p.Ready:
		out += ", ready"
	case p.ContainersReady:
		out += ", containers ready, pod not ready"
	default:
		out += ", not ready"
	}
	return out
}

// ruleName is the last part of a rule's ARN.
func ruleName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
