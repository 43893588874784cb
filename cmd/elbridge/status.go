package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/explain"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/preview"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// statusResult is what `elbridge status` says.
type statusResult struct {
	Bus     string    `json:"bus"`
	At      time.Time `json:"at"`
	Right   bool      `json:"right"`             // nothing is wrong, as far as it was read
	Wrong   []string  `json:"wrong"`             // what is, in a few words each
	Cluster string    `json:"cluster,omitempty"` // whose pods were read
	Rules   int       `json:"rules"`
	// Bindings by state: enabled, disabled, observe, empty, and the sum.
	Bindings   int               `json:"bindings"`
	States     map[string]int    `json:"states"`
	Invalid    []string          `json:"invalid"` // rules that cover nothing
	Groups     []groupStatus     `json:"groups"`
	Held       []heldStatus      `json:"held"`
	Frozen     []frozenStatus    `json:"frozen"`
	Unbound    []unboundStatus   `json:"unbound"` // ours, with targets, and no rule names them
	LastChange *lastChangeStatus `json:"lastChange,omitempty"`
	Webhooks   []webhookStatus   `json:"webhooks"`
	Resync     *resyncStatus     `json:"resync,omitempty"`
	Notes      []string          `json:"notes"` // what is not known, and why
}

// groupStatus is how one group is. Numbers are absent where they are not known.
type groupStatus struct {
	Name        string             `json:"group"`
	TargetGroup string             `json:"targetGroup,omitempty"`
	Right       bool               `json:"right"`
	Problem     string             `json:"problem,omitempty"`
	Targets     int                `json:"targets"` // without what drains
	Healthy     int                `json:"healthy"`
	Unhealthy   int                `json:"unhealthy"`
	Draining    int                `json:"draining"`
	Missing     int                `json:"missing"`
	Extra       *int               `json:"extra,omitempty"`
	Held        *int               `json:"held,omitempty"`
	Later       int                `json:"later,omitempty"`   // emptied, and go in steps
	WouldDo     int                `json:"wouldDo,omitempty"` // of rules in mode observe
	Kinds       map[drift.Kind]int `json:"kinds,omitempty"`
	Unknown     []string           `json:"unknown,omitempty"` // what was not read
}

// heldStatus is what is held of a group.
type heldStatus struct {
	Group       string            `json:"group"`
	TargetGroup string            `json:"targetGroup"`
	Hash        string            `json:"hash"`
	Why         []string          `json:"why"`
	Approve     string            `json:"approve,omitempty"` // the command; absent where approval does not help
	Targets     []targetevent.Key `json:"targets"`
}

// frozenStatus is a bus or group whose removals are frozen.
type frozenStatus struct {
	What string `json:"what"`
	ARN  string `json:"arn"`
	Note string `json:"note"` // the tag's value
}

// unboundStatus is a group with our owner tag that no rule names.
type unboundStatus struct {
	Group       string `json:"group"`
	TargetGroup string `json:"targetGroup"`
	Targets     int    `json:"targets"`
}

func statusCommand(s *shared) *cobra.Command {
	o := &livingOptions{viewOptions: viewOptions{shared: s}}
	cmd := &cobra.Command{
		Use: "status", Short: "Say on one screen whether all is right now", Args: cobra.NoArgs,
		Long: `Status says whether the groups of a bus are right now: what is missing, extra, unhealthy or
held, what is frozen, which rules cover nothing, which groups of ours no rule names, what
changed last and why, and what is silent: a webhook without a heartbeat for 3 minutes, a
resync without a completed round for 30. All of it is read at the time, the history from the
audit log (docs/history.md).

Pods are read from --kubeconfig, --eks-cluster, or the cluster that kubectl would use; without
one nothing is said to be missing or extra. What an event would witness this look cannot see:
it shows such a removal as held while it is under way.

The table shows what is not right, -o json all.

Exit codes: 0 all right, 2 something is not, 1 something was not read; what was read is shown.`,
		Example: `  elbridge status --eks-cluster prod
  elbridge status -o json | jq -r '.wrong[]'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := o.living(cmd.Context())
			if err != nil {
				return err
			}
			r, unread, err := o.status(cmd.Context(), l, time.Now())
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), o.output, r, r.table); err != nil {
				return err
			}
			return r.exit(unread)
		},
	}
	logGroupFlag(cmd, &o.logGroup)
	o.add(cmd)
	return cmd
}

func (r *statusResult) exit(unread error) error {
	switch {
	case unread != nil:
		return unread
	case !r.Right:
		return errFindings
	}
	return nil
}

// status reads all there is; unread says what could not be read of it.
func (o *livingOptions) status(ctx context.Context, l *living, now time.Time) (r *statusResult, unread, err error) {
	r = &statusResult{Bus: o.shared.bus, At: now.UTC().Truncate(time.Second), Wrong: []string{}, States: map[string]int{}, Invalid: []string{}, Groups: []groupStatus{},
		Held: []heldStatus{}, Frozen: []frozenStatus{}, Unbound: []unboundStatus{}, Webhooks: []webhookStatus{}, Notes: []string{}}
	b, err := l.bus(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.survey.busARN = b.arn
	rules, err := readRules(ctx, l.rules)
	if err != nil {
		return nil, nil, err
	}
	bs, faults := bindingsOf(rules, o.queue)
	r.count(len(rules), bs, faults)
	groups, err := l.survey.facts(ctx, bs, true)
	if err != nil {
		return nil, nil, err
	}
	left, whole := unbound(bs, groups, b)
	if err := l.survey.targets(ctx, groups, append(slices.Clone(bs), left...), nil); err != nil {
		return nil, nil, err
	}
	w, err := o.world(ctx, l, b, bs, groups)
	if err != nil {
		return nil, nil, err
	}
	ps, err := w.Plans(preview.Side{Bindings: withARNs(bs, groups), Maybe: maybe(rules, bs, faults, groups)})
	if err != nil {
		return nil, nil, err
	}
	r.pods(w)
	r.absent(bs, groups)
	for i := range ps {
		r.group(&ps[i])
	}
	slices.SortFunc(r.Groups, func(a, b groupStatus) int { return cmp.Compare(a.Name, b.Name) })
	r.frozen(b, groups)
	r.unbound(left, whole, groups)
	past := r.past(ctx, l.log, now, clusters(bs, w.Read))
	r.conclude()
	return r, errors.Join(append(groups.unread, past)...), ctx.Err()
}

func (r *statusResult) count(rules int, bs []binding.Binding, faults []*binding.Fault) {
	r.Rules, r.Bindings = rules, len(bs)
	for i := range bs {
		r.States[explain.StateOf(&bs[i])]++
	}
	for _, f := range faults {
		r.Invalid = append(r.Invalid, f.Error())
	}
}

// pods notes whose pods were read.
func (r *statusResult) pods(w *preview.World) {
	if len(w.Read) == 0 {
		r.Notes = append(r.Notes, "no cluster was given: nothing is said to be missing, extra or held")
		return
	}
	r.Cluster = w.Read[0]
}

// absent tells of groups that rules name and that do not exist, or not once.
func (r *statusResult) absent(bs []binding.Binding, groups *surveyed) {
	told := map[string]bool{}
	for i := range bs {
		ref := lint.Ref(bs[i].Group)
		g := groups.byRef[ref]
		unnamed := g.Problem == lint.Unread && g.ARN == "" && bs[i].Group.ARN == "" // one with an ARN has a plan
		if told[ref] || g.Problem != lint.NotFound && g.Problem != lint.Ambiguous && !unnamed {
			continue
		}
		told[ref] = true
		s := groupStatus{Name: lint.GroupName(bs[i].Group), TargetGroup: bs[i].Group.ARN, Problem: problemText(g.Group)}
		if g.Problem == lint.NotFound {
			s.Kinds = map[drift.Kind]int{drift.GroupDeleted: 1}
		}
		r.Groups = append(r.Groups, s)
	}
}

// group adds how one group is.
func (r *statusResult) group(p *preview.Plan) {
	s := groupStatus{Name: cmp.Or(p.Group.Name, groupName(p.Group.ARN)), TargetGroup: p.Group.ARN, Problem: p.Group.Problem, Kinds: map[drift.Kind]int{}}
	s.count(p)
	if p.Group.Problem != "" {
		r.Groups = append(r.Groups, s)
		return
	}
	made, told := p.Parts()
	s.Unknown, s.Missing, s.Later = p.Doubt, len(made.Register), len(made.Later)
	s.WouldDo = len(told.Register)
	zones := map[string]string{}
	for _, b := range p.Bindings {
		zones[b.Rule] = b.AvailabilityZone
	}
	reported := 0
	for _, f := range drift.Classify(made, drift.Group{Claims: p.Claims, Current: p.Group.Targets, Zones: zones}) {
		if len(p.Doubt) > 0 && f.Act != drift.Register && f.Act != drift.Report {
			continue // not known (I8)
		}
		s.Kinds[f.Kind]++
		if f.Act == drift.Report {
			reported++
		}
	}
	if len(p.Doubt) == 0 {
		s.Extra, s.Held = new(len(made.Deregister)+len(made.Held)), new(len(made.Held))
		s.WouldDo += len(told.Deregister) + len(told.Held) + len(told.Later)
		r.held(p, made.Held)
	}
	s.Right = s.Missing == 0 && s.Unhealthy == 0 && reported == 0 && (s.Extra == nil || *s.Extra == 0)
	r.Groups = append(r.Groups, s)
}

// unbound returns, as bindings, the groups that our owner tag is on and no rule
// names, and whether they could be told: a rule whose group was not read may name
// one.
func unbound(bs []binding.Binding, groups *surveyed, b busFacts) (left []binding.Binding, whole bool) {
	named, whole := map[string]bool{}, !groups.missed
	for i := range bs {
		g := groups.byRef[lint.Ref(bs[i].Group)]
		named[cmp.Or(g.ARN, bs[i].Group.ARN)] = true
		whole = whole && (g.Problem != lint.Unread || bs[i].Group.ARN != "")
	}
	for _, g := range groups.all {
		if named[g.ARN] || !binding.Owns(g.Tags[binding.OwnerTag], b.arn, g.ARN) {
			continue
		}
		ref := binding.GroupRef{ARN: g.ARN}
		groups.byRef[lint.Ref(ref)] = explain.Group{Group: g}
		left = append(left, binding.Binding{Group: ref})
	}
	return left, whole
}

// unbound tells of those that hold targets.
func (r *statusResult) unbound(left []binding.Binding, whole bool, groups *surveyed) {
	if !whole {
		r.Notes = append(r.Notes, "not all groups were read: those that no rule names are not known")
		return
	}
	for _, b := range left {
		g := groups.byRef[lint.Ref(b.Group)]
		if n := len(g.Targets); n > 0 {
			r.Unbound = append(r.Unbound, unboundStatus{Group: g.Name, TargetGroup: g.ARN, Targets: n})
		}
	}
}

// past adds what only the audit log knows. The error is what could not be read of
// a log that is there.
func (r *statusResult) past(ctx context.Context, log auditLog, now time.Time, expected []string) error {
	if log == nil {
		return nil
	}
	p := &past{log: log, now: now}
	err := p.read(ctx, expected)
	r.Webhooks, r.Resync, r.LastChange = append(r.Webhooks, p.webhooks...), p.resync, p.last
	r.Notes = append(r.Notes, p.notes...)
	switch {
	case errors.Is(err, audit.ErrNoLog): // nobody has to keep one
		r.Notes = append(r.Notes, fmt.Sprintf("what changed last and what is silent: %v (docs/history.md)", audit.ErrNoLog))
		return nil
	case err != nil && !errors.Is(err, audit.ErrIncomplete): // of which notes tell
		r.Notes = append(r.Notes, fmt.Sprintf("what changed last and what is silent: %v", err))
	}
	return err
}
