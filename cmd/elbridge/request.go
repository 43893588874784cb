package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/elbridge/elbridge/pkg/telemetry"
)

// resyncQueue is the name of the queue that resync takes requests from.
const resyncQueue = "elbridge-resync"

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

// groupName is the name of a group by its ARN, for people: names are unique in an
// account and region.
func groupName(arn string) string {
	if _, rest, ok := strings.Cut(arn, ":targetgroup/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	return arn
}
