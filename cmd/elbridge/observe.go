package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/preview"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

func observeCommand(s *shared) *cobra.Command {
	cmd := &cobra.Command{Use: "observe", Short: "Look at bindings in mode observe", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(observeReportCommand(s))
	return cmd
}

// observeResult is what `elbridge observe report` says.
type observeResult struct {
	Bus     string `json:"bus"`
	Cluster string `json:"cluster"`
	// Agrees is true if changing every reported binding to manage changes nothing.
	Agrees   bool             `json:"agrees"`
	Bindings []preview.Report `json:"bindings"`
	Invalid  []string         `json:"invalid,omitempty"` // rules that cover nothing
}

func observeReportCommand(s *shared) *cobra.Command {
	o := &livingOptions{viewOptions: viewOptions{shared: s}}
	var all bool
	cmd := &cobra.Command{
		Use: "report", Short: "Say what bindings in mode observe would change if they managed", Args: cobra.NoArgs,
		Long: `Report compares each binding in mode observe with its living group: which targets it would
register, deregister or hold if it managed, each with its pod and the reason. Taking over is
one constant ("mode":"manage"): where a binding agrees, that changes nothing.

It compares what is there now, and so knows no pod events: a removal that an event would
witness is shown as held. A removal of which nobody knows whose target it was waits until all
rules of the group manage. Where the pods of a cluster that a rule covers were not read,
nothing is said to be removed.

The cluster is that of --kubeconfig, --eks-cluster, or the one that kubectl would use.

Exit codes: 0 they agree, 2 something would change, 1 something was not read.`,
		Example: `  elbridge observe report --eks-cluster prod
  elbridge observe report --all -o json | jq '.bindings[] | select(.deregister)'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := o.living(cmd.Context())
			if err != nil {
				return err
			}
			r, unread, err := o.observeReport(cmd.Context(), l, all)
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), o.output, r, r.table); err != nil {
				return err
			}
			return r.exit(unread)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "bindings that manage too: what is not done yet, or held")
	o.add(cmd)
	return cmd
}

// observeReport reads and compares; unread says what could not be read.
func (o *livingOptions) observeReport(ctx context.Context, l *living, all bool) (r observeResult, unread, err error) {
	r.Bus = o.shared.bus
	if err := needsCluster(l); err != nil {
		return r, nil, err
	}
	b, err := l.bus(ctx)
	if err != nil {
		return r, nil, err
	}
	l.survey.busARN = b.arn
	rules, err := readRules(ctx, l.rules)
	if err != nil {
		return r, nil, err
	}
	bs, faults := bindingsOf(rules, o.queue)
	for _, f := range faults {
		r.Invalid = append(r.Invalid, f.Error())
	}
	groups, err := l.survey.facts(ctx, bs, false)
	if err != nil {
		return r, nil, err
	}
	if err := l.survey.targets(ctx, groups, bs, observed(withARNs(bs, groups), all)); err != nil {
		return r, nil, err
	}
	w, err := o.world(ctx, l, b, bs, groups)
	if err != nil {
		return r, nil, err
	}
	r.Cluster = w.Read[0]
	ps, err := w.Plans(preview.Side{Bindings: withARNs(bs, groups), Maybe: maybe(rules, bs, faults, groups)})
	if err != nil {
		return r, nil, err
	}
	r.Bindings = preview.Reports(ps, all)
	r.Agrees = true
	for i := range r.Bindings {
		r.Agrees = r.Agrees && r.Bindings[i].Agrees()
	}
	if observed(withARNs(bs, groups), all)[""] { // else it is told of the group
		unread = errors.Join(groups.unread...)
	}
	return r, unread, nil
}

// observed are the groups of bindings in mode observe, or of all.
func observed(bs []binding.Binding, all bool) map[string]bool {
	out := map[string]bool{}
	for i := range bs {
		if all || bs[i].Mode == binding.Observe {
			out[bs[i].Group.ARN] = true
		}
	}
	return out
}

// exit is how the command ends, by what was found.
func (r observeResult) exit(unread error) error {
	if unread != nil {
		return unread
	}
	var unknown []error
	differs := false
	for i := range r.Bindings {
		b := &r.Bindings[i]
		if len(b.Unknown) > 0 {
			unknown = append(unknown, fmt.Errorf("group %s: not known: %s", b.Name, strings.Join(b.Unknown, ", ")))
		}
		differs = differs || !b.Agrees()
	}
	switch {
	case len(unknown) > 0:
		return errors.Join(unknown...)
	case differs:
		return errFindings
	}
	return nil
}

func (r observeResult) table(w io.Writer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // the table's writer keeps the error
	if len(r.Bindings) == 0 {
		line("no binding of bus %s is in mode observe", r.Bus)
	}
	for i := range r.Bindings {
		b := &r.Bindings[i]
		line("rule %s → group %s, mode %s: %s", b.Rule, b.Name, b.Mode, verdictOf(b))
		keyLines(line, "register", b.Register)
		keyLines(line, "deregister", b.Deregister)
		keyLines(line, "later, in steps", b.Later)
		keyLines(line, "hold", b.Held)
		if b.Hash != "" {
			line("  the held plan is %s", b.Hash)
		}
		if b.Waits > 0 {
			line("  %s when every rule of the group manages: nobody knows whose they were", count(b.Waits, "removal"))
		}
	}
	for _, f := range r.Invalid {
		line("covers nothing: %s", f)
	}
}

// verdictOf is a binding's report in a few words.
func verdictOf(b *preview.Report) string {
	switch {
	case len(b.Unknown) > 0:
		return fmt.Sprintf("not known: %s; of its targets %d are claimed by no pod that was read", strings.Join(b.Unknown, ", "), b.Unjudged)
	case b.Agrees():
		return "agrees: managing it changes nothing"
	case b.Mode == binding.Manage:
		return "not done yet"
	default:
		return "would change"
	}
}

// shownKeys bounds the targets of one list that a table shows: -o json has all.
const shownKeys = 10

// keyLines writes what is done with targets, one a line.
func keyLines(line func(string, ...any), what string, ks []targetevent.Key) {
	for i, k := range ks {
		if i == shownKeys {
			line("  %s: and %d more", what, len(ks)-shownKeys)
			return
		}
		text := target(k)
		if k.Pod != "" {
			text += " pod " + k.Pod
		}
		if k.Witness != "" {
			text += " (witness " + k.Witness + ")"
		}
		line("  %s %s: %s", what, text, k.Reason)
	}
}
