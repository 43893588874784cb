package targetgroup

import (
	"context"
	"fmt"
	"strconv"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
)

// Facts are what people ask of a group beside what decides about claims.
type Facts struct {
	claim.Group
	Name                string
	Protocol            string // HTTP, TCP, …
	Tags                map[string]string
	DeregistrationDelay time.Duration // negative if not known
}

// attributesAPI is what of the SDK's client reads attributes. Not every API need
// have it.
type attributesAPI interface {
	DescribeTargetGroupAttributes(context.Context, *elb.DescribeTargetGroupAttributesInput, ...func(*elb.Options)) (*elb.DescribeTargetGroupAttributesOutput, error)
}

const delayAttribute = "deregistration_delay.timeout_seconds"

// Facts returns what there is to know of the group that ref names, without its
// targets. Errors as of Describe.
func (c *Client) Facts(ctx context.Context, ref binding.GroupRef) (Facts, error) {
	g, err := c.Describe(ctx, ref)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Group: g, DeregistrationDelay: -1}
	out, err := c.api.DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{g.ARN}})
	if err != nil {
		return Facts{}, classify("describing the target group", err)
	}
	if len(out.TargetGroups) != 1 {
		return Facts{}, fmt.Errorf("%w: %d of that ARN", ErrAmbiguous, len(out.TargetGroups))
	}
	if name := out.TargetGroups[0].TargetGroupName; name != nil {
		f.Name = *name
	}
	f.Protocol = string(out.TargetGroups[0].Protocol)
	if f.Tags, err = c.Tags(ctx, g.ARN); err != nil {
		return Facts{}, err
	}
	f.DeregistrationDelay, err = c.delay(ctx, g.ARN)
	return f, err
}

func (c *Client) delay(ctx context.Context, arn string) (time.Duration, error) {
	api, ok := c.api.(attributesAPI)
	if !ok {
		return -1, nil
	}
	out, err := api.DescribeTargetGroupAttributes(ctx, &elb.DescribeTargetGroupAttributesInput{TargetGroupArn: &arn})
	if err != nil {
		return -1, classify("reading the group's attributes", err)
	}
	for _, a := range out.Attributes {
		if a.Key == nil || a.Value == nil || *a.Key != delayAttribute {
			continue
		}
		if n, err := strconv.Atoi(*a.Value); err == nil {
			return time.Duration(n) * time.Second, nil
		}
	}
	return -1, nil
}
