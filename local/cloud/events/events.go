// Package events is the local cloud's EventBridge: buses, rules, targets and
// the delivery of events to queues, functions, log groups and other buses, with
// input transformers, retries and dead-letter queues. Patterns are matched by
// pkg/eventpattern and inputs rendered by pkg/binding, as everywhere else.
//
// Delivery is asynchronous and at least once, by a bounded number of workers;
// a delay can be set for all of it, and faults of the operation "Deliver" make
// single deliveries fail, late, lost or doubled.
package events

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/logs"
	"github.com/elbridge/elbridge/local/cloud/sqs"
)

// Limits are the quotas of an account.
type Limits struct {
	Buses          int
	RulesPerBus    int
	TargetsPerRule int
	Pattern        int // characters of an event pattern
}

// DefaultLimits are those of a new account in most regions.
func DefaultLimits() Limits {
	return Limits{Buses: 100, RulesPerBus: 300, TargetsPerRule: 5, Pattern: 2048}
}

// Invoker invokes functions. functions.Runner is one.
type Invoker interface {
	// InvokeAsync accepts an event for a function, by the function's name.
	InvokeAsync(ctx context.Context, function string, payload []byte) (requestID string, err error)
}

// Options are what a Service is made of.
type Options struct {
	Server  *core.Server // clock, faults, records, log
	Queues  *sqs.Service
	Logs    *logs.Service // nil: there are no log groups
	Workers int           // deliveries at once; default 16
	Limits  Limits        // default DefaultLimits
	Seed    uint64        // of the jitter of retries
}

// Service is EventBridge for all accounts and regions.
type Service struct {
	server *core.Server
	queues *sqs.Service
	logs   *logs.Service
	limits Limits
	delay  atomic.Int64 // time.Duration between acceptance and delivery
	work   *agenda
	count  int // workers

	mu    sync.RWMutex
	buses map[busID]*bus

	lambda   Invoker
	noLambda func(error) bool // the function does not exist
}

// New returns a service whose scopes have a default bus each.
func New(o Options) *Service {
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	return &Service{server: o.Server, queues: o.Queues, logs: o.Logs, limits: o.Limits, count: o.Workers,
		work: newAgenda(o.Server.Clock, o.Seed), buses: map[busID]*bus{}}
}

// SetDelay sets the time between the acceptance of an event and its delivery.
func (s *Service) SetDelay(d time.Duration) { s.delay.Store(int64(d)) }

// SetInvoker names who invokes the functions that rules target. missing says
// of an error that the function does not exist, so that it is not tried again.
// It is called before Run.
func (s *Service) SetInvoker(i Invoker, missing func(error) bool) { s.lambda, s.noLambda = i, missing }

type operation func(*Service, *core.Call) (any, error)

var operations = map[string]operation{
	"CreateEventBus":        (*Service).createBus,
	"DeleteEventBus":        (*Service).deleteBus,
	"DescribeEventBus":      (*Service).describeBus,
	"ListEventBuses":        (*Service).listBuses,
	"PutPermission":         (*Service).putPermission,
	"RemovePermission":      (*Service).removePermission,
	"PutRule":               (*Service).putRule,
	"DescribeRule":          (*Service).describeRule,
	"DeleteRule":            (*Service).deleteRule,
	"EnableRule":            (*Service).enableRule,
	"DisableRule":           (*Service).disableRule,
	"ListRules":             (*Service).listRules,
	"ListRuleNamesByTarget": (*Service).listRuleNames,
	"PutTargets":            (*Service).putTargets,
	"RemoveTargets":         (*Service).removeTargets,
	"ListTargetsByRule":     (*Service).listTargets,
	"PutEvents":             (*Service).putEvents,
	"TestEventPattern":      (*Service).testPattern,
	"TagResource":           (*Service).tag,
	"UntagResource":         (*Service).untag,
	"ListTagsForResource":   (*Service).listTags,
}

// ServeAWS implements core.Service.
func (s *Service) ServeAWS(_ context.Context, call *core.Call) (any, error) {
	op, ok := operations[call.Operation]
	if !ok {
		return nil, call.UnknownOperation()
	}
	return op(s, call)
}
