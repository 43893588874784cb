package functions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func TestFailedIDs(t *testing.T) {
	tests := map[string]struct {
		answer string
		want   string // ids of "a b c" that failed, or "all"
	}{
		"nothing":              {``, ""},
		"null":                 {`null`, ""},
		"empty string":         {`""`, ""},
		"empty object":         {`{}`, ""},
		"other object":         {`{"handled":3}`, ""},
		"null list":            {`{"batchItemFailures":null}`, ""},
		"empty list":           {`{"batchItemFailures":[]}`, ""},
		"one":                  {`{"batchItemFailures":[{"itemIdentifier":"b"}]}`, "b"},
		"two, one twice":       {`{"batchItemFailures":[{"itemIdentifier":"c"},{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}`, "a c"},
		"more keys":            {`{"batchItemFailures":[{"itemIdentifier":"b","why":"x"}],"n":1}`, "b"},
		"empty identifier":     {`{"batchItemFailures":[{"itemIdentifier":""}]}`, "all"},
		"null identifier":      {`{"batchItemFailures":[{"itemIdentifier":null}]}`, "all"},
		"unknown identifier":   {`{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"z"}]}`, "all"},
		"number as identifier": {`{"batchItemFailures":[{"itemIdentifier":1}]}`, "all"},
		"wrong key":            {`{"batchItemFailures":[{"id":"b"}]}`, "all"},
		"key in another case":  {`{"batchItemFailures":[{"ItemIdentifier":"b"}]}`, "all"},
		"list of strings":      {`{"batchItemFailures":["b"]}`, "all"},
		"no list":              {`{"batchItemFailures":"b"}`, "all"},
		"no object":            {`"done"`, "all"},
		"no JSON":              {`done`, "all"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			failed, err := failedIDs([]byte(tt.answer), map[string]bool{"a": true, "b": true, "c": true})
			ids := make([]string, 0, len(failed))
			for id := range failed {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			got := strings.Join(ids, " ")
			if err != nil {
				got = "all"
			}
			if got != tt.want {
				t.Errorf("failedIDs(%s) = %q (%v), want %q", tt.answer, got, err, tt.want)
			}
		})
	}
}

func FuzzFailedIDs(f *testing.F) {
	f.Add([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`))
	f.Add([]byte(`{"batchItemFailures":[{}]}`))
	f.Add([]byte(`null`))
	known := map[string]bool{"a": true, "b": true}
	f.Fuzz(func(t *testing.T, answer []byte) {
		failed, err := failedIDs(answer, known)
		if err != nil && failed != nil {
			t.Error("both an error and a list")
		}
		for id := range failed {
			if !known[id] {
				t.Errorf("%q is not of the batch", id)
			}
		}
	})
}

const queueARN = "arn:aws:sqs:eu-west-1:111122223333:binding"

func TestRecord(t *testing.T) {
	m := types.Message{
		MessageId:     aws.String("m-1"),
		ReceiptHandle: aws.String("r-1"),
		Body:          aws.String(`{"a":"<b>"}`),
		MD5OfBody:     aws.String("5d41"),
		Attributes: map[string]string{
			"ApproximateReceiveCount": "1", "SentTimestamp": "1523232000000",
			"SenderId": "111122223333", "ApproximateFirstReceiveTimestamp": "1523232000001",
		},
		MD5OfMessageAttributes: aws.String("aa"),
		MessageAttributes:      map[string]types.MessageAttributeValue{"n": {DataType: aws.String("Number"), StringValue: aws.String("7")}},
	}
	const want = `{"Records":[{"messageId":"m-1","receiptHandle":"r-1","body":"{\"a\":\"<b>\"}",` +
		`"attributes":{"ApproximateFirstReceiveTimestamp":"1523232000001","ApproximateReceiveCount":"1","SenderId":"111122223333","SentTimestamp":"1523232000000"},` +
		`"messageAttributes":{"n":{"stringValue":"7","stringListValues":[],"binaryListValues":[],"dataType":"Number"}},` +
		`"md5OfMessageAttributes":"aa","md5OfBody":"5d41","eventSource":"aws:sqs","eventSourceARN":"` + queueARN + `","awsRegion":"eu-west-1"}]}`
	got := makeBatches(queueARN, "eu-west-1", []types.Message{m}, maxSyncPayload)
	if len(got) != 1 || string(got[0].payload) != want {
		t.Errorf("got  %s\nwant %s", got[0].payload, want)
	}
	var event events.SQSEvent
	if err := json.Unmarshal(got[0].payload, &event); err != nil || event.Records[0].Body != `{"a":"<b>"}` || *event.Records[0].MessageAttributes["n"].StringValue != "7" {
		t.Errorf("aws-lambda-go reads %+v, %v", event, err)
	}
}

func TestMakeBatches(t *testing.T) {
	one := len(encodeRecord(queueARN, "eu-west-1", message("a", 0)))
	limit := 3*(one+100+1) + 20 // room for three records with bodies of 100
	tests := map[string]struct {
		bodies []int // lengths
		want   string
	}{
		"none":              {nil, ""},
		"all in one":        {[]int{100, 100, 100}, "3"},
		"four are too many": {[]int{100, 100, 100, 100}, "3 1"},
		"large one alone":   {[]int{100, 5000, 100, 100}, "1 1 2"},
		"only large ones":   {[]int{5000, 5000}, "1 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var in []types.Message
			for i, n := range tt.bodies {
				in = append(in, message(string(rune('a'+i)), n))
			}
			var sizes, ids []string
			for _, b := range makeBatches(queueARN, "eu-west-1", in, limit) {
				var event events.SQSEvent
				if err := json.Unmarshal(b.payload, &event); err != nil || len(event.Records) != len(b.messages) {
					t.Fatalf("batch of %d: payload %s, %v", len(b.messages), b.payload, err)
				}
				if len(b.messages) > 1 && len(b.payload) > limit {
					t.Errorf("payload of %d bytes, want at most %d", len(b.payload), limit)
				}
				sizes = append(sizes, fmt.Sprint(len(b.messages)))
				for _, r := range event.Records {
					ids = append(ids, r.MessageId)
				}
			}
			if got := strings.Join(sizes, " "); got != tt.want {
				t.Errorf("batches of %s, want %s", got, tt.want)
			}
			if len(ids) != len(in) || !slices.IsSorted(ids) {
				t.Errorf("messages %v, want all in their order", ids)
			}
		})
	}
}

func message(id string, length int) types.Message {
	return types.Message{MessageId: &id, Body: aws.String(strings.Repeat("x", length))}
}
