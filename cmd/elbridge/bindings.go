package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/explain"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// viewOptions are the flags of commands that look at rules, groups and pods.
type viewOptions struct {
	shared        *shared
	cluster       clusterFlags
	queue, output string
	logGroup      string // of the audit log; "" reads none
}

func (o *viewOptions) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.queue, "queue", "", "ARN of the registrar's queue (default: the one that the rules name)")
	outputFlag(cmd, &o.output, formats...)
	o.cluster.add(cmd)
}

// view is what such a command reads from.
type view struct {
	rules  ruleReader
	groups func(*binding.Binding) groupReader
	// pods makes the reader of the cluster, given its name in events; nil if none
	// was asked for.
	pods   func(name string) (podReader, error)
	survey *surveyor // reads many groups
	// log is the audit log; nil if it is not read.
	log auditLog
}

func (o *viewOptions) view(ctx context.Context) (*view, error) {
	if err := checkOutput(o.output, formats...); err != nil {
		return nil, err
	}
	o.cluster.orDefault(os.Getenv)
	sdk, err := o.shared.aws(ctx)
	if err != nil {
		return nil, err
	}
	accounts := &targetgroup.Accounts{AWS: sdk}
	v := &view{
		rules:  bus.NewRules(eventbridge.NewFromConfig(sdk), o.shared.bus),
		groups: func(b *binding.Binding) groupReader { return accounts.For(b) },
	}
	v.survey = &surveyor{home: targetgroup.New(elb.NewFromConfig(sdk)), from: v.groups, pace: newPace()}
	if o.cluster.given() {
		v.pods = o.podReader(sdk)
	}
	if o.logGroup != "" {
		v.log = newAuditLog(sdk, o.logGroup)
	}
	return v, nil
}

func (o *viewOptions) podReader(sdk aws.Config) func(string) (podReader, error) {
	return func(name string) (podReader, error) { return o.cluster.client(sdk, name) }
}

// world reads the rules, and what groups their bindings name; unread says which
// of these could not be read.
func (o *viewOptions) world(ctx context.Context, v *view) (w *explain.World, unread, err error) {
	rules, err := readRules(ctx, v.rules)
	if err != nil {
		return nil, nil, err
	}
	w = &explain.World{Annotations: o.cluster.allowList(), At: time.Now()}
	w.Bindings, w.Faults = bindingsOf(rules, o.queue)
	if len(rules) > 0 {
		v.survey.busARN = rules[0].ARN // of the bus's account and region
	}
	groups, err := v.survey.facts(ctx, w.Bindings, false)
	if err != nil {
		return nil, nil, err
	}
	if err := v.survey.targets(ctx, groups, w.Bindings, nil); err != nil {
		return nil, nil, err
	}
	w.Groups = groups.byRef
	return w, errors.Join(groups.unread...), ctx.Err()
}

// bindingsResult is what `elbridge bindings` says.
type bindingsResult struct {
	Bus      string        `json:"bus"`
	Cluster  string        `json:"cluster,omitempty"` // whose pods were read
	Bindings []explain.Row `json:"bindings"`
}

func bindingsCommand(s *shared) *cobra.Command {
	o := &viewOptions{shared: s}
	cmd := &cobra.Command{
		Use: "bindings", Short: "Show the rules of a bus with their groups, pods, targets and drift", Args: cobra.NoArgs,
		Long: `Bindings shows a line for each binding of the bus: the pods that it selects, the targets
they claim under it, what its group holds (without what drains), and how the two differ:
+n claimed and not registered, -n registered and not claimed. A tilde says that rules of
the group cover clusters which were not read: what is extra may be theirs.

Pods are read from --kubeconfig, --eks-cluster, or the cluster that kubectl would use;
without one their columns stay empty.

Exit codes: 0 all was read, 1 something was not; what was read is shown.`,
		Example: `  elbridge bindings
  elbridge bindings --eks-cluster prod -o json | jq '.bindings[] | select(.missing)'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := o.view(cmd.Context())
			if err != nil {
				return err
			}
			r, unread, err := o.bindings(cmd.Context(), v)
			if err != nil {
				return err
			}
			return errors.Join(write(cmd.OutOrStdout(), o.output, r, r.table), unread)
		},
	}
	o.add(cmd)
	return cmd
}

func (o *viewOptions) bindings(ctx context.Context, v *view) (r bindingsResult, unread, err error) {
	r.Bus = o.shared.bus
	w, unread, err := o.world(ctx, v)
	if err != nil {
		return r, nil, err
	}
	var pods []*podevent.Pod
	if v.pods != nil {
		if w.Cluster, err = o.cluster.clusterName(w.Bindings); err != nil {
			return r, nil, err
		}
		if pods, err = allPods(ctx, v, w.Cluster); err != nil {
			return r, nil, err
		}
		r.Cluster = w.Cluster
	}
	r.Bindings, err = w.Overview(pods)
	return r, unread, err
}

// allPods lists the cluster's pods; never nil.
func allPods(ctx context.Context, v *view, name string) ([]*podevent.Pod, error) {
	c, err := v.pods(name)
	if err != nil {
		return nil, err
	}
	listed, err := c.Inspect(ctx, "", "")
	if err != nil {
		return nil, err
	}
	pods := make([]*podevent.Pod, 0, len(listed))
	for _, p := range listed {
		pods = append(pods, p.Pod)
	}
	return pods, nil
}

func (r bindingsResult) table(w io.Writer) {
	if len(r.Bindings) == 0 {
		_, _ = fmt.Fprintf(w, "no bindings on bus %s\n", r.Bus) // the table's writer keeps the error
		return
	}
	row(w, "RULE", "GROUP", "STATE", "PODS", "CLAIMS", "TARGETS", "HEALTHY", "DRAINING", "DRIFT", "NOTE")
	for _, b := range r.Bindings {
		rule := b.Rule
		if b.Target != "" && b.Target != "registrar" {
			rule += "/" + b.Target
		}
		row(w, rule, b.Group, b.State, number(b.Pods), number(b.Claims), number(b.Targets), number(b.Healthy), number(b.Draining), driftCell(b), b.Note)
	}
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// driftCell is "0", "+2", "-1", "+2 -1", or nothing where it is not known.
func driftCell(b explain.Row) string {
	if b.Claims == nil || b.Targets == nil {
		return ""
	}
	var out []string
	if n := len(b.Missing); n > 0 {
		out = append(out, fmt.Sprintf("+%d", n))
	}
	if n := len(b.Extra); n > 0 {
		s := fmt.Sprintf("-%d", n)
		if b.Partial {
			s += "~"
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return "0"
	}
	return strings.Join(out, " ")
}
