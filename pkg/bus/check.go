package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"
)

// ErrNoBus says that the bus does not exist. PutEvents to such a bus succeeds,
// and the events are gone (P083).
var ErrNoBus = errors.New("no such event bus")

// ErrDenied says that the caller may not look: the bus may or may not exist.
var ErrDenied = errors.New("not allowed to look at the event bus")

// DescribeAPI is what Exists uses of the EventBridge client.
type DescribeAPI interface {
	DescribeEventBus(context.Context, *eventbridge.DescribeEventBusInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeEventBusOutput, error)
}

// Exists looks the bus of that name or ARN up and returns its ARN. The error
// says what to do; it is ErrNoBus, ErrDenied or anything that may pass later.
func Exists(ctx context.Context, api DescribeAPI, bus string) (arn string, err error) {
	out, err := api.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: aws.String(bus)})
	var missing *types.ResourceNotFoundException
	var answer smithy.APIError
	switch {
	case err == nil:
		return aws.ToString(out.Arn), nil
	case errors.As(err, &missing):
		return "", fmt.Errorf("%w %q in this account and region: create it, or name the one that the rules are on", ErrNoBus, bus)
	case errors.As(err, &answer) && denied[answer.ErrorCode()]:
		return "", fmt.Errorf("%w %q: allow events:DescribeEventBus on it: %w", ErrDenied, bus, err)
	default:
		return "", fmt.Errorf("looking at event bus %q: %w", bus, err)
	}
}

var denied = map[string]bool{"AccessDeniedException": true, "AccessDenied": true, "UnrecognizedClientException": true}
