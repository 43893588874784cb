// Package queue is the edge to SQS as a function sees it: a received message
// with its age and receipt, a shorter wait for one that has to come again, the
// dead-letter queue for one that never can succeed, and requests to resync.
package queue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Message is one message of a batch.
type Message struct {
	ID       string
	Body     string
	Receipt  string
	Sent     time.Time // by the queue's clock; zero where it is not known
	Receives int       // how often it was received, this time included
	Sender   string    // principal id of whoever sent it, as SQS saw it; "" where it is not known
}

// Batch reads the records of an event source mapping's invocation.
func Batch(in events.SQSEvent) []Message {
	out := make([]Message, len(in.Records))
	for i, r := range in.Records {
		out[i] = message(r.MessageId, r.Body, r.ReceiptHandle, r.Attributes)
	}
	return out
}

// message is a message as it was received, with what its attributes tell.
func message(id, body, receipt string, attributes map[string]string) Message {
	m := Message{ID: id, Body: body, Receipt: receipt, Sender: attributes["SenderId"]}
	if ms, err := strconv.ParseInt(attributes["SentTimestamp"], 10, 64); err == nil {
		m.Sent = time.UnixMilli(ms)
	}
	m.Receives, _ = strconv.Atoi(attributes["ApproximateReceiveCount"]) // 0 where it is not given
	return m
}

// Response names the messages to be delivered again. The list is never nil: an
// empty one says that all succeeded, whatever the runtime makes of null.
func Response(failed []string) events.SQSEventResponse {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, id := range failed {
		out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return out
}

// API is what of the SDK's client is used.
type API interface {
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Client acts on messages of one queue and its dead-letter queue.
type Client struct {
	api             API
	url, deadLetter string
}

// New returns a client; both are queue URLs.
func New(api API, url, deadLetterURL string) *Client {
	return &Client{api: api, url: url, deadLetter: deadLetterURL}
}

// maxVisibility is SQS's own maximum.
const maxVisibility = 12 * time.Hour

// Again makes the message visible after wait, in place of the queue's own
// visibility timeout. SQS counts whole seconds: a wait is at least one, so that
// nothing spins, and at most 12 hours. A wait of 0 or less is none.
func (c *Client) Again(ctx context.Context, m Message, wait time.Duration) error {
	seconds := int32(min(max(wait, 0), maxVisibility).Round(time.Second).Seconds())
	if wait > 0 {
		seconds = max(seconds, 1)
	}
	_, err := c.api.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &c.url, ReceiptHandle: &m.Receipt, VisibilityTimeout: seconds,
	})
	if err != nil {
		return fmt.Errorf("changing the visibility of message %s: %w", m.ID, err)
	}
	return nil
}

// Attributes of a dead letter, beside the body as it was received.
const (
	AttributeReason    = "elbridge.reason"
	AttributeMessageID = "elbridge.messageId"
)

// maxReason keeps a reason well within SQS's size for attributes, in bytes.
const maxReason = 1024

// Bury sends the message with the reason to the dead-letter queue. Only after
// it succeeds may the message be acknowledged.
func (c *Client) Bury(ctx context.Context, m Message, reason string) error {
	reason = printable(reason)
	text := func(s string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: new("String"), StringValue: &s}
	}
	_, err := c.api.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &c.deadLetter, MessageBody: &m.Body,
		MessageAttributes: map[string]types.MessageAttributeValue{AttributeReason: text(reason), AttributeMessageID: text(m.ID)},
	})
	if err != nil {
		return fmt.Errorf("sending message %s to the dead-letter queue: %w", m.ID, err)
	}
	return nil
}

// printable cuts a reason to size and leaves out what SQS refuses in an
// attribute: a message must not fail to be buried for what is wrong with it.
func printable(reason string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(reason, "?") {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			r = '?'
		}
		if b.Len()+utf8.RuneLen(r) > maxReason {
			break
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "no reason was given"
	}
	return b.String()
}
