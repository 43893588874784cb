package sqs

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// maxInFlight is the number of messages of a standard queue that may be in
// flight at once.
const maxInFlight = 120000

type receiveRequest struct {
	QueueUrl                    string
	AttributeNames              []string // the old name of MessageSystemAttributeNames
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
}

type receiveAnswer struct {
	Messages []received `json:",omitempty"`
}

type received struct {
	MessageId              string
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             map[string]string         `json:",omitempty"`
	MD5OfMessageAttributes string                    `json:",omitempty"`
	MessageAttributes      map[string]attributeValue `json:",omitempty"`
}

func (s *Service) receive(ctx context.Context, call *core.Call) (any, error) {
	var in receiveRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	most, err := within("MaxNumberOfMessages", in.MaxNumberOfMessages, 1, 10, 1)
	if err != nil {
		return nil, err
	}
	if _, err := within("VisibilityTimeout", in.VisibilityTimeout, 0, 43200, 0); err != nil {
		return nil, err
	}
	if _, err := within("WaitTimeSeconds", in.WaitTimeSeconds, 0, 20, 0); err != nil {
		return nil, err
	}
	var end time.Time
	for {
		out, wait, err := s.poll(ctx, call, in, most, &end)
		if err != nil || wait == nil {
			return receiveAnswer{out}, err
		}
		c, stop := s.clock.After(wait.until)
		select {
		case <-wait.wake:
		case <-c:
		case <-ctx.Done():
		}
		stop()
	}
}

// waiting says how long a long poll may sleep, and what wakes it before.
type waiting struct {
	until time.Duration
	wake  <-chan struct{}
}

// poll takes what is there. Without a message and with time left it returns
// what to wait for.
func (s *Service) poll(ctx context.Context, call *core.Call, in receiveRequest, most int, end *time.Time) ([]received, *waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(call, in.QueueUrl, "ReceiveMessage")
	if err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil { // nobody is there to take a message
		return nil, nil, ctx.Err()
	}
	now := s.clock.Now()
	if end.IsZero() {
		patience := q.seconds("ReceiveMessageWaitTimeSeconds")
		if in.WaitTimeSeconds != nil {
			patience = time.Duration(*in.WaitTimeSeconds) * time.Second
		}
		*end = now.Add(patience)
	}
	if len(q.hidden) >= maxInFlight {
		return nil, nil, apiError("OverLimit", "OverLimit", "The maximum number of in flight messages is reached")
	}
	visibility := q.seconds("VisibilityTimeout")
	if in.VisibilityTimeout != nil {
		visibility = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	taken := s.take(q, most, visibility, now)
	if len(taken) > 0 || !now.Before(*end) {
		out := make([]received, len(taken))
		for i, m := range taken {
			out[i] = m.show(q, in)
		}
		return out, nil, nil
	}
	until := *end
	if at, ok := q.next(); ok && at.Before(until) {
		until = at
	}
	return nil, &waiting{until: until.Sub(now), wake: q.wake}, nil
}

// take receives up to most messages. What was received too often goes to the
// dead-letter queue instead.
func (s *Service) take(q *queue, most int, visibility time.Duration, now time.Time) []*message {
	q.advance(now)
	target, limit := q.redrive()
	dead := s.findARN(target)
	var taken []*message
	for e := q.ready.Front(); e != nil && len(taken) < most; e = q.ready.Front() {
		m := e.Value.(*message)
		if dead != nil && dead != q && m.received >= limit {
			q.drop(m)
			m.source = q.id.arn()
			dead.put(m, now, now)
			continue
		}
		q.unlink(m)
		m.received++
		if m.first.IsZero() {
			m.first = now
		}
		q.hide(m, now.Add(visibility))
		taken = append(taken, m)
	}
	return taken
}

// receipt is a handle for this receive of the message.
func (m *message) receipt(q *queue) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s %s %d", q.id.arn(), m.id, m.received))
}

// open reads a receipt handle of q. The message is nil if it is gone, and
// current is false if it was received again since.
func (q *queue) open(handle string) (m *message, current bool, err error) {
	if handle == "" {
		return nil, false, missingParameter("ReceiptHandle")
	}
	text, err := base64.StdEncoding.DecodeString(handle)
	part := strings.Split(string(text), " ")
	if err != nil || len(part) != 3 || part[0] != q.id.arn() {
		return nil, false, apiError("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", "The input receipt handle \""+handle+"\" is not a valid receipt handle.")
	}
	m = q.byID[part[1]]
	return m, m != nil && strconv.Itoa(m.received) == part[2], nil
}

func (m *message) show(q *queue, in receiveRequest) received {
	out := received{MessageId: m.id, ReceiptHandle: m.receipt(q), Body: m.body, MD5OfBody: md5Hex(m.body)}
	system := map[string]string{
		"SenderId":                         m.sender,
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.received),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
		"AWSTraceHeader":                   m.traceHeader,
		"DeadLetterQueueSourceArn":         m.source,
	}
	names := slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames)
	for name, value := range system {
		if value != "" && (slices.Contains(names, "All") || slices.Contains(names, name)) {
			if out.Attributes == nil {
				out.Attributes = map[string]string{}
			}
			out.Attributes[name] = value
		}
	}
	for name, value := range m.attributes {
		if wanted(in.MessageAttributeNames, name) {
			if out.MessageAttributes == nil {
				out.MessageAttributes = map[string]attributeValue{}
			}
			out.MessageAttributes[name] = value
		}
	}
	out.MD5OfMessageAttributes = md5Attributes(out.MessageAttributes)
	return out
}

// wanted says whether names asks for the attribute: by name, by prefix.* or all.
func wanted(names []string, attribute string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		if n == "All" || n == ".*" || n == attribute {
			return true
		}
		prefix, ok := strings.CutSuffix(n, ".*")
		return ok && strings.HasPrefix(attribute, prefix)
	})
}

// within checks an optional number.
func within(name string, v *int, least, most, standard int) (int, error) {
	if v == nil {
		return standard, nil
	}
	if *v < least || *v > most {
		return 0, invalidParameter(fmt.Sprintf("Value %d for parameter %s is invalid. Reason: Must be >= %d and <= %d, if provided.", *v, name, least, most))
	}
	return *v, nil
}
