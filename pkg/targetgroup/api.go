// Package targetgroup is the edge to ELBv2: what a target group is, what it
// holds, and how keys get in and out of it. It chunks, isolates the target that
// a whole call was refused for, and puts every error into one of a few classes;
// it decides nothing about who belongs into a group.
package targetgroup

import (
	"context"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
)

// API is what of the SDK's client is used.
type API interface {
	DescribeTargetGroups(context.Context, *elb.DescribeTargetGroupsInput, ...func(*elb.Options)) (*elb.DescribeTargetGroupsOutput, error)
	DescribeTargetHealth(context.Context, *elb.DescribeTargetHealthInput, ...func(*elb.Options)) (*elb.DescribeTargetHealthOutput, error)
	DescribeTags(context.Context, *elb.DescribeTagsInput, ...func(*elb.Options)) (*elb.DescribeTagsOutput, error)
	RegisterTargets(context.Context, *elb.RegisterTargetsInput, ...func(*elb.Options)) (*elb.RegisterTargetsOutput, error)
	DeregisterTargets(context.Context, *elb.DeregisterTargetsInput, ...func(*elb.Options)) (*elb.DeregisterTargetsOutput, error)
}

// Client reads and changes target groups of one account, role and region. It is
// safe for concurrent use.
type Client struct {
	api      API
	zones    zoneMemory
	suspects suspects
}

// New returns a client over api.
func New(api API) *Client { return &Client{api: api} }
