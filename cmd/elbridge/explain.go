package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/explain"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/podevent"
)

func explainCommand(s *shared) *cobra.Command {
	o := &viewOptions{shared: s}
	var namespace, target string
	cmd := &cobra.Command{
		Use: "explain POD | explain --target GROUP IP:PORT", Short: "Say why a pod, or a target, is in a target group or not",
		Args: operands("one POD, or with --target GROUP one IP:PORT", 1),
		Long: `Explain says for a pod what each binding makes of it: whether the pattern matches, or the
first condition that fails with the value seen; the target that the pod claims, or why it
claims none; and the state of that target in the load balancer. With --target it goes the
other way: which pod has this address, what claims the target, and what becomes of it. The
last change and its cause are from the audit log of the last 24 hours, if there is one
(docs/history.md); elbridge history says more.

The cluster is that of --kubeconfig, --eks-cluster, or the one that kubectl would use.

Exit codes: 0 explained, whatever it is that was found; 1 an error.`,
		Example: `  elbridge explain skipper-b75fbc44f-w6l8w -n ingress
  elbridge explain ingress/skipper-b75fbc44f-w6l8w
  elbridge explain --target ingress 10.64.1.6:9999`,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := o.view(cmd.Context())
			if err != nil {
				return err
			}
			if target != "" {
				return o.explainTarget(cmd.Context(), cmd.OutOrStdout(), v, target, args[0])
			}
			return o.explainPod(cmd.Context(), cmd.OutOrStdout(), v, namespace, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVarP(&namespace, "namespace", "n", "default", "the pod's namespace")
	f.StringVar(&target, "target", "", "a target group, name or ARN: explain a target of it, IP:PORT")
	cmd.MarkFlagsMutuallyExclusive("namespace", "target")
	logGroupFlag(cmd, &o.logGroup)
	o.add(cmd)
	return cmd
}

// clusterOf reads rules and groups, and connects to the cluster.
func (o *viewOptions) clusterOf(ctx context.Context, v *view) (*explain.World, podReader, error) {
	if v.pods == nil {
		return nil, nil, errors.New("no cluster: give --kubeconfig or --eks-cluster, or set KUBECONFIG")
	}
	w, _, err := o.world(ctx, v) // a group that was not read is told where it matters
	if err != nil {
		return nil, nil, err
	}
	if w.Cluster, err = o.cluster.clusterName(w.Bindings); err != nil {
		return nil, nil, err
	}
	c, err := v.pods(w.Cluster)
	return w, c, err
}

func (o *viewOptions) explainPod(ctx context.Context, out io.Writer, v *view, namespace, name string) error {
	if ns, n, ok := strings.Cut(name, "/"); ok {
		namespace, name = ns, n
	}
	w, c, err := o.clusterOf(ctx, v)
	if err != nil {
		return err
	}
	p, err := c.Pod(ctx, namespace, name)
	if errors.Is(err, cluster.ErrNotFound) {
		return fmt.Errorf("cluster %s has no pod %s/%s; what became of its address says: elbridge explain --target GROUP IP:PORT", w.Cluster, namespace, name)
	}
	if err != nil {
		return err
	}
	a, err := w.Pod(p)
	if err != nil {
		return err
	}
	a.LastCause = lastChange(ctx, v.log, w.At, p.PodIPs, func(e entry) bool { return e.UID == p.UID || e.UID == "" })
	return write(out, o.output, a, func(w io.Writer) { podTable(w, a) })
}

func podTable(w io.Writer, a explain.PodAnswer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // the table's writer keeps the error
	line("pod %s of cluster %s: %s", a.Pod, a.Cluster, a.State)
	line("addresses %s, node %s", orDash(strings.Join(a.PodIPs, ", ")), orDash(a.Node))
	for _, v := range a.Bindings {
		line("")
		verdictLines(line, v)
	}
	if len(a.Bindings) == 0 {
		line("\nno bindings on the bus")
	}
	tail(line, a.Invalid, a.LastCause)
}

// verdictLines writes a binding's verdict.
func verdictLines(line func(string, ...any), v explain.Verdict) {
	rule := v.Rule
	if v.Target != "registrar" {
		rule += "/" + v.Target
	}
	if !v.Selected {
		line("rule %s → group %s: not selected", rule, v.Group)
		line("  %s", v.Reason)
		return
	}
	line("rule %s → group %s: selected", rule, v.Group)
	line("  %s", v.Reason)
	switch {
	case v.Claim != "":
		line("  claims %s: %s%s", v.Claim, v.State, inBrackets(v.StateReason))
	case v.Refusal != "":
		line("  claims nothing: %s", v.Refusal)
	default:
		line("  the group was not read%s", inBrackets(v.StateReason))
	}
	if len(v.Stale) > 0 {
		line("  the group also holds %s", strings.Join(v.Stale, ", "))
	}
	if v.Note != "" {
		line("  %s", v.Note)
	}
}

func tail(line func(string, ...any), invalid []string, cause string) {
	if len(invalid) > 0 {
		line("\nthese cover nothing, since they can't be understood:")
		for _, f := range invalid {
			line("  %s", f)
		}
	}
	line("\nlast change: %s", cause)
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (o *viewOptions) explainTarget(ctx context.Context, out io.Writer, v *view, group, key string) error {
	k, err := explain.ParseKey(key)
	if err != nil {
		return err
	}
	w, c, err := o.clusterOf(ctx, v)
	if err != nil {
		return err
	}
	ref := binding.GroupRef{Name: group}
	if strings.HasPrefix(group, "arn:") {
		ref = binding.GroupRef{ARN: group}
	}
	g, err := readGroup(ctx, v.groups(accountOf(w, ref)), ref, true)
	if err != nil {
		return fmt.Errorf("target group %s: %w", group, err)
	}
	if g.Problem != lint.Known {
		return fmt.Errorf("target group %s: %s", group, g.Problem)
	}
	pods, err := podsAt(ctx, c, k)
	if err != nil {
		return err
	}
	a, err := w.Target(g, k, pods)
	if err != nil {
		return err
	}
	a.LastCause = lastChange(ctx, v.log, w.At, []string{k.ID}, func(e entry) bool { return e.port == k.Port && e.TargetGroup == g.ARN })
	return write(out, o.output, a, func(w io.Writer) { targetTable(w, a) })
}

// accountOf is a binding of the group, whose role may be needed to look at it.
func accountOf(w *explain.World, ref binding.GroupRef) *binding.Binding {
	for i := range w.Bindings {
		b := &w.Bindings[i]
		if ref.ARN != "" && b.Group.ARN == ref.ARN || ref.Name != "" && lint.GroupName(b.Group) == ref.Name {
			return b
		}
	}
	return &binding.Binding{Group: ref}
}

// podsAt returns the pods with the key's address. The API server finds them by
// their first address; for a second one all pods are read.
func podsAt(ctx context.Context, c podReader, k claim.Key) ([]*podevent.Pod, error) {
	pods, err := c.PodsByIP(ctx, k.ID)
	if err != nil || len(pods) > 0 {
		return pods, err
	}
	all, err := c.Inspect(ctx, "", "")
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if slices.Contains(p.PodIPs, k.ID) {
			pods = append(pods, p.Pod)
		}
	}
	return pods, nil
}

func targetTable(w io.Writer, a explain.TargetAnswer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // the table's writer keeps the error
	line("target %s of group %s: %s%s", a.Target, a.Group, a.State, inBrackets(a.StateReason))
	line("%s", a.Conclude)
	line("rules of the group: %s", orDash(strings.Join(a.Rules, ", ")))
	if len(a.Pods) == 0 {
		line("no pod has this address")
	}
	for _, p := range a.Pods {
		line("\npod %s", p.Pod)
		verdictLines(line, p.Verdict)
	}
	tail(line, a.Invalid, a.LastCause)
}
