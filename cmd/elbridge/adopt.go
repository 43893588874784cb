package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
)

// adoption is what became of one target group.
type adoption struct {
	TargetGroup string `json:"targetGroup"`
	Owner       string `json:"owner"`            // ARN of the bus
	Before      string `json:"before,omitempty"` // the owner until now
	Note        string `json:"note,omitempty"`   // who adopted it, when and why, if it was done now
	Changed     bool   `json:"changed"`          // false if it was so already, or in a dry run
	DryRun      bool   `json:"dryRun,omitempty"`
}

// errOwned is returned for a group that another bus owns.
var errOwned = errors.New("the target group has another owner")

func adoptCommand(s *shared) *cobra.Command {
	var output, reason string
	var dryRun, force bool
	cmd := &cobra.Command{
		Use: "adopt TARGET-GROUP", Short: "Let a bus's rules own a target group, so that targets are removed from it too",
		Args: operands("one TARGET-GROUP, name or ARN", 1),
		Long: `Adopt sets the tag elbridge:owner of a target group to the ARN of the bus.

Without the tag elbridge registers targets and removes none but its own pods' within podCIDRs.
With it, it removes every target that no live pod claims, within the rails of the bindings:
don't adopt a group that somebody else registers targets into.

Exit codes: 0 the bus owns it, also if it did before; 1 an error, also if another bus owns it;
130 interrupted.`,
		Example: `  elbridge adopt web
  elbridge adopt web --reason "moved to elbridge with change 42"
  elbridge adopt arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef --bus elbridge --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: want text or json", output)
			}
			cfg, err := s.aws(cmd.Context())
			if err != nil {
				return err
			}
			note := func(ctx context.Context) string {
				return binding.Note(signature(ctx, sts.NewFromConfig(cfg), cmd.ErrOrStderr()), reason, time.Now())
			}
			a, err := adopt(cmd.Context(), elb.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg), args[0], s.bus, note, force, dryRun)
			if err != nil {
				return unlessInterrupted(cmd.Context(), err)
			}
			return show(cmd.OutOrStdout(), a, output)
		},
	}
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "why, for those who find it: the tag elbridge:adopted keeps it, with who and when")
	f.BoolVar(&force, "force", false, "take the group over from another owner")
	f.BoolVar(&dryRun, "dry-run", false, "say what would be done")
	f.StringVarP(&output, "output", "o", "text", "text, json")
	return cmd
}

func show(out io.Writer, a adoption, output string) error {
	if output == "json" {
		return json.NewEncoder(out).Encode(a)
	}
	verb := "owns"
	switch {
	case a.DryRun:
		verb = "would own"
	case !a.Changed:
		verb = "owns already"
	}
	_, err := fmt.Fprintf(out, "%s %s %s\n", a.Owner, verb, a.TargetGroup)
	return err
}

// elbAPI is what of ELB's client is used.
type elbAPI interface {
	groupsAPI
	groupTagsAPI
}

// adopt sets the owner tag of a group, named by name or ARN (I18), and beside it
// the note of who did so. A group with another owner is refused unless force is set.
func adopt(ctx context.Context, api elbAPI, events bus.DescribeAPI, group, busName string, note func(context.Context) string, force, dryRun bool) (adoption, error) {
	owner, err := bus.Exists(ctx, events, busName)
	if err != nil {
		return adoption{}, err
	}
	arn, err := findGroup(ctx, api, group)
	if err != nil {
		return adoption{}, err
	}
	a := adoption{TargetGroup: arn, Owner: owner, DryRun: dryRun}
	tags, err := taggedGroup{api: api, arn: arn}.Tags(ctx)
	if err != nil {
		return adoption{}, err
	}
	a.Before = tags[binding.OwnerTag]
	switch {
	case binding.Owns(a.Before, owner, arn): // by ARN, or by the bus's name alone
		return a, nil
	case a.Before != "" && !force:
		return adoption{}, fmt.Errorf("%w: %s; --force takes it over", errOwned, a.Before)
	case dryRun:
		return a, nil
	}
	a.Note = note(ctx)
	_, err = api.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{arn}, Tags: []types.Tag{
		{Key: new(binding.OwnerTag), Value: &owner}, {Key: new(binding.AdoptedTag), Value: &a.Note}}})
	if err != nil {
		return adoption{}, fmt.Errorf("tagging %s: %w", arn, err)
	}
	a.Changed = true
	return a, nil
}
