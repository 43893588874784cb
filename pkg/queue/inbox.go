package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// receiveMost is what one call gives at most, by SQS's own limit.
	receiveMost = 10
	// maxPoll is SQS's own maximum of a long poll.
	maxPoll = 20 * time.Second
)

// InboxAPI is what of the SDK's client an Inbox uses.
type InboxAPI interface {
	API
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
}

// Inbox reads a queue that no event source mapping reads.
type Inbox struct {
	*Client // Again and Bury
	api     InboxAPI
}

// NewInbox returns an inbox; both are queue URLs.
func NewInbox(api InboxAPI, url, deadLetterURL string) *Inbox {
	return &Inbox{Client: New(api, url, deadLetterURL), api: api}
}

// attributes are those of a Message.
var attributes = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameSenderId,
	types.MessageSystemAttributeNameSentTimestamp,
	types.MessageSystemAttributeNameApproximateReceiveCount,
}

// Receive returns up to 10 messages, as soon as there are any, or none after wait.
// SQS counts whole seconds, up to 20; less than half a second is no wait, and may
// miss a message that is there.
func (b *Inbox) Receive(ctx context.Context, wait time.Duration) ([]Message, error) {
	out, err := b.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &b.url, MaxNumberOfMessages: receiveMost, MessageSystemAttributeNames: attributes,
		WaitTimeSeconds: int32(min(max(wait, 0), maxPoll).Round(time.Second).Seconds()),
	})
	if err != nil {
		return nil, fmt.Errorf("receiving from %s: %w", b.url, err)
	}
	ms := make([]Message, len(out.Messages))
	for i, m := range out.Messages {
		ms[i] = message(aws.ToString(m.MessageId), aws.ToString(m.Body), aws.ToString(m.ReceiptHandle), m.Attributes)
	}
	return ms, nil
}

// Delete acknowledges a message.
func (b *Inbox) Delete(ctx context.Context, m Message) error {
	if _, err := b.api.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &b.url, ReceiptHandle: &m.Receipt}); err != nil {
		return fmt.Errorf("deleting message %s: %w", m.ID, err)
	}
	return nil
}
