package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/elbridge/elbridge/pkg/binding"
)

// tagged is a bus or a target group, which carries tags.
type tagged interface {
	ARN() string
	Tags(ctx context.Context) (map[string]string, error)
	Set(ctx context.Context, key, value string) error
	Remove(ctx context.Context, key string) error
}

// busTagsAPI is what of EventBridge's client reads and writes tags.
type busTagsAPI interface {
	ListTagsForResource(context.Context, *eventbridge.ListTagsForResourceInput, ...func(*eventbridge.Options)) (*eventbridge.ListTagsForResourceOutput, error)
	TagResource(context.Context, *eventbridge.TagResourceInput, ...func(*eventbridge.Options)) (*eventbridge.TagResourceOutput, error)
	UntagResource(context.Context, *eventbridge.UntagResourceInput, ...func(*eventbridge.Options)) (*eventbridge.UntagResourceOutput, error)
}

type taggedBus struct {
	api busTagsAPI
	arn string
}

func (b taggedBus) ARN() string { return b.arn }

func (b taggedBus) Tags(ctx context.Context) (map[string]string, error) {
	out, err := b.api.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &b.arn})
	if err != nil {
		return nil, fmt.Errorf("reading the tags of %s: %w", b.arn, err)
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags, nil
}

func (b taggedBus) Set(ctx context.Context, key, value string) error {
	_, err := b.api.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: &b.arn, Tags: []types.Tag{{Key: &key, Value: &value}}})
	if err != nil {
		return fmt.Errorf("setting tag %s of %s: %w", key, b.arn, err)
	}
	return nil
}

func (b taggedBus) Remove(ctx context.Context, key string) error {
	_, err := b.api.UntagResource(ctx, &eventbridge.UntagResourceInput{ResourceARN: &b.arn, TagKeys: []string{key}})
	if err != nil {
		return fmt.Errorf("removing tag %s of %s: %w", key, b.arn, err)
	}
	return nil
}

// groupsAPI is what of ELB's client finds groups.
type groupsAPI interface {
	DescribeTargetGroups(context.Context, *elb.DescribeTargetGroupsInput, ...func(*elb.Options)) (*elb.DescribeTargetGroupsOutput, error)
}

// groupTagsAPI is what of it reads and writes tags.
type groupTagsAPI interface {
	DescribeTags(context.Context, *elb.DescribeTagsInput, ...func(*elb.Options)) (*elb.DescribeTagsOutput, error)
	AddTags(context.Context, *elb.AddTagsInput, ...func(*elb.Options)) (*elb.AddTagsOutput, error)
	RemoveTags(context.Context, *elb.RemoveTagsInput, ...func(*elb.Options)) (*elb.RemoveTagsOutput, error)
}

type taggedGroup struct {
	api groupTagsAPI
	arn string
}

func (g taggedGroup) ARN() string { return g.arn }

func (g taggedGroup) Tags(ctx context.Context) (map[string]string, error) {
	out, err := g.api.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: []string{g.arn}})
	if err != nil {
		return nil, fmt.Errorf("reading the tags of %s: %w", g.arn, err)
	}
	tags := map[string]string{}
	for _, d := range out.TagDescriptions {
		for _, t := range d.Tags {
			tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
	}
	return tags, nil
}

func (g taggedGroup) Set(ctx context.Context, key, value string) error {
	_, err := g.api.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{g.arn}, Tags: []elbtypes.Tag{{Key: &key, Value: &value}}})
	if err != nil {
		return fmt.Errorf("setting tag %s of %s: %w", key, g.arn, err)
	}
	return nil
}

func (g taggedGroup) Remove(ctx context.Context, key string) error {
	_, err := g.api.RemoveTags(ctx, &elb.RemoveTagsInput{ResourceArns: []string{g.arn}, TagKeys: []string{key}})
	if err != nil {
		return fmt.Errorf("removing tag %s of %s: %w", key, g.arn, err)
	}
	return nil
}

// groupRef is a group as operators name it: by ARN or by name.
func groupRef(group string) binding.GroupRef {
	if strings.HasPrefix(group, "arn:") {
		return binding.GroupRef{ARN: group}
	}
	return binding.GroupRef{Name: group}
}

// findGroup returns the ARN of a group that is named by name or ARN, and exists.
func findGroup(ctx context.Context, api groupsAPI, group string) (string, error) {
	in := &elb.DescribeTargetGroupsInput{Names: []string{group}}
	if ref := groupRef(group); ref.ARN != "" {
		in = &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{group}}
	}
	out, err := api.DescribeTargetGroups(ctx, in)
	var none *elbtypes.TargetGroupNotFoundException
	switch {
	case errors.As(err, &none):
		return "", fmt.Errorf("target group %s: not found in this account and region", group)
	case err != nil:
		return "", fmt.Errorf("target group %s: %w", group, err)
	}
	if len(out.TargetGroups) != 1 {
		return "", fmt.Errorf("target group %s: found %d of that name", group, len(out.TargetGroups))
	}
	return aws.ToString(out.TargetGroups[0].TargetGroupArn), nil
}
