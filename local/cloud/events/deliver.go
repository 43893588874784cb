package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/sqs"
	"github.com/elbridge/elbridge/pkg/binding"
)

// Retries of a target without a retry policy.
const (
	defaultRetries = 185
	defaultMaxAge  = 24 * time.Hour
)

// principal is who EventBridge is to other services.
const principal = "events.amazonaws.com"

// delivery is one event on its way to one target.
type delivery struct {
	rule     binding.Rule
	target   target
	scope    core.Scope // of the bus
	env      envelope
	event    []byte
	ingested time.Time

	due      time.Time
	number   uint64
	attempts int
	verdict  *core.Verdict // of the faults, while a delay that they asked for runs
}

// Run delivers until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var g errgroup.Group
	for range s.count {
		g.Go(func() error {
			for d := s.work.next(ctx); d != nil; d = s.work.next(ctx) {
				s.deliver(ctx, d)
			}
			return nil
		})
	}
	return g.Wait()
}

// Pending is the number of deliveries that wait for their time or their next
// attempt.
func (s *Service) Pending() int { return s.work.length() }

// deliver makes one attempt.
func (s *Service) deliver(ctx context.Context, d *delivery) {
	call := s.server.NewInternal(d.scope, "events", "Deliver", principal, d.describe())
	v := d.verdict
	if v == nil {
		fresh := s.server.Consult(call)
		v = &fresh
		if v.Delay > 0 {
			d.verdict = v
			s.work.add(d, s.server.Clock.Now().Add(v.Delay))
			return
		}
	}
	d.verdict = nil
	d.attempts++
	code, err := s.attempt(ctx, d, *v)
	s.note(call, code, err)
	switch {
	case err == nil:
	case code == "NO_RESOURCE" || code == "NO_PERMISSIONS" || code == "SDK_CLIENT_ERROR":
		s.bury(d, code, err, "")
	default:
		s.again(d, code, err)
	}
}

// describe is what records show of a delivery.
func (d *delivery) describe() string {
	b, _ := json.Marshal(map[string]any{"rule": d.rule.ARN, "target": d.target.Arn, "eventId": d.env.ID, "attempt": d.attempts + 1}) // strings always marshal
	return string(b)
}

func (s *Service) note(call *core.Call, code string, err error) {
	if err == nil {
		s.server.Note(call, nil)
		return
	}
	s.server.Log.Warn("event not delivered", "code", code, "err", err)
	s.server.Note(call, &core.Error{Code: code, Message: err.Error()})
}

// attempt does what the faults leave of a delivery.
func (s *Service) attempt(ctx context.Context, d *delivery, v core.Verdict) (code string, err error) {
	switch {
	case v.LostRequest:
		return "", nil // gone, and nobody knows
	case v.Err != nil:
		return "INTERNAL_ERROR", v.Err
	}
	times := 1
	if v.Duplicate {
		times = 2
	}
	for range times {
		if code, err = s.hand(ctx, d); err != nil {
			return code, err
		}
	}
	if v.LostAnswer {
		return "TIMEOUT", errors.New("the target's answer was lost by a fault")
	}
	return "", nil
}

// hand gives the event to the target.
func (s *Service) hand(ctx context.Context, d *delivery) (code string, err error) {
	service, _, _ := strings.Cut(strings.TrimPrefix(d.target.Arn, "arn:aws:"), ":")
	if service == "events" {
		return s.handToBus(d)
	}
	input, err := binding.Render(d.rule, d.target.binding(), d.event, d.ingested)
	if err != nil {
		return "SDK_CLIENT_ERROR", fmt.Errorf("rendering the input of target %s of rule %s: %w", d.target.Id, d.rule.ARN, err)
	}
	switch service {
	case "sqs":
		return s.handToQueue(d, d.target.Arn, string(input), nil)
	case "lambda":
		return s.handToFunction(ctx, d, input)
	case "logs":
		return s.handToLogGroup(d, input)
	}
	return "NO_RESOURCE", fmt.Errorf("target %s of rule %s: the local cloud delivers to queues, functions, log groups and buses only", d.target.Arn, d.rule.ARN)
}

func (s *Service) handToQueue(d *delivery, arn, body string, attributes map[string]string) (string, error) {
	_, err := s.queues.Deliver(sqs.Delivery{Service: principal, SourceARN: d.rule.ARN, Account: d.scope.Account, QueueARN: arn, Body: body, Text: attributes})
	switch {
	case errors.Is(err, sqs.ErrNoQueue):
		return "NO_RESOURCE", err
	case errors.Is(err, sqs.ErrNotPermitted):
		return "NO_PERMISSIONS", err
	case err != nil:
		return "SDK_CLIENT_ERROR", err
	}
	return "", nil
}

func (s *Service) handToFunction(ctx context.Context, d *delivery, input []byte) (string, error) {
	if s.lambda == nil {
		return "NO_RESOURCE", fmt.Errorf("target %s of rule %s: the local cloud has no functions", d.target.Arn, d.rule.ARN)
	}
	_, name, _ := strings.Cut(d.target.Arn, ":function:")
	name, _, _ = strings.Cut(name, ":") // without a version or alias
	_, err := s.lambda.InvokeAsync(ctx, name, input)
	switch {
	case err == nil:
		return "", nil
	case s.noLambda != nil && s.noLambda(err):
		return "NO_RESOURCE", err
	}
	return "THROTTLING", err
}

// handToBus passes the event on as it is; the bus's policy decides if it is of
// another account.
func (s *Service) handToBus(d *delivery) (string, error) {
	id, ok := parseBusARN(d.target.Arn)
	if !ok {
		return "NO_RESOURCE", fmt.Errorf("target %s of rule %s is not a bus", d.target.Arn, d.rule.ARN)
	}
	s.mu.Lock()
	exists := s.lookup(id) != nil
	s.mu.Unlock()
	if !exists {
		return "NO_RESOURCE", fmt.Errorf("bus %s, a target of rule %s, does not exist", d.target.Arn, d.rule.ARN)
	}
	env := d.env
	if env.hops++; env.hops > maxHops {
		return "NO_PERMISSIONS", fmt.Errorf("rule %s: the event has been through %d buses", d.rule.ARN, maxHops)
	}
	if err := s.publish(id, core.Principal{Account: d.scope.Account, ARN: d.target.RoleArn}, env, s.server.Clock.Now()); err != nil {
		return "NO_PERMISSIONS", err
	}
	return "", nil
}

// again queues the next attempt, unless the retry policy says that it was the
// last.
func (s *Service) again(d *delivery, code string, err error) {
	retries, age := defaultRetries, defaultMaxAge
	if p := d.target.RetryPolicy; p != nil {
		if p.MaximumRetryAttempts != nil {
			retries = *p.MaximumRetryAttempts
		}
		if p.MaximumEventAgeInSeconds != nil {
			age = time.Duration(*p.MaximumEventAgeInSeconds) * time.Second
		}
	}
	now := s.server.Clock.Now()
	next := now.Add(s.work.pause(d.attempts - 1))
	switch {
	case d.attempts > retries:
		s.bury(d, code, err, "MaximumRetryAttempts")
	case next.Sub(d.ingested) > age:
		s.bury(d, code, err, "MaximumEventAgeInSeconds")
	default:
		s.work.add(d, next)
	}
}

// bury sends the event to the target's dead-letter queue, or drops it.
func (s *Service) bury(d *delivery, code string, cause error, exhausted string) {
	if d.target.DeadLetterConfig == nil || d.target.DeadLetterConfig.Arn == "" {
		s.server.Log.Warn("event dropped", "rule", d.rule.ARN, "target", d.target.Arn, "event_id", d.env.ID, "code", code, "err", cause)
		return
	}
	attributes := map[string]string{"RULE_ARN": d.rule.ARN, "TARGET_ARN": d.target.Arn, "ERROR_CODE": code,
		"ERROR_MESSAGE": cause.Error(), "RETRY_ATTEMPTS": strconv.Itoa(d.attempts - 1)}
	if exhausted != "" {
		attributes["EXHAUSTED_RETRY_CONDITION"] = exhausted
	}
	call := s.server.NewInternal(d.scope, "events", "DeadLetter", principal, d.describe())
	code, err := s.handToQueue(d, d.target.DeadLetterConfig.Arn, string(d.event), attributes)
	s.note(call, code, err)
}
