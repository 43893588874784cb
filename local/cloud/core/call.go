package core

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Service answers the calls of one AWS service.
type Service interface {
	// ServeAWS returns the operation's result (nil for an empty one), or an
	// error: an *Error is sent as it is, any other as an internal failure.
	// It is called concurrently; ctx ends when the caller goes away.
	ServeAWS(ctx context.Context, call *Call) (any, error)
}

// ServiceFunc is a function as a Service.
type ServiceFunc func(ctx context.Context, call *Call) (any, error)

// ServeAWS calls f.
func (f ServiceFunc) ServeAWS(ctx context.Context, call *Call) (any, error) { return f(ctx, call) }

// Scope is the account and region that state belongs to. It is part of every
// key.
type Scope struct{ Account, Region string }

// ARN is the name of a resource in the scope: arn:aws:service:region:account:resource.
func (s Scope) ARN(service, resource string) string {
	return "arn:aws:" + service + ":" + s.Region + ":" + s.Account + ":" + resource
}

// Call is one authenticated request for an operation.
type Call struct {
	Scope
	Service   string // signing name, as "events", "sqs", "elasticloadbalancing"
	Operation string // as "RegisterTargets"
	Principal Principal
	RequestID string
	Time      time.Time // when it came, by the cloud's clock

	Params Params        // query protocol: the form
	Body   []byte        // JSON protocols: the document
	HTTP   *http.Request // REST: method, path and query; its body is read already

	// Host is the scheme and host that the client used, as http://127.0.0.1:4566.
	Host string

	faults []activeFault
	params string // what the recorder keeps
}

// Decode reads the JSON document of the request into v.
func (c *Call) Decode(v any) error {
	body := c.Body
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return &Error{Code: "SerializationException", Message: "the request is not a valid document: " + err.Error(), Status: http.StatusBadRequest}
	}
	return nil
}

// UnknownOperation is the error of an operation that the service does not have.
func (c *Call) UnknownOperation() error {
	if serviceProtocol(c.Service) == Query {
		return &Error{Code: "InvalidAction", Message: fmt.Sprintf("The action %s is not valid for this web service.", c.Operation), Status: http.StatusBadRequest}
	}
	return &Error{Code: "UnknownOperationException", Message: fmt.Sprintf("operation %q of %s is not part of the local cloud", c.Operation, c.Service), Status: http.StatusBadRequest}
}

// FailEntry says whether a partial failure was asked for entry i of a call
// with several entries: nil, or the error that the entry shall have.
func (c *Call) FailEntry(i int) *Error {
	for _, f := range c.faults {
		if f.Kind == FaultPartial && f.hits(i) {
			return f.error()
		}
	}
	return nil
}

// List is a list in the query protocol. It is written also when it is empty,
// as AWS does.
type List[T any] struct {
	Member []T `xml:"member"`
}

// ListOf returns items as a List.
func ListOf[T any](items []T) List[T] { return List[T]{Member: items} }
