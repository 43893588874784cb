// Package logs is the local cloud's CloudWatch Logs: log groups with retention,
// resource policies, and the reading of events by filter pattern, page by page,
// with the empty pages that the service is known for. Events come in by
// PutLogEvents or by delivery from an AWS service.
package logs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
)

// What the service keeps is bounded: past it a group loses its oldest events.
const (
	maxGroups   = 1000     // of an account and region; AWS: 1,000,000
	maxPolicies = 10       // of an account and region, as AWS has it
	maxEvents   = 100_000  // of a group
	maxBytes    = 64 << 20 // of a group's messages
	maxStreams  = 1000     // of a group
)

// Sizes of the API.
const (
	maxMessage  = 1 << 20 // of one event, in bytes
	maxPage     = 1 << 20 // of a page of events, in bytes
	maxFound    = 10_000  // events of a page
	maxDescribe = 50      // groups, streams or policies of a page
	maxDocument = 5120    // characters of a resource policy
)

// Service holds the log groups of all accounts and regions.
type Service struct {
	clock core.Clock

	mu       sync.Mutex
	groups   map[groupID]*group
	policies map[core.Scope]map[string]*resourcePolicy
}

type groupID struct {
	core.Scope
	name string
}

func (id groupID) arn() string { return id.ARN("logs", "log-group:"+id.name) }

// New returns a service without log groups.
func New(clock core.Clock) *Service {
	return &Service{clock: clock, groups: map[groupID]*group{}, policies: map[core.Scope]map[string]*resourcePolicy{}}
}

type operation func(*Service, *core.Call) (any, error)

var operations = map[string]operation{
	"CreateLogGroup":           (*Service).createGroup,
	"DeleteLogGroup":           (*Service).deleteGroup,
	"DescribeLogGroups":        (*Service).describeGroups,
	"PutRetentionPolicy":       (*Service).putRetention,
	"DeleteRetentionPolicy":    (*Service).deleteRetention,
	"PutResourcePolicy":        (*Service).putPolicy,
	"DeleteResourcePolicy":     (*Service).deletePolicy,
	"DescribeResourcePolicies": (*Service).describePolicies,
	"CreateLogStream":          (*Service).createStream,
	"DescribeLogStreams":       (*Service).describeStreams,
	"PutLogEvents":             (*Service).putEvents,
	"FilterLogEvents":          (*Service).filterEvents,
	"GetLogEvents":             (*Service).getEvents,
}

// ServeAWS implements core.Service.
func (s *Service) ServeAWS(_ context.Context, call *core.Call) (any, error) {
	op, ok := operations[call.Operation]
	if !ok {
		return nil, call.UnknownOperation()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return op(s, call)
}

func invalid(format string, args ...any) *core.Error {
	return core.Errorf("InvalidParameterException", format, args...)
}

// violation is the error of a value that the service's model does not allow.
func violation(member, value, rule string) *core.Error {
	return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, member, rule)
}

func noGroup() *core.Error {
	return core.Errorf("ResourceNotFoundException", "The specified log group does not exist.")
}

func noStream() *core.Error {
	return core.Errorf("ResourceNotFoundException", "The specified log stream does not exist.")
}

func taken(what string) *core.Error {
	return core.Errorf("ResourceAlreadyExistsException", "The specified %s already exists", what)
}

func limitExceeded() *core.Error {
	return core.Errorf("LimitExceededException", "Resource limit exceeded.")
}

// atMost checks an optional number that is from 1 to most; without one it is most.
func atMost(member string, v *int, most int) (int, error) {
	switch {
	case v == nil:
		return most, nil
	case *v < 1:
		return 0, violation(member, fmt.Sprint(*v), "Member must have value greater than or equal to 1")
	case *v > most:
		return 0, violation(member, fmt.Sprint(*v), fmt.Sprintf("Member must have value less than or equal to %d", most))
	}
	return *v, nil
}

// What Deliver may meet.
var (
	ErrNoGroup       = errors.New("the log group does not exist")
	ErrNotPermitted  = errors.New("no resource policy of CloudWatch Logs allows it")
	ErrNotAcceptable = errors.New("the log group does not take the event")
)

// Delivery is an event that an AWS service logs.
type Delivery struct {
	Service   string // principal, as "events.amazonaws.com"
	SourceARN string // of the resource on whose behalf it is sent
	Account   string // of that resource
	GroupARN  string // with or without :* at the end
	Time      time.Time
	Message   string
}

var groupARNForm = regexp.MustCompile(`^arn:aws:logs:([a-z0-9-]+):(\d{12}):log-group:([.\-_/#A-Za-z0-9]{1,512})(:\*)?$`)

// Deliver logs an event as an AWS service does, in a stream that it makes: a
// resource policy has to allow both. The name of the group is the policy's
// affair alone.
func (s *Service) Deliver(d Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := groupARNForm.FindStringSubmatch(d.GroupARN)
	if part == nil {
		return fmt.Errorf("log group %s: %w: it is not the ARN of one", d.GroupARN, ErrNoGroup)
	}
	g := s.groups[groupID{core.Scope{Account: part[2], Region: part[1]}, part[3]}]
	if g == nil {
		return fmt.Errorf("log group %s: %w", d.GroupARN, ErrNoGroup)
	}
	now := s.clock.Now()
	stream := g.serviceStream(d.Service, now)
	for _, action := range []string{"logs:CreateLogStream", "logs:PutLogEvents"} {
		request := policy.Request{Service: d.Service, Action: action, Resource: g.arn() + ":log-stream:" + stream,
			Context: map[string]string{"aws:sourcearn": d.SourceARN, "aws:sourceaccount": d.Account}}
		if !s.allowed(g.Scope, request) {
			return fmt.Errorf("log group %s: %w: want one that lets %s do %s on %s:*", d.GroupARN, ErrNotPermitted, d.Service, action, g.arn())
		}
	}
	if fault := g.unacceptable(d.Time, d.Message, now); fault != "" {
		return fmt.Errorf("log group %s: %w: %s", d.GroupARN, ErrNotAcceptable, fault)
	}
	if err := g.addStream(stream, now); err != nil {
		return fmt.Errorf("log group %s: %w: %w", d.GroupARN, ErrNotAcceptable, err)
	}
	g.add(stream, d.Time, d.Message, now)
	return nil
}
