package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
)

// freezing is what became of the freeze of a bus or a target group.
type freezing struct {
	Resource string `json:"resource"`         // ARN
	Frozen   bool   `json:"frozen"`           // afterwards; in a dry run what it would be
	Tag      string `json:"tag,omitempty"`    // what the freeze tag says afterwards
	Before   string `json:"before,omitempty"` // what it said until now
	Changed  bool   `json:"changed"`          // false if it was so already, or in a dry run
	DryRun   bool   `json:"dryRun,omitempty"`
}

// freezeOptions are the flags of `elbridge freeze` and `elbridge unfreeze`.
type freezeOptions struct {
	shared                *shared
	group, reason, output string
	dryRun                bool
}

func freezeCommand(s *shared) *cobra.Command {
	o := &freezeOptions{shared: s}
	cmd := &cobra.Command{
		Use: "freeze", Short: "Stop removals from all target groups of the bus, or from one group", Args: cobra.NoArgs,
		Long: `Freeze sets the tag elbridge:freeze on the bus, or with --group on a target group, with who
froze it, when and why. Registrar and resync read it before they remove anything: no removal
begins after the next round. Registrations go on, and what drains already goes on draining.

What is frozen already stays as it is, and the first word on it is shown. STS is asked who
freezes; if it does not answer, the tag says so, and removals stop all the same.

Exit codes: 0 it is frozen, 1 an error, 130 interrupted.`,
		Example: `  elbridge freeze --reason "incident 7"
  elbridge freeze --group ingress --reason "targets are moved by hand"
  elbridge freeze --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, freeze) },
	}
	o.add(cmd)
	return cmd
}

func unfreezeCommand(s *shared) *cobra.Command {
	o := &freezeOptions{shared: s}
	cmd := &cobra.Command{
		Use: "unfreeze --reason TEXT", Short: "Let removals go on", Args: cobra.NoArgs,
		Long: `Unfreeze removes the tag elbridge:freeze from the bus, or with --group from a target group.
Who did it, when and why is kept in the tag elbridge:unfrozen. What was held meanwhile is
judged anew in the next round, within the rails of the bindings. A group stays frozen as long
as the bus is.

Exit codes: 0 it is not frozen, also if it was not before, 1 an error, 130 interrupted.`,
		Example: `  elbridge unfreeze --reason "incident 7 is over"
  elbridge unfreeze --group ingress --reason "the move is done"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.reason == "" {
				return errors.New("why? give --reason")
			}
			return o.run(cmd, unfreeze)
		},
	}
	o.add(cmd)
	return cmd
}

func (o *freezeOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.group, "group", "", "a target group, name or ARN (default: the bus, and with it every group)")
	f.StringVar(&o.reason, "reason", "", "why, for those who find it")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done")
	outputFlag(cmd, &o.output, "text", "json", "yaml")
}

func (o *freezeOptions) run(cmd *cobra.Command, do func(ctx context.Context, on tagged, note string, dryRun bool) (freezing, error)) error {
	if err := checkOutput(o.output, "text", "json", "yaml"); err != nil {
		return err
	}
	ctx := cmd.Context()
	cfg, err := o.shared.aws(ctx)
	if err != nil {
		return err
	}
	on, err := o.what(ctx, elb.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg))
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	who := signature(ctx, sts.NewFromConfig(cfg), cmd.ErrOrStderr())
	f, err := do(ctx, on, binding.Note(who, o.reason, time.Now()), o.dryRun)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	return write(cmd.OutOrStdout(), o.output, f, f.text)
}

// what finds the bus, or the group.
func (o *freezeOptions) what(ctx context.Context, groups *elb.Client, events *eventbridge.Client) (tagged, error) {
	if o.group != "" {
		arn, err := findGroup(ctx, groups, o.group)
		return taggedGroup{api: groups, arn: arn}, err
	}
	arn, err := bus.Exists(ctx, events, o.shared.bus)
	return taggedBus{api: events, arn: arn}, err
}

// freeze sets the freeze tag, unless one stops removals already.
func freeze(ctx context.Context, on tagged, note string, dryRun bool) (freezing, error) {
	tags, err := on.Tags(ctx)
	if err != nil {
		return freezing{}, err
	}
	f := freezing{Resource: on.ARN(), Frozen: true, Before: tags[binding.FreezeTag], Tag: note, DryRun: dryRun}
	switch {
	case binding.Frozen(tags):
		f.Tag = f.Before
	case !dryRun:
		if err := on.Set(ctx, binding.FreezeTag, note); err != nil {
			return freezing{}, err
		}
		f.Changed = true
	}
	return f, nil
}

// unfreeze removes the freeze tag. What is to be kept of it is written first: if
// one of the two fails, removals are still stopped.
func unfreeze(ctx context.Context, on tagged, note string, dryRun bool) (freezing, error) {
	tags, err := on.Tags(ctx)
	if err != nil {
		return freezing{}, err
	}
	f := freezing{Resource: on.ARN(), Before: tags[binding.FreezeTag], DryRun: dryRun}
	if !binding.Frozen(tags) || dryRun {
		return f, nil
	}
	if err := on.Set(ctx, binding.UnfrozenTag, note); err != nil {
		return freezing{}, err
	}
	if err := on.Remove(ctx, binding.FreezeTag); err != nil {
		return freezing{}, err
	}
	f.Changed = true
	return f, nil
}

func (f freezing) text(w io.Writer) {
	was := binding.Frozen(map[string]string{binding.FreezeTag: f.Before})
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, f.Resource+" "+format+"\n", args...) } // the table's writer keeps the error
	switch {
	case f.Frozen && was:
		say("is frozen already: %s", f.Before)
	case f.Frozen && f.DryRun:
		say("would be frozen: %s", f.Tag)
	case f.Frozen:
		say("is frozen: %s", f.Tag)
	case !was:
		say("is not frozen")
	case f.DryRun:
		say("would not be frozen any more; it is: %s", f.Before)
	default:
		say("is not frozen any more; it was: %s", f.Before)
	}
}
