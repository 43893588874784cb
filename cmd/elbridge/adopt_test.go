package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
)

const (
	busARN   = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	groupARN = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"
)

// account is one bus and one target group with its tags.
type account struct{ owner, adopted string }

func (a *account) DescribeEventBus(_ context.Context, in *eventbridge.DescribeEventBusInput, _ ...func(*eventbridge.Options)) (*eventbridge.DescribeEventBusOutput, error) {
	return &eventbridge.DescribeEventBusOutput{Name: in.Name, Arn: new(busARN)}, nil
}

func (a *account) DescribeTargetGroups(_ context.Context, in *elb.DescribeTargetGroupsInput, _ ...func(*elb.Options)) (*elb.DescribeTargetGroupsOutput, error) {
	if (len(in.Names) == 1 && in.Names[0] == "web") || (len(in.TargetGroupArns) == 1 && in.TargetGroupArns[0] == groupARN) {
		return &elb.DescribeTargetGroupsOutput{TargetGroups: []types.TargetGroup{{TargetGroupArn: new(groupARN)}}}, nil
	}
	return nil, &types.TargetGroupNotFoundException{Message: new("One or more target groups not found")}
}

func (a *account) DescribeTags(context.Context, *elb.DescribeTagsInput, ...func(*elb.Options)) (*elb.DescribeTagsOutput, error) {
	d := types.TagDescription{ResourceArn: new(groupARN), Tags: []types.Tag{{Key: new("team"), Value: new("web")}}}
	if a.owner != "" {
		d.Tags = append(d.Tags, types.Tag{Key: new("elbridge:owner"), Value: &a.owner})
	}
	return &elb.DescribeTagsOutput{TagDescriptions: []types.TagDescription{d}}, nil
}

func (a *account) AddTags(_ context.Context, in *elb.AddTagsInput, _ ...func(*elb.Options)) (*elb.AddTagsOutput, error) {
	for _, t := range in.Tags {
		switch *t.Key {
		case "elbridge:owner":
			a.owner = *t.Value
		case "elbridge:adopted":
			a.adopted = *t.Value
		}
	}
	return &elb.AddTagsOutput{}, nil
}

func (a *account) RemoveTags(context.Context, *elb.RemoveTagsInput, ...func(*elb.Options)) (*elb.RemoveTagsOutput, error) {
	return nil, errors.New("adopt removes no tag")
}

func TestAdopt_I18(t *testing.T) {
	tests := map[string]struct {
		group, owner  string
		force, dryRun bool
		want          string // the owner afterwards
		text, err     string
	}{
		"by name":                     {group: "web", want: busARN, text: " owns "},
		"by ARN":                      {group: groupARN, want: busARN, text: " owns "},
		"again":                       {group: "web", owner: busARN, want: busARN, text: " owns already "},
		"again, tagged by name":       {group: "web", owner: "elbridge", want: "elbridge", text: " owns already "},
		"dry run":                     {group: "web", dryRun: true, text: " would own "},
		"another owner is refused":    {group: "web", owner: "other", want: "other", err: "--force"},
		"another owner is taken over": {group: "web", owner: "other", force: true, want: busARN, text: " owns "},
		"no such group":               {group: "wbe", err: "target group wbe: not found in this account and region"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			acc := &account{owner: tt.owner}
			a, err := adopt(context.Background(), acc, acc, tt.group, "elbridge", func(context.Context) string { return "kim: why not" }, tt.force, tt.dryRun)
			if (err != nil) != (tt.err != "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if strings.Contains(name, "refused") && !errors.Is(err, errOwned) {
				t.Errorf("error %v is not errOwned", err)
			}
			if acc.owner != tt.want {
				t.Errorf("owner is %q, want %q", acc.owner, tt.want)
			}
			if told := acc.adopted != ""; told != (err == nil && a.Changed) || told && (acc.adopted != "kim: why not" || a.Note != acc.adopted) {
				t.Errorf("adopted says %q, the answer %q, of a change: %t", acc.adopted, a.Note, a.Changed)
			}
			if err == nil {
				var out bytes.Buffer
				if err := show(&out, a, "text"); err != nil || !strings.Contains(out.String(), tt.text) {
					t.Errorf("said %q (%v), want %q", out.String(), err, tt.text)
				}
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"--help":             "adopt",
		"adopt --help":       "Examples:",
		"adopt":              "want one TARGET-GROUP, name or ARN; got 0",
		"adopt web -o yaml":  "want text or json",
		"adopt web --nosuch": "unknown flag",

		"freeze --help":                         "Exit codes:",
		"unfreeze":                              "give --reason",
		"freeze -o table":                       "want one of text, json, yaml",
		"wait":                                  `required flag(s) "group", "healthy" not set`,
		"wait --group web --healthy 0":          "want 1 or more",
		"resync --approve 5b1d7a0c9e3f":         "wants --reason",
		"resync --approve all --reason x":       "12 hexadecimal digits",
		"resync --approve a --dry-run":          "none of the others can be",
		"history":                               `required flag(s) "target" not set`,
		"history --target nowhere":              "want IP or IP:PORT",
		"history --target 10.64.1.6 --since 0s": "want a time back",
		"drift -o text":                         "want one of table, json, yaml",
	} {
		cmd := root()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(strings.Fields(args))
		err := cmd.ExecuteContext(context.Background())
		text := out.String()
		if err != nil {
			text += err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("elbridge %s says %q, want %q in it", args, text, want)
		}
	}
}
