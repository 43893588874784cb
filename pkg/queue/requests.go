package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/pkg/targetevent"
)

// Triggers of a request for a round of resync. The webhook's events come to the
// same queue as the bus has them.
const (
	TriggerRequest     = "request"      // an operator's, who waits for the answer
	TriggerHintExpired = "hint-expired" // the registrar's: hints were too old to be followed
)

// Request is the message that asks resync for a round. Who sent it SQS says itself.
type Request struct {
	Schema  int                 `json:"schema"` // targetevent.Schema
	Trigger string              `json:"trigger"`
	Request targetevent.Request `json:"request"`
	DryRun  bool                `json:"dryRun,omitempty"`
}

// SendAPI is what of the SDK's client Requests use.
type SendAPI interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Requests asks resync, by its queue, for a round at once.
type Requests struct {
	api SendAPI
	url string
}

// NewRequests returns a client of the queue with that URL.
func NewRequests(api SendAPI, url string) *Requests { return &Requests{api: api, url: url} }

// Ask hands groups to resync whose hints are too old to be followed.
func (r *Requests) Ask(ctx context.Context, groups []string) error {
	return r.Send(ctx, Request{Trigger: TriggerHintExpired, Request: targetevent.Request{ID: NewID(), Groups: groups}})
}

// Send asks for a round.
func (r *Requests) Send(ctx context.Context, req Request) error {
	req.Schema = targetevent.Schema
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	if _, err := r.api.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &r.url, MessageBody: new(string(body))}); err != nil {
		return fmt.Errorf("sending a request to %s: %w", r.url, err)
	}
	return nil
}

// NewID is a random UUID (version 4 of RFC 9562), for a request's id.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
