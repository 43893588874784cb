package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/pkg/targetevent"
)

const (
	// requestSchema is the version of a request's message.
	requestSchema = 1
	// hintExpired is the trigger of what the registrar hands over.
	hintExpired = "hint-expired"
)

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
	body, err := json.Marshal(struct {
		Schema  int                 `json:"schema"`
		Trigger string              `json:"trigger"`
		Request targetevent.Request `json:"request"`
	}{requestSchema, hintExpired, targetevent.Request{ID: newID(), Groups: groups}})
	if err != nil {
		return err
	}
	if _, err := r.api.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &r.url, MessageBody: new(string(body))}); err != nil {
		return fmt.Errorf("sending a request to %s: %w", r.url, err)
	}
	return nil
}

// newID is a random UUID (version 4 of RFC 9562).
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
