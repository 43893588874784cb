package functions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// record is one message as Lambda hands it to a function.
type record struct {
	MessageID              string               `json:"messageId"`
	ReceiptHandle          string               `json:"receiptHandle"`
	Body                   string               `json:"body"`
	Attributes             map[string]string    `json:"attributes"`
	MessageAttributes      map[string]attribute `json:"messageAttributes"`
	MD5OfMessageAttributes string               `json:"md5OfMessageAttributes,omitempty"`
	MD5OfBody              string               `json:"md5OfBody"`
	EventSource            string               `json:"eventSource"`
	EventSourceARN         string               `json:"eventSourceARN"`
	AWSRegion              string               `json:"awsRegion"`
}

type attribute struct {
	StringValue      *string  `json:"stringValue,omitempty"`
	BinaryValue      []byte   `json:"binaryValue,omitempty"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues [][]byte `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

// A batch is what one invocation gets.
type batch struct {
	messages []types.Message
	payload  []byte
}

// makeBatches cuts what was received into events that an invocation can carry:
// all of it in one, unless large bodies pass limit bytes. A message that is too
// large by itself has a batch of its own, to fail alone.
func makeBatches(queueARN, region string, received []types.Message, limit int) []batch {
	const frame = len(`{"Records":[]}`)
	var out []batch
	var records [][]byte
	size, first := frame, 0
	flush := func(end int) {
		if end > first {
			payload := `{"Records":[` + string(bytes.Join(records, []byte(","))) + `]}`
			out = append(out, batch{messages: received[first:end], payload: []byte(payload)})
		}
		records, size, first = nil, frame, end
	}
	for i, m := range received {
		r := encodeRecord(queueARN, region, m)
		if size+len(r)+1 > limit {
			flush(i)
		}
		records = append(records, r)
		size += len(r) + 1
	}
	flush(len(received))
	return out
}

func encodeRecord(queueARN, region string, m types.Message) []byte {
	r := record{
		MessageID:              deref(m.MessageId),
		ReceiptHandle:          deref(m.ReceiptHandle),
		Body:                   deref(m.Body),
		Attributes:             m.Attributes,
		MessageAttributes:      make(map[string]attribute, len(m.MessageAttributes)),
		MD5OfMessageAttributes: deref(m.MD5OfMessageAttributes),
		MD5OfBody:              deref(m.MD5OfBody),
		EventSource:            "aws:sqs",
		EventSourceARN:         queueARN,
		AWSRegion:              region,
	}
	for name, a := range m.MessageAttributes {
		r.MessageAttributes[name] = attribute{
			StringValue: a.StringValue, BinaryValue: a.BinaryValue, DataType: deref(a.DataType),
			StringListValues: []string{}, BinaryListValues: [][]byte{},
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(r) // strings, bytes and maps of them always encode
	return bytes.TrimRight(b.Bytes(), "\n")
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// failedIDs reads a function's answer to a batch as an event source mapping with
// ReportBatchItemFailures does. Nothing, null, an empty list or no list at all
// mean that all succeeded. An error means that the whole batch counts as failed:
// the answer is no such object, or an identifier in it is missing, empty or not
// of this batch.
func failedIDs(answer []byte, inBatch map[string]bool) (map[string]bool, error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || string(answer) == "null" || string(answer) == `""` {
		return nil, nil // none failed
	}
	// Keys are told apart by case, unlike in encoding/json's structs.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(answer, &fields); err != nil {
		return nil, fmt.Errorf("answer %.100q: want an object with batchItemFailures", answer)
	}
	raw, ok := fields["batchItemFailures"]
	if !ok || string(raw) == "null" {
		return nil, nil // none failed
	}
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("batchItemFailures %.100q: want a list of objects with itemIdentifier", raw)
	}
	failed := make(map[string]bool, len(items))
	var unknown []string
	for _, item := range items {
		var id string
		if json.Unmarshal(item["itemIdentifier"], &id) != nil || !inBatch[id] {
			unknown = append(unknown, string(item["itemIdentifier"]))
		}
		failed[id] = true
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("batchItemFailures: itemIdentifier %s: want message ids of the batch", strings.Join(unknown, ", "))
	}
	return failed, nil
}
