package stack

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// Names of what resync has.
const (
	ResyncQueue    = "elbridge-resync" // requests for a round at once
	ResyncDead     = "elbridge-resync-dead"
	ResyncQueueARN = "arn:aws:sqs:" + Region + ":" + Account + ":" + ResyncQueue
	ResyncDeadARN  = "arn:aws:sqs:" + Region + ":" + Account + ":" + ResyncDead
	ResyncSchedule = "elbridge-resync"   // rule of the default bus
	TriggersRule   = "elbridge-triggers" // rule of our bus: what the webhook says that asks for a round

	triggersPattern = `{"source":["elbridge"],"detail-type":["Webhook Started","Events Dropped"]}`

	resyncARN = "arn:aws:lambda:" + Region + ":" + Account + ":function:" + Resync
)

const (
	// resyncTimeout is Lambda's longest; a run ends before it by itself.
	resyncTimeout = 15 * time.Minute
	// resyncMemoryMB is the function's.
	resyncMemoryMB = 256
	// resyncEventAge is how long a schedule's event waits for the run before it to
	// end: Lambda's shortest, and no longer than until the next event.
	resyncEventAge = time.Minute
	// defaultInterval is resync's own default.
	defaultInterval = 20 * time.Second
	// requestVisibility is how long a run keeps a request: a round is done in less.
	requestVisibility = time.Minute
	// requestReceives is how many runs may die of one request.
	requestReceives = 5
)

// setUpResync makes the queue of requests and the rule that sends the webhook's
// to it, whole.
func (a *AWS) setUpResync(ctx context.Context) error {
	_, err := a.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new(ResyncDead), Attributes: map[string]string{"Policy": queuePolicy(ResyncDeadARN)}})
	if err != nil {
		return err
	}
	_, err = a.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new(ResyncQueue), Attributes: map[string]string{
		"VisibilityTimeout": fmt.Sprint(int(requestVisibility.Seconds())),
		"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, ResyncDeadARN, requestReceives),
		"Policy":            requestPolicy(),
	}})
	if err != nil {
		return err
	}
	return a.forward(ctx, Bus, TriggersRule, triggersPattern, "", types.Target{
		Id: new("resync"), Arn: new(ResyncQueueARN),
		RetryPolicy:      &types.RetryPolicy{MaximumEventAgeInSeconds: new(int32(900)), MaximumRetryAttempts: new(int32(185))},
		DeadLetterConfig: &types.DeadLetterConfig{Arn: new(ResyncDeadARN)},
	})
}

// requestPolicy lets the rules of our bus send requests, and whoever in this
// account has the right by its own policies.
func requestPolicy() string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[`+
		`{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":%[1]q,`+
		`"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:%[2]s:%[3]s:rule/%[4]s/*"}}},`+
		`{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::%[3]s:root"},"Action":"sqs:SendMessage","Resource":%[1]q}]}`, ResyncQueueARN, Region, Account, Bus)
}

// forward makes a rule that hands its events to one target.
func (a *AWS) forward(ctx context.Context, bus, name, pattern, schedule string, target types.Target) error {
	rule := &eventbridge.PutRuleInput{Name: &name, EventBusName: &bus}
	if pattern != "" {
		rule.EventPattern = &pattern
	}
	if schedule != "" {
		rule.ScheduleExpression = &schedule
	}
	if _, err := a.Events.PutRule(ctx, rule); err != nil {
		return err
	}
	out, err := a.Events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &name, EventBusName: &bus, Targets: []types.Target{target}})
	if err == nil && out.FailedEntryCount > 0 {
		err = fmt.Errorf("target of rule %s: %s: %s", name, *out.FailedEntries[0].ErrorCode, *out.FailedEntries[0].ErrorMessage)
	}
	return err
}

// resync is the function: one run at a time (reserved concurrency), which nobody
// repeats but the schedule.
func (s *Stack) resync(endpoint string) functions.Function {
	env := functionEnv(resyncRole, endpoint)
	env[telemetry.EnvLogLevel] = s.Config.LogLevel.String()
	env[telemetry.EnvDeadLetterURL] = queueURL(endpoint, ResyncDead)
	env[telemetry.EnvResyncInterval] = s.Config.ResyncInterval.String()
	if s.Config.RunLength > 0 {
		env[telemetry.EnvRunLength] = s.Config.RunLength.String()
	}
	if s.Config.RateShare > 0 {
		env[telemetry.EnvRateShare] = strconv.FormatFloat(s.Config.RateShare, 'f', -1, 64)
	}
	return functions.Function{Name: Resync, Bootstrap: s.Config.resyncBootstrap(), Env: env, Timeout: resyncTimeout, MemoryMB: resyncMemoryMB,
		MaxConcurrency: 1, AsyncRetries: functions.NoRetries, AsyncMaxAge: resyncEventAge}
}

// startResync makes the schedule and begins the first run, for which the
// schedule would need a minute.
func (s *Stack) startResync(ctx context.Context) error {
	err := s.AWS.forward(ctx, "default", ResyncSchedule, "", "rate(1 minute)", types.Target{Id: new("resync"), Arn: new(resyncARN)})
	if err != nil {
		return err
	}
	return s.RunResync(ctx)
}

// RunResync begins a run now, as the schedule would: it waits for its turn while
// another one runs.
func (s *Stack) RunResync(ctx context.Context) error {
	_, err := s.Runner.InvokeAsync(ctx, Resync, []byte(`{}`))
	return err
}

// KillResync kills the run that goes on now, wherever in a round it is, and
// returns whether there was one. The schedule begins the next one.
func (s *Stack) KillResync() bool { return s.Runner.Kill(Resync) > 0 }

// ScheduleResync has the schedule begin runs, or no more of them. A run that
// goes on, goes on.
func (s *Stack) ScheduleResync(ctx context.Context, on bool) error {
	var err error
	if on {
		_, err = s.AWS.Events.EnableRule(ctx, &eventbridge.EnableRuleInput{Name: new(ResyncSchedule)})
	} else {
		_, err = s.AWS.Events.DisableRule(ctx, &eventbridge.DisableRuleInput{Name: new(ResyncSchedule)})
	}
	return err
}
