package contract_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/pkg/queue"
)

func newQueue(t *testing.T, api *sqs.Client, name string) string {
	t.Helper()
	out, err := api.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "600"}})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func receive(t *testing.T, api *sqs.Client, url string, wait int32) []types.Message {
	t.Helper()
	out, err := api.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: wait, MessageAttributeNames: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

func TestQueue(t *testing.T) {
	w := start(t, elb.Config{})
	api := sqs.NewFromConfig(w.config(registrar))
	url, dead := newQueue(t, api, "bindings"), newQueue(t, api, "bindings-dead")
	c := queue.New(api, url, dead)
	if _, err := api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("not ours")}); err != nil {
		t.Fatal(err)
	}
	got := receive(t, api, url, 1)
	if len(got) != 1 {
		t.Fatalf("%d messages", len(got))
	}
	m := queue.Message{ID: *got[0].MessageId, Body: *got[0].Body, Receipt: *got[0].ReceiptHandle}

	t.Run("again: long before the queue's own time", func(t *testing.T) {
		if err := c.Again(t.Context(), m, time.Second); err != nil {
			t.Fatal(err)
		}
		if again := receive(t, api, url, 20); len(again) != 1 || *again[0].MessageId != m.ID {
			t.Errorf("received %v", again)
		}
	})

	t.Run("again: with a receipt that is none", func(t *testing.T) {
		if err := c.Again(t.Context(), queue.Message{ID: "x", Receipt: "none"}, time.Second); err == nil {
			t.Error("no error")
		}
	})

	t.Run("bury: with a reason that SQS would refuse", func(t *testing.T) {
		if err := c.Bury(t.Context(), m, "bad \x00\xff body"); err != nil {
			t.Fatal(err)
		}
		buried := receive(t, api, dead, 1)
		if len(buried) != 1 || *buried[0].Body != "not ours" {
			t.Fatalf("the dead-letter queue has %v", buried)
		}
		a := buried[0].MessageAttributes
		if aws.ToString(a[queue.AttributeReason].StringValue) != "bad ?? body" || aws.ToString(a[queue.AttributeMessageID].StringValue) != m.ID {
			t.Errorf("attributes %v", a)
		}
	})
}
