package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// resyncQueue is the name of the queue that resync takes requests from.
const resyncQueue = "elbridge-resync"

// requestSchema is the version of a request's message.
const requestSchema = 1

// requestMessage is what is sent to the queue. Who sent it SQS says itself.
type requestMessage struct {
	Schema  int                 `json:"schema"`
	Trigger string              `json:"trigger"`
	Request targetevent.Request `json:"request"`
	DryRun  bool                `json:"dryRun"`
}

// queueAPI is what of SQS's client is used.
type queueAPI interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// queueURL is the URL of the request queue: the one given, that of the
// environment, or the one of the queue's name in this account and region.
func queueURL(ctx context.Context, api queueAPI, given string, lookup func(string) string) (string, error) {
	if given != "" {
		return given, nil
	}
	if url := lookup(telemetry.EnvResyncQueueURL); url != "" {
		return url, nil
	}
	out, err := api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: new(resyncQueue)})
	var missing *types.QueueDoesNotExist
	switch {
	case errors.As(err, &missing):
		return "", fmt.Errorf("no queue %s in this account and region: resync is not deployed here, or give --queue or %s", resyncQueue, telemetry.EnvResyncQueueURL)
	case err != nil:
		return "", fmt.Errorf("looking for queue %s: %w", resyncQueue, err)
	}
	return aws.ToString(out.QueueUrl), nil
}

// send puts a request into the queue.
func send(ctx context.Context, api queueAPI, url string, r targetevent.Request, dryRun bool) error {
	body, err := json.Marshal(requestMessage{Schema: requestSchema, Trigger: "request", Request: r, DryRun: dryRun})
	if err != nil {
		return err
	}
	if _, err := api.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new(string(body))}); err != nil {
		return fmt.Errorf("sending a request to %s: %w", url, err)
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

// groupName is the name of a group by its ARN, for people: names are unique in an
// account and region.
func groupName(arn string) string {
	if _, rest, ok := strings.Cut(arn, ":targetgroup/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	return arn
}
