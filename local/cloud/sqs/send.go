package sqs

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
)

type attributeValue struct {
	DataType    string
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
}

// sendRequest is SendMessage, and an entry of SendMessageBatch.
type sendRequest struct {
	Id, QueueUrl, MessageBody string
	DelaySeconds              *int
	MessageAttributes         map[string]attributeValue
	MessageSystemAttributes   map[string]attributeValue
}

type sendAnswer struct {
	Id                     string `json:",omitempty"`
	MessageId              string
	MD5OfMessageBody       string
	MD5OfMessageAttributes string `json:",omitempty"`
}

func (s *Service) sendMessage(_ context.Context, call *core.Call) (any, error) {
	var in sendRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(call, in.QueueUrl, "SendMessage")
	if err != nil {
		return nil, err
	}
	return q.send(in, call.Principal.UserID, call.Time)
}

// send checks a message and puts it into the queue.
func (q *queue) send(in sendRequest, sender string, now time.Time) (any, error) {
	delay := q.seconds("DelaySeconds")
	if in.DelaySeconds != nil {
		if *in.DelaySeconds < 0 || *in.DelaySeconds > 900 {
			return nil, invalidParameter(fmt.Sprintf("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.", *in.DelaySeconds))
		}
		delay = time.Duration(*in.DelaySeconds) * time.Second
	}
	if err := in.check(q.number("MaximumMessageSize")); err != nil {
		return nil, err
	}
	m := &message{id: core.NewID(), body: in.MessageBody, attributes: in.MessageAttributes, sender: sender, sent: now}
	if trace, ok := in.MessageSystemAttributes["AWSTraceHeader"]; ok && trace.StringValue != nil {
		m.traceHeader = *trace.StringValue
	}
	q.put(m, now.Add(delay), now)
	return sendAnswer{Id: in.Id, MessageId: m.id, MD5OfMessageBody: md5Hex(m.body), MD5OfMessageAttributes: md5Attributes(m.attributes)}, nil
}

func (in sendRequest) check(most int) error {
	if in.MessageBody == "" {
		return missingParameter("MessageBody")
	}
	if !utf8.ValidString(in.MessageBody) || strings.ContainsFunc(in.MessageBody, badRune) {
		return apiError("InvalidMessageContents", "InvalidMessageContents", "Message contains characters outside the allowed set.")
	}
	if len(in.MessageAttributes) > 10 {
		return invalidParameter(fmt.Sprintf("Number of message attributes [%d] exceeds the allowed maximum [10].", len(in.MessageAttributes)))
	}
	for name, v := range in.MessageAttributes {
		kind, _, _ := strings.Cut(v.DataType, ".")
		if !slices.Contains([]string{"String", "Number", "Binary"}, kind) {
			return invalidParameter("The message attribute '" + name + "' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.")
		}
		if (kind == "Binary") != (v.BinaryValue != nil) || (kind == "Binary") == (v.StringValue != nil) {
			return invalidParameter("The message attribute '" + name + "' must contain a non-empty value of its type " + v.DataType + ".")
		}
	}
	if in.size() > most {
		return invalidParameter(fmt.Sprintf("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most))
	}
	return nil
}

// size is the message's size as SQS counts it: body and attributes, in bytes.
func (in sendRequest) size() int {
	n := len(in.MessageBody)
	for name, v := range in.MessageAttributes {
		n += len(name) + len(v.DataType) + len(v.BinaryValue)
		if v.StringValue != nil {
			n += len(*v.StringValue)
		}
	}
	return n
}

// badRune says whether XML 1.0 has no such character.
func badRune(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// md5Attributes is the digest that SDKs compare: names in order, each part
// with its length before it.
func md5Attributes(all map[string]attributeValue) string {
	if len(all) == 0 {
		return ""
	}
	h := md5.New()
	part := func(b []byte) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		part([]byte(name))
		part([]byte(v.DataType))
		if v.StringValue != nil {
			h.Write([]byte{1})
			part([]byte(*v.StringValue))
		} else {
			h.Write([]byte{2})
			part(v.BinaryValue)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// What Deliver may meet.
var (
	ErrNoQueue       = errors.New("the queue does not exist")
	ErrNotPermitted  = errors.New("the queue's policy does not allow it")
	ErrNotAcceptable = errors.New("the queue does not take the message")
)

// Delivery is a message that an AWS service sends.
type Delivery struct {
	Service   string // principal, as "events.amazonaws.com"
	SourceARN string // of the resource on whose behalf it is sent
	Account   string // of that resource
	QueueARN  string
	Body      string
	Text      map[string]string // message attributes of type String
}

// serviceSender is the SenderId of what EventBridge sends: a principal of AWS
// itself.
const serviceSender = "AIDAJXNJGGKNS7OSV23OI"

// Deliver puts a message into a queue as an AWS service does: the queue's
// policy decides.
func (s *Service) Deliver(d Delivery) (messageID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findARN(d.QueueARN)
	if q == nil {
		return "", fmt.Errorf("queue %s: %w", d.QueueARN, ErrNoQueue)
	}
	request := policy.Request{Service: d.Service, Action: "sqs:SendMessage", Resource: d.QueueARN,
		Context: map[string]string{"aws:sourcearn": d.SourceARN, "aws:sourceaccount": d.Account}}
	if !q.policy().Allows(request) {
		return "", fmt.Errorf("queue %s: %w: want one that lets %s send with aws:SourceArn %s", d.QueueARN, ErrNotPermitted, d.Service, d.SourceARN)
	}
	in := sendRequest{MessageBody: d.Body, MessageAttributes: map[string]attributeValue{}}
	for name, value := range d.Text {
		in.MessageAttributes[name] = attributeValue{DataType: "String", StringValue: &value}
	}
	out, err := q.send(in, serviceSender, s.clock.Now())
	if err != nil {
		return "", fmt.Errorf("queue %s: %w: %w", d.QueueARN, ErrNotAcceptable, err)
	}
	return out.(sendAnswer).MessageId, nil
}
