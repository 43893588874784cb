package targetgroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

const (
	// maxPages bounds every paged read: 400 groups a page and 3,000 groups a
	// region (ELB quotas) need 8.
	maxPages = 20
	// describePageSize and tagsPageSize are the API's own maxima.
	describePageSize = 400
	tagsPageSize     = 20
)

// ErrAmbiguous is returned for a name or tags that name no group or several: such
// a binding covers nothing.
var ErrAmbiguous = errors.New("not exactly one target group")

// Describe returns the group that ref names, without its targets. Errors:
// ErrNotFound, ErrAmbiguous, ErrThrottled, ErrDenied, ErrUnavailable.
func (c *Client) Describe(ctx context.Context, ref binding.GroupRef) (claim.Group, error) {
	in := &elb.DescribeTargetGroupsInput{}
	switch {
	case ref.ARN != "":
		in.TargetGroupArns = []string{ref.ARN}
	case ref.Name != "":
		in.Names = []string{ref.Name}
	default:
		arn, err := c.byTags(ctx, ref)
		if err != nil {
			return claim.Group{}, err
		}
		in.TargetGroupArns = []string{arn}
	}
	out, err := c.api.DescribeTargetGroups(ctx, in)
	if err != nil {
		return claim.Group{}, classify("describing the target group", err)
	}
	if len(out.TargetGroups) != 1 {
		return claim.Group{}, fmt.Errorf("%w: %d of that name", ErrAmbiguous, len(out.TargetGroups))
	}
	return group(out.TargetGroups[0]), nil
}

func group(g types.TargetGroup) claim.Group {
	out := claim.Group{Type: claim.TargetType(g.TargetType), Family: claim.Family(g.IpAddressType)}
	if out.Family == "" {
		out.Family = claim.IPv4 // ELB's own default
	}
	if g.TargetGroupArn != nil {
		out.ARN = *g.TargetGroupArn
	}
	if g.Port != nil {
		out.Port = *g.Port
	}
	return out
}

// byTags returns the one group that carries all of its tags.
func (c *Client) byTags(ctx context.Context, ref binding.GroupRef) (string, error) {
	groups, err := c.List(ctx)
	if err != nil {
		return "", err
	}
	arns := make([]string, len(groups))
	for i, g := range groups {
		arns[i] = g.ARN
	}
	tags, err := c.TagsOf(ctx, arns)
	if err != nil {
		return "", err
	}
	var found []string
	for _, arn := range arns {
		if ref.Carried(tags[arn]) {
			found = append(found, arn)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%w: %d carry the tags", ErrAmbiguous, len(found))
	}
	return found[0], nil
}

// Listed is a group as a listing of all of them shows it.
type Listed struct {
	claim.Group
	Name string
}

// List returns every group of the account and region, a page of 400 a call.
// Errors as of Describe; a page that fails fails the list (I8).
func (c *Client) List(ctx context.Context) ([]Listed, error) {
	var all []Listed
	in := &elb.DescribeTargetGroupsInput{PageSize: new(int32(describePageSize))}
	for range maxPages {
		out, err := c.api.DescribeTargetGroups(ctx, in)
		if err != nil {
			return nil, classify("listing target groups", err)
		}
		for _, g := range out.TargetGroups {
			l := Listed{Group: group(g)}
			if g.TargetGroupName != nil {
				l.Name = *g.TargetGroupName
			}
			all = append(all, l)
		}
		if out.NextMarker == nil || *out.NextMarker == "" {
			return all, nil
		}
		in.Marker = out.NextMarker
	}
	return nil, fmt.Errorf("listing target groups: %w: more than %d pages", ErrUnavailable, maxPages)
}

// TagsOf returns the tags of many groups, 20 a call. A group that went meanwhile
// is ErrUnavailable: the next look will find it gone.
func (c *Client) TagsOf(ctx context.Context, arns []string) (map[string]map[string]string, error) {
	all := make(map[string]map[string]string, len(arns))
	for chunk := range slices.Chunk(arns, tagsPageSize) {
		tags, err := c.tags(ctx, chunk)
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("%w: a target group went while tags were read", ErrUnavailable)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, tags)
	}
	return all, nil
}

// Tags returns the tags of a group. Errors as of Describe.
func (c *Client) Tags(ctx context.Context, arn string) (map[string]string, error) {
	tags, err := c.tags(ctx, []string{arn})
	return tags[arn], err
}

func (c *Client) tags(ctx context.Context, arns []string) (map[string]map[string]string, error) {
	out, err := c.api.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: arns})
	if err != nil {
		return nil, classify("reading tags", err)
	}
	tags := map[string]map[string]string{}
	for _, d := range out.TagDescriptions {
		m := map[string]string{}
		for _, t := range d.Tags {
			if t.Key != nil && t.Value != nil {
				m[*t.Key] = *t.Value
			}
		}
		tags[*d.ResourceArn] = m
	}
	return tags, nil
}

// Health returns every target of the group: the answer is one response, so it
// is whole or an error (I8). A target that ELB lists without a port has the
// group's. Errors as of Describe; ErrUnavailable never means "empty".
func (c *Client) Health(ctx context.Context, g claim.Group) (map[claim.Key]plan.Target, error) {
	out, err := c.api.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: &g.ARN}, leanly)
	if err != nil {
		return nil, classify("reading target health", err)
	}
	current := make(map[claim.Key]plan.Target, len(out.TargetHealthDescriptions))
	for _, d := range out.TargetHealthDescriptions {
		if d.Target == nil || d.Target.Id == nil {
			continue
		}
		k := claim.Key{ID: *d.Target.Id, Port: g.Port}
		if d.Target.Port != nil {
			k.Port = *d.Target.Port
		}
		var t plan.Target
		if d.TargetHealth != nil {
			t.Health, t.Reason = plan.Health(d.TargetHealth.State), string(d.TargetHealth.Reason)
		}
		if d.Target.AvailabilityZone != nil {
			t.Zone = *d.Target.AvailabilityZone
		}
		current[k] = t
	}
	return current, nil
}
