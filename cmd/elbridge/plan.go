package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/preview"
)

// planOptions are the flags of `elbridge plan`.
type planOptions struct {
	livingOptions
	live bool
	same map[string]string // --group
	// rulesOf reads the rules of a bus.
	rulesOf func(ctx context.Context, name string) (ruleReader, error)
}

// planResult is what `elbridge plan` says.
type planResult struct {
	Old     string               `json:"old"`
	New     string               `json:"new"`
	Live    bool                 `json:"live"` // living groups were looked at
	Cluster string               `json:"cluster,omitempty"`
	Rules   []preview.RuleChange `json:"rules"`
	Invalid []string             `json:"invalid,omitempty"` // rules of NEW that can't be understood: they cover nothing
	Groups  []preview.Effect     `json:"groups,omitempty"`  // those that changed rules name
	// Notes say what was taken for granted, as which group a template means.
	Notes []string `json:"notes,omitempty"`
}

func planCommand(s *shared) *cobra.Command {
	o := &planOptions{livingOptions: livingOptions{viewOptions: viewOptions{shared: s}}}
	o.rulesOf = o.busRules
	cmd := &cobra.Command{
		Use: "plan OLD NEW [--live]", Short: "Show what a change of rules does to living target groups",
		Args: operands("OLD and NEW, each a file, bus or bus:NAME", 2),
		Long: `Plan compares two sets of rules. Each of OLD and NEW is a file (rules as "aws events list-rules"
writes them with "Targets" added to each, a CloudFormation template, Terraform's JSON, or
bindings.yaml; - is stdin), or bus, or bus:NAME for the rules of a bus. Who owns a group is
judged by that bus, else by --bus.

With --live it reads the pods and the living groups that changed rules name, and says what each
group would gain and lose, what would be held for want of a second witness, and as which plan,
and what goes in steps under "empty":true. What differs under OLD already is not the change's
doing; it is counted apart. Where something was not read that a group depends on, nothing is
said to be lost: it is not known. Without --live only the texts are compared; elbridge lint OLD
NEW judges them too.

A template's group is found by the name that the template gives it, by the rule of the same name
on the other side, or by --group NAME=ARN, with the name it has in the template.

Exit codes: 0 nothing is removed or held, 2 something is, or a group would be left to nobody,
1 an error, or it is not known what becomes of a group. Without --live: 0, or 1 for an error.`,
		Example: `  elbridge plan bus bindings.yaml --live --eks-cluster prod
  elbridge plan bus:elbridge cdk.out/Web.template.json --live --kubeconfig prod.yaml -o json
  elbridge plan old.yaml new.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, unread, err := o.plan(cmd.Context(), cmd.InOrStdin(), args[0], args[1], o.living)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), o.output, r, r.table); err != nil {
				return err
			}
			return r.exit(unread)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.live, "live", false, "look at the living groups and the pods of a cluster")
	f.StringToStringVar(&o.same, "group", nil, "the living group that a template's name means, NAME=ARN; may be given several times")
	o.add(cmd)
	return cmd
}

func (o *planOptions) busRules(ctx context.Context, name string) (ruleReader, error) {
	sdk, err := o.shared.aws(ctx)
	if err != nil {
		return nil, err
	}
	return bus.NewRules(eventbridge.NewFromConfig(sdk), name), nil
}

// plan reads both sides and compares them; unread says what could not be read.
func (o *planOptions) plan(ctx context.Context, stdin io.Reader, old, new string, open func(context.Context) (*living, error)) (r planResult, unread, err error) {
	r = planResult{Old: old, New: new, Live: o.live, Rules: []preview.RuleChange{}}
	if err := checkOutput(o.output, formats...); err != nil {
		return r, nil, err
	}
	if old == "-" && new == "-" {
		return r, nil, errors.New("OLD and NEW can't both be stdin")
	}
	before, err := o.side(ctx, stdin, old)
	if err != nil {
		return r, nil, err
	}
	after, err := o.side(ctx, stdin, new)
	if err != nil {
		return r, nil, err
	}
	for _, f := range after.faults {
		r.Invalid = append(r.Invalid, f.Error())
	}
	if !o.live {
		r.Rules = append(r.Rules, preview.Rules(before.bindings, after.bindings)...)
		return r, nil, nil
	}
	l, err := open(ctx)
	if err != nil {
		return r, nil, err
	}
	unread, err = o.compare(ctx, l, before, after, &r)
	return r, unread, err
}

// compare is the part of a plan that looks at what lives.
func (o *planOptions) compare(ctx context.Context, l *living, before, after *side, r *planResult) (unread, err error) {
	if err := needsCluster(l); err != nil {
		return nil, err
	}
	b, err := l.bus(ctx)
	if err != nil {
		return nil, err
	}
	l.survey.busARN = b.arn
	notes := meant(before, after, o.same)
	all := append(before.lookups(), after.lookups()...)
	groups, err := l.survey.facts(ctx, all, false)
	if err != nil {
		return nil, err
	}
	was, more := before.living(groups)
	now, again := after.living(groups)
	r.Notes = unique(append(append(notes, more...), again...))
	now.Unclear = append(now.Unclear, brokenNow(before, after)...)
	r.Rules = append(r.Rules, preview.Rules(before.named(groups), after.named(groups))...)
	if groups.unread != nil && nameless(r.Rules, was.Bindings, now.Bindings) {
		unread = errors.Join(groups.unread...) // where a group is known, it is told of the group
	}
	touched := preview.Touched(was.Bindings, now.Bindings)
	if len(touched) == 0 {
		return unread, nil
	}
	if err := l.survey.targets(ctx, groups, all, touched); err != nil {
		return nil, err
	}
	w, err := o.world(ctx, l, b, append(was.Bindings, now.Bindings...), groups)
	if err != nil {
		return nil, err
	}
	r.Cluster = w.Read[0]
	r.Groups, err = w.Compare(was, now)
	return unread, err
}

// nameless reports whether a changed rule names a group of which not even the ARN
// was read.
func nameless(changes []preview.RuleChange, sides ...[]binding.Binding) bool {
	changed := map[string]bool{}
	for _, c := range changes {
		changed[c.Rule] = true
	}
	for _, bs := range sides {
		for i := range bs {
			if bs[i].Group.ARN == "" && changed[preview.RuleName(bs[i].Rule)] {
				return true
			}
		}
	}
	return false
}

// exit is how the command ends, by what was found.
func (r planResult) exit(unread error) error {
	if unread != nil {
		return unread
	}
	var unknown []error
	removes := false
	for i := range r.Groups {
		g := &r.Groups[i]
		if !g.Known() {
			unknown = append(unknown, fmt.Errorf("group %s: what becomes of it is not known: %s", g.Name, strings.Join(g.Unknown, ", ")))
		}
		removes = removes || g.Removes()
	}
	switch {
	case len(unknown) > 0:
		return errors.Join(unknown...)
	case removes:
		return errFindings
	}
	return nil
}

func (r planResult) table(w io.Writer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // the table's writer keeps the error
	for _, c := range r.Rules {
		var kinds []string
		for _, k := range c.Changes {
			kinds = append(kinds, string(k))
		}
		line("rule %s: %s", c.Rule, strings.Join(kinds, ", "))
		for _, d := range c.Details {
			line("  %s", d)
		}
	}
	if len(r.Rules) == 0 {
		line("no rule changes")
	}
	for _, f := range r.Invalid {
		line("covers nothing: %s", f)
	}
	for i := range r.Groups {
		line("")
		effectLines(line, &r.Groups[i])
	}
	for _, n := range r.Notes {
		line("note: %s", n)
	}
	if !r.Live {
		line("only texts were compared: --live looks at the living groups, elbridge lint OLD NEW judges the texts")
	}
}

// effectLines writes what becomes of one group.
func effectLines(line func(string, ...any), e *preview.Effect) {
	switch {
	case e.Nothing():
		line("group %s: stays as it is", e.Name)
	case !e.Known():
		line("group %s: not known: %s; gains %d, and of its targets %d are claimed by no pod that was read", e.Name, strings.Join(e.Unknown, ", "), e.Gain, e.Unjudged)
	default:
		line("group %s: gains %d, loses %d, %d held, %d later", e.Name, e.Gain, e.Lose, e.Hold, len(e.Later))
	}
	keyLines(line, "+ register", e.Gained)
	keyLines(line, "- deregister", e.Lost)
	keyLines(line, "~ later, in steps", e.Later)
	keyLines(line, "= hold", e.Held)
	keyLines(line, "  keep", e.Kept)
	keyLines(line, "? would register", e.WouldGain)
	keyLines(line, "? would deregister", e.WouldLose)
	if e.Hash != "" {
		line("  the held plan is %s; once it is held: %s", e.Hash, approval(e.TargetGroup, e.Hash))
	}
	if e.Orphaned > 0 {
		line("  ! no rule names it any more: its %s stay, and nobody removes them; deploy \"empty\":true first", count(e.Orphaned, "target"))
	}
	if e.Standing > 0 {
		line("  %s already, whatever the change", count(e.Standing, "difference"))
	}
}

// approval is the command that lets a held plan go.
func approval(group, hash string) string {
	return fmt.Sprintf("elbridge resync --group %s --approve %s --reason WHY", group, hash)
}
