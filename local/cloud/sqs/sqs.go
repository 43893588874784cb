// Package sqs is the local cloud's SQS: standard queues over the JSON
// protocol, with visibility, receive counts, delay, retention, redrive to a
// dead-letter queue and long polls that wake when a message comes. FIFO queues
// are refused.
package sqs

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
)

// Service holds the queues of all accounts and regions.
type Service struct {
	clock core.Clock

	mu      sync.Mutex
	queues  map[queueID]*queue
	deleted map[queueID]time.Time // when, for the minute in which a name stays taken
}

type queueID struct {
	core.Scope
	name string
}

func (id queueID) arn() string { return id.ARN("sqs", id.name) }

// New returns a service without queues.
func New(clock core.Clock) *Service {
	return &Service{clock: clock, queues: map[queueID]*queue{}, deleted: map[queueID]time.Time{}}
}

type operation func(*Service, context.Context, *core.Call) (any, error)

var operations = map[string]operation{
	"CreateQueue":                  (*Service).createQueue,
	"DeleteQueue":                  (*Service).deleteQueue,
	"GetQueueUrl":                  (*Service).getQueueURL,
	"ListQueues":                   (*Service).listQueues,
	"ListDeadLetterSourceQueues":   (*Service).listSources,
	"GetQueueAttributes":           (*Service).getAttributes,
	"SetQueueAttributes":           (*Service).setAttributes,
	"PurgeQueue":                   (*Service).purge,
	"TagQueue":                     (*Service).tag,
	"UntagQueue":                   (*Service).untag,
	"ListQueueTags":                (*Service).listTags,
	"SendMessage":                  (*Service).sendMessage,
	"SendMessageBatch":             (*Service).sendBatch,
	"ReceiveMessage":               (*Service).receive,
	"DeleteMessage":                (*Service).deleteMessage,
	"DeleteMessageBatch":           (*Service).deleteBatch,
	"ChangeMessageVisibility":      (*Service).changeVisibility,
	"ChangeMessageVisibilityBatch": (*Service).changeVisibilityBatch,
}

// ServeAWS implements core.Service.
func (s *Service) ServeAWS(ctx context.Context, call *core.Call) (any, error) {
	op, ok := operations[call.Operation]
	if !ok {
		return nil, call.UnknownOperation()
	}
	return op(s, ctx, call)
}

// apiError is an error with the code of the JSON protocol (the shape's name)
// and the one that the service had before.
func apiError(code, query, message string) *core.Error {
	return &core.Error{Code: code, QueryCode: query, Message: message, Status: http.StatusBadRequest}
}

func noQueue() *core.Error {
	return apiError("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
}

func invalidParameter(message string) *core.Error {
	return apiError("InvalidParameterValueException", "InvalidParameterValue", message)
}

func missingParameter(name string) *core.Error {
	return apiError("MissingRequiredParameterException", "MissingParameter", "The request must contain the parameter "+name+".")
}

// find returns the queue that a QueueUrl names, for a call of action. The
// caller holds s.mu.
func (s *Service) find(call *core.Call, queueURL, action string) (*queue, error) {
	if queueURL == "" {
		return nil, missingParameter("QueueUrl")
	}
	account, name, ok := parseURL(queueURL)
	if !ok {
		return nil, apiError("InvalidAddress", "InvalidAddress", "The address "+queueURL+" is not valid for this endpoint.")
	}
	q := s.queues[queueID{core.Scope{Account: account, Region: call.Region}, name}]
	if q == nil {
		return nil, noQueue()
	}
	if account != call.Account && !q.policy().Allows(policy.Request{Account: call.Account, ARN: call.Principal.ARN, Action: "sqs:" + action, Resource: q.id.arn()}) {
		return nil, &core.Error{Code: "AccessDenied", QueryCode: "AccessDenied", Status: http.StatusForbidden,
			Message: "User: " + call.Principal.ARN + " is not authorized to perform: sqs:" + strings.ToLower(action) + " on resource: " + q.id.arn() +
				" because no resource-based policy allows the sqs:" + strings.ToLower(action) + " action"}
	}
	return q, nil
}

// parseURL reads http://host/account/name; the host does not matter.
func parseURL(text string) (account, name string, ok bool) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 {
		return "", "", false
	}
	return parts[len(parts)-2], parts[len(parts)-1], true
}

func (q *queue) url(call *core.Call) string { return call.Host + "/" + q.id.Account + "/" + q.id.name }

// findARN returns the queue of an ARN, or nil. The caller holds s.mu.
func (s *Service) findARN(arn string) *queue {
	p := strings.Split(arn, ":")
	if len(p) != 6 || p[2] != "sqs" {
		return nil
	}
	return s.queues[queueID{core.Scope{Account: p[4], Region: p[3]}, p[5]}]
}
