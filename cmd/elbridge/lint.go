package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/rulefile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// lintOptions are the flags of `elbridge lint`.
type lintOptions struct {
	shared        *shared
	cluster       clusterFlags
	files         []string
	queue, output string
	groups        bool
	strict        bool
	list          bool
	unread        []error // groups that could not be read
}

// lintResult is what `elbridge lint` says.
type lintResult struct {
	lint.Report
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
}

func lintCommand(s *shared) *cobra.Command {
	o := &lintOptions{shared: s}
	cmd := &cobra.Command{
		Use: "lint [-f FILE]... | lint OLD NEW", Short: "Say what is wrong or risky with rules, and what to do about it", Args: cobra.MaximumNArgs(2),
		Long: `Lint judges the rules of a bus, or those in files, without changing anything.

A file holds rules as "aws events list-rules" writes them with "Targets" added to each,
a CloudFormation template (of CDK too), Terraform's JSON, or bindings.yaml; its content
says which. With two operands, OLD and NEW, it also says which rules vanished although
their groups were not drained; each is a file, or bus:NAME for the rules of a bus.

Target groups are looked at in AWS for the rules of a bus, and for those of files with
--groups. Pods are looked at with --kubeconfig or --eks-cluster.

Exit codes: 0 nothing found that counts, 1 something could not be read (what could be is
judged all the same), 2 errors were found, or with --strict warnings.`,
		Example: `  elbridge lint
  elbridge lint -f cdk.out/Web.template.json --strict
  elbridge lint bus:elbridge cdk.out/Web.template.json
  elbridge lint --eks-cluster prod -o json | jq -r '.findings[].check'`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil, "rules in a file, - is stdin; may be given several times")
	f.StringArrayVar(&o.files, "template", nil, "the same as --file")
	f.StringVar(&o.queue, "queue", "", "ARN of the registrar's queue (default: the one that the rules name)")
	f.BoolVar(&o.groups, "groups", false, "look at the target groups of rules in files too")
	f.BoolVar(&o.strict, "strict", false, "exit with 2 for warnings as well")
	f.BoolVar(&o.list, "list", false, "list what is looked at")
	outputFlag(cmd, &o.output, formats...)
	o.cluster.add(cmd)
	return cmd
}

func (o *lintOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	if err := checkOutput(o.output, formats...); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if o.list {
		return write(out, o.output, lint.Checks(), checkTable)
	}
	if len(args) == 1 {
		return errors.New("want OLD and NEW to compare, or files with -f")
	}
	if len(args) == 2 && len(o.files) > 0 {
		return errors.New("want OLD and NEW or -f, not both")
	}
	report, err := o.judge(ctx, cmd.InOrStdin(), args)
	if err != nil {
		return err
	}
	unread := errors.Join(o.unread...)
	r := lintResult{Report: report, Errors: report.Count(lint.Error), Warnings: report.Count(lint.Warning), Infos: report.Count(lint.Info)}
	if err := write(out, o.output, r, r.table); err != nil {
		return err
	}
	if unread != nil {
		return unread
	}
	if r.Errors > 0 || o.strict && r.Warnings > 0 {
		return errFindings
	}
	return nil
}

// judge reads what is to be judged, and judges it.
func (o *lintOptions) judge(ctx context.Context, stdin io.Reader, args []string) (lint.Report, error) {
	if len(args) == 2 {
		before, err := o.source(ctx, stdin, args[0], true)
		if err != nil {
			return lint.Report{}, err
		}
		after, err := o.source(ctx, stdin, args[1], true)
		if err != nil {
			return lint.Report{}, err
		}
		report := lint.Run(after)
		report.Findings = append(lint.Compare(before, after).Findings, report.Findings...)
		return report, nil
	}
	if len(o.files) == 0 {
		in, err := o.source(ctx, stdin, "bus:"+o.shared.bus, false)
		if err != nil {
			return lint.Report{}, err
		}
		return lint.Run(in), nil
	}
	all := lint.Input{Queue: o.queue, Groups: map[string]lint.Group{}}
	for _, f := range o.files {
		in, err := o.source(ctx, stdin, f, false)
		if err != nil {
			return lint.Report{}, err
		}
		all.Rules = append(all.Rules, in.Rules...)
		maps.Copy(all.Groups, in.Groups)
		all.Clusters, all.Pods, all.Annotations, all.At = in.Clusters, in.Pods, in.Annotations, in.At
	}
	return lint.Run(all), nil
}

// source reads rules from a file or, as bus:NAME, from a bus, with what else was
// asked for. drained says that it matters whether groups hold targets.
func (o *lintOptions) source(ctx context.Context, stdin io.Reader, name string, drained bool) (lint.Input, error) {
	in := lint.Input{Queue: o.queue, Groups: map[string]lint.Group{}, Annotations: o.cluster.allowList(), At: time.Now()}
	busName, live := strings.CutPrefix(name, "bus:")
	var sdk aws.Config
	var err error
	if live || o.groups || o.cluster.given() {
		if sdk, err = o.sdk(ctx, live || o.groups); err != nil {
			return in, err
		}
	}
	if live {
		in.Rules, err = readRules(ctx, bus.NewRules(eventbridge.NewFromConfig(sdk), busName))
	} else {
		in.Rules, in.Groups, err = readFile(name, stdin)
	}
	if err != nil {
		return in, err
	}
	bs, _ := bindingsOf(in.Rules, o.queue) // faults are lint's to tell
	if live || o.groups {
		accounts := &targetgroup.Accounts{AWS: sdk}
		groups, unread := readGroups(ctx, realGroups(bs), func(b *binding.Binding) groupReader { return accounts.For(b) }, drained)
		if unread != nil {
			o.unread = append(o.unread, unread)
		}
		maps.Copy(in.Groups, facts(groups))
	}
	if o.cluster.given() {
		err = o.pods(ctx, sdk, bs, &in)
	}
	return in, err
}

// sdk is the AWS configuration; a kubeconfig alone needs none.
func (o *lintOptions) sdk(ctx context.Context, needed bool) (aws.Config, error) {
	if !needed && o.cluster.eks == "" {
		return aws.Config{}, nil
	}
	return o.shared.aws(ctx)
}

// realGroups leaves out what only a deployment makes.
func realGroups(bs []binding.Binding) []binding.Binding {
	var out []binding.Binding
	for _, b := range bs {
		if !lint.MadeUp(b.Group.ARN) {
			out = append(out, b)
		}
	}
	return out
}

func (o *lintOptions) pods(ctx context.Context, sdk aws.Config, bs []binding.Binding, in *lint.Input) error {
	name, err := o.cluster.clusterName(bs)
	if err != nil {
		return err
	}
	c, err := o.cluster.client(sdk, name)
	if err != nil {
		return err
	}
	pods, err := c.Inspect(ctx, "", "")
	if err != nil {
		return err
	}
	in.Clusters = []string{name}
	for _, p := range pods {
		in.Pods = append(in.Pods, lint.Pod{Cluster: name, Pod: p.Pod, TerminationGracePeriod: p.TerminationGracePeriod})
	}
	return nil
}

func readFile(name string, stdin io.Reader) ([]lint.Rule, map[string]lint.Group, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := readAll(name, in, rulefile.MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	if name == "-" {
		name = "stdin"
	}
	file, err := rulefile.Parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	groups := file.Groups
	if groups == nil {
		groups = map[string]lint.Group{}
	}
	return file.Rules, groups, nil
}

func checkTable(w io.Writer) {
	row(w, "CHECK", "SEVERITY", "MEANING")
	for _, m := range lint.Checks() {
		row(w, string(m.Check), string(m.Severity), m.Meaning)
	}
}

// table writes two lines for a finding: what is so, and what to do.
func (r lintResult) table(w io.Writer) {
	if len(r.Findings) > 0 {
		row(w, "SEVERITY", "RULE", "CHECK", "WHAT")
	}
	for _, f := range r.Findings {
		rule := f.Rule
		if f.Target != "" && f.Target != "registrar" {
			rule += "/" + f.Target
		}
		what := f.Message
		if f.Path != "" {
			what = f.Path + ": " + what
		}
		if f.Place != "" {
			what = f.Place + ": " + what
		}
		row(w, string(f.Severity), rule, string(f.Check), what)
		if f.Fix != "" {
			_, _ = fmt.Fprintf(w, "\t\t\t→ %s\n", f.Fix) // the table's writer keeps the error
		}
	}
	_, _ = fmt.Fprintf(w, "%s, %s: %s, %s, %s\n", count(r.Rules, "rule"), count(r.Bindings, "binding"),
		count(r.Errors, "error"), count(r.Warnings, "warning"), count(r.Infos, "note"))
}

// count writes "1 rule", "2 rules".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
