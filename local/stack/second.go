package stack

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// What is there for those who want to see elbridge beside itself. Nothing of it
// runs unless it is invoked.
const (
	SecondResync = "resync-second" // resync of the same bus once more, which Lambda's concurrency forbids

	OtherBus      = "other" // a second elbridge in the account
	OtherBusARN   = "arn:aws:events:" + Region + ":" + Account + ":event-bus/" + OtherBus
	OtherResync   = "resync-other" // that of the other bus
	OtherQueue    = "other-registrar"
	OtherQueueARN = "arn:aws:sqs:" + Region + ":" + Account + ":" + OtherQueue
)

// setUpOther makes the other bus and the queue by which its bindings are known.
// Nobody reads it, and no cluster sends events to that bus.
func (a *AWS) setUpOther(ctx context.Context) error {
	if _, err := a.Events.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: new(OtherBus)}); err != nil {
		return err
	}
	_, err := a.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new(OtherQueue)})
	return err
}

// secondResync has no requests: one that the first run takes is answered.
func (s *Stack) secondResync(endpoint string) functions.Function {
	fn := s.resync(endpoint)
	fn.Name = SecondResync
	delete(fn.Env, telemetry.EnvResyncQueueURL)
	return fn
}

func (s *Stack) otherResync(endpoint string) functions.Function {
	fn := s.secondResync(endpoint)
	fn.Name = OtherResync
	fn.Env[telemetry.EnvBus], fn.Env[telemetry.EnvQueueARN], fn.Env[telemetry.EnvQueueURL] = OtherBusARN, OtherQueueARN, queueURL(endpoint, OtherQueue)
	return fn
}
