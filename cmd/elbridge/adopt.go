package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
)

// adoption is what became of one target group.
type adoption struct {
	TargetGroup string `json:"targetGroup"`
	Owner       string `json:"owner"`            // ARN of the bus
	Before      string `json:"before,omitempty"` // the owner until now
	Changed     bool   `json:"changed"`          // false if it was so already, or in a dry run
	DryRun      bool   `json:"dryRun,omitempty"`
}

// errOwned is returned for a group that another bus owns.
var errOwned = errors.New("the target group has another owner")

func adoptCommand(s *shared) *cobra.Command {
	var output string
	var dryRun, force bool
	cmd := &cobra.Command{
		Use: "adopt TARGET-GROUP", Short: "Let a bus's rules own a target group, so that targets are removed from it too", Args: cobra.ExactArgs(1),
		Long: `Adopt sets the tag elbridge:owner of a target group to the ARN of the bus.

Without the tag elbridge registers targets and removes none but its own pods' within podCIDRs.
With it, it removes every target that no live pod claims, within the rails of the bindings:
don't adopt a group that somebody else registers targets into.`,
		Example: `  elbridge adopt web
  elbridge adopt arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef --bus elbridge --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: want text or json", output)
			}
			cfg, err := s.aws(cmd.Context())
			if err != nil {
				return err
			}
			a, err := adopt(cmd.Context(), elb.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg), args[0], s.bus, force, dryRun)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), a, output)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&force, "force", false, "take the group over from another owner")
	f.BoolVar(&dryRun, "dry-run", false, "say what would be done")
	f.StringVarP(&output, "output", "o", "text", "text or json")
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
	DescribeTargetGroups(context.Context, *elb.DescribeTargetGroupsInput, ...func(*elb.Options)) (*elb.DescribeTargetGroupsOutput, error)
	DescribeTags(context.Context, *elb.DescribeTagsInput, ...func(*elb.Options)) (*elb.DescribeTagsOutput, error)
	AddTags(context.Context, *elb.AddTagsInput, ...func(*elb.Options)) (*elb.AddTagsOutput, error)
}

// adopt sets the owner tag of a group, named by name or ARN (I18). A group with
// another owner is refused unless force is set.
func adopt(ctx context.Context, api elbAPI, events bus.DescribeAPI, group, busName string, force, dryRun bool) (adoption, error) {
	owner, err := bus.Exists(ctx, events, busName)
	if err != nil {
		return adoption{}, err
	}
	in := &elb.DescribeTargetGroupsInput{Names: []string{group}}
	if strings.HasPrefix(group, "arn:") {
		in = &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{group}}
	}
	out, err := api.DescribeTargetGroups(ctx, in)
	if err != nil {
		return adoption{}, fmt.Errorf("target group %s: %w", group, err)
	}
	if len(out.TargetGroups) != 1 {
		return adoption{}, fmt.Errorf("target group %s: found %d of that name", group, len(out.TargetGroups))
	}
	a := adoption{TargetGroup: *out.TargetGroups[0].TargetGroupArn, Owner: owner, DryRun: dryRun}
	tags, err := api.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{a.TargetGroup}})
	if err != nil {
		return adoption{}, fmt.Errorf("tags of %s: %w", a.TargetGroup, err)
	}
	for _, d := range tags.TagDescriptions {
		for _, t := range d.Tags {
			if *t.Key == binding.OwnerTag && t.Value != nil {
				a.Before = *t.Value
			}
		}
	}
	switch {
	case a.Before == owner:
		return a, nil
	case a.Before != "" && !force:
		return adoption{}, fmt.Errorf("%w: %s; --force takes it over", errOwned, a.Before)
	case dryRun:
		return a, nil
	}
	_, err = api.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{a.TargetGroup}, Tags: []types.Tag{{Key: new(binding.OwnerTag), Value: &owner}}})
	if err != nil {
		return adoption{}, fmt.Errorf("tagging %s: %w", a.TargetGroup, err)
	}
	a.Changed = true
	return a, nil
}
