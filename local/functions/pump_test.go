package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/elbridge/elbridge/local/cloud/core"
	cloudsqs "github.com/elbridge/elbridge/local/cloud/sqs"
)

// bench is the local cloud's SQS with a queue and a dead-letter queue behind a
// real client; visibility passes only when its clock is stepped.
type bench struct {
	t          testing.TB
	clock      *core.FakeClock
	client     *sqs.Client
	queue, dlq string // URLs
}

const visibility = 60 * time.Second

func newBench(t testing.TB, maxReceives int) *bench {
	t.Helper()
	b := &bench{t: t, clock: core.NewFakeClock(time.Now())}
	cloud, err := core.NewServer(core.Options{Clock: b.clock, Principals: []core.Principal{{
		AccessKeyID: "AKIDTEST", SecretAccessKey: "secret", Account: "111122223333", ARN: "arn:aws:iam::111122223333:user/test",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := cloud.Register("sqs", cloudsqs.New(b.clock)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	b.client = sqs.New(sqs.Options{
		BaseEndpoint: &server.URL, Region: "eu-west-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", ""),
	})
	b.dlq = b.create("binding-dlq", nil)
	b.queue = b.create("binding", map[string]string{
		"VisibilityTimeout": fmt.Sprint(int(visibility / time.Second)),
		"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, queueARN+"-dlq", maxReceives),
	})
	return b
}

func (b *bench) create(name string, attributes map[string]string) string {
	b.t.Helper()
	out, err := b.client.CreateQueue(b.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		b.t.Fatal(err)
	}
	return *out.QueueUrl
}

func (b *bench) send(bodies ...string) {
	b.t.Helper()
	for len(bodies) > 0 {
		n := min(10, len(bodies))
		in := &sqs.SendMessageBatchInput{QueueUrl: &b.queue}
		for i, body := range bodies[:n] {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body})
		}
		if _, err := b.client.SendMessageBatch(b.t.Context(), in); err != nil {
			b.t.Fatal(err)
		}
		bodies = bodies[n:]
	}
}

// holds reports "VISIBLE+INVISIBLE" messages of a queue.
func (b *bench) holds(url string) string {
	b.t.Helper()
	out, err := b.client.GetQueueAttributes(b.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"] + "+" + out.Attributes["ApproximateNumberOfMessagesNotVisible"]
}

// run starts a pump and returns it with a function that stops it.
func (b *bench) run(p *Pump) (stop func()) {
	b.t.Helper()
	p.SQS, p.QueueURL = b.client, b.queue
	if p.Function == "" {
		p.Function = "f"
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				b.t.Errorf("Run: %v", err)
			}
			if s := p.Stats(); s.Pollers != 0 || s.Concurrent != 0 {
				b.t.Errorf("after the end: %+v", s)
			}
		})
	}
	b.t.Cleanup(stop)
	return stop
}

// handler makes an Invoker of a function over records.
type handler func(records []events.SQSMessage) (answer string, err error)

func (h handler) Invoke(_ context.Context, _ string, payload []byte) (Result, error) {
	var in events.SQSEvent
	if err := json.Unmarshal(payload, &in); err != nil {
		return Result{}, err
	}
	answer, err := h(in.Records)
	if errors.Is(err, ErrThrottled) || errors.Is(err, ErrClosed) {
		return Result{}, err
	}
	if err != nil {
		return Result{FunctionError: "Unhandled", ErrorType: "errorString", ErrorMessage: err.Error()}, nil
	}
	return Result{Payload: []byte(answer)}, nil
}

func (handler) InvokeAsync(context.Context, string, []byte) (string, error) {
	return "", errors.New("a pump invokes synchronously")
}

// failing answers with the ids of the messages whose body is "fail".
func failing(records []events.SQSMessage) (string, error) {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, r := range records {
		if r.Body == "fail" {
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		}
	}
	answer, err := json.Marshal(out)
	return string(answer), err
}

func TestPumpLeavesOnlyWhatFailed(t *testing.T) {
	b := newBench(t, 5)
	var mu sync.Mutex
	var seen []string
	p := &Pump{Invoker: handler(func(records []events.SQSMessage) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range records {
			if r.EventSourceARN != queueARN || r.AWSRegion != "eu-west-1" || r.EventSource != "aws:sqs" || r.ReceiptHandle == "" || r.Md5OfBody == "" ||
				r.Attributes["SentTimestamp"] == "" || r.Attributes["SenderId"] == "" || r.Attributes["ApproximateFirstReceiveTimestamp"] == "" {
				t.Errorf("record %+v", r)
			}
			seen = append(seen, r.Body+"#"+r.Attributes["ApproximateReceiveCount"])
		}
		return failing(records)
	})}
	b.send("ok", "fail", "ok")
	b.run(p)
	eventually(t, "two are deleted, one stays invisible", func() bool { return p.Stats().Deleted == 2 && b.holds(b.queue) == "0+1" })
	b.clock.Step(visibility + time.Second)
	eventually(t, "the one comes again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(seen, " "), "fail#2")
	})
	if s := p.Stats(); s.Received != 4 || s.BatchErrors != 0 {
		t.Errorf("counts %+v", s)
	}
}

func TestPumpPoisonEndsInTheDeadLetterQueue_P091(t *testing.T) {
	b := newBench(t, 2)
	p := &Pump{Invoker: handler(failing)}
	b.send("ok", "fail", "ok")
	b.run(p)
	for n := 1; n <= 2; n++ {
		eventually(t, fmt.Sprintf("try %d", n), func() bool { return p.Stats().Failed == n && b.holds(b.queue) == "0+1" })
		b.clock.Step(visibility + time.Second)
	}
	eventually(t, "it is moved", func() bool { return b.holds(b.queue) == "0+0" && b.holds(b.dlq) == "1+0" })
	if s := p.Stats(); s.Deleted != 2 || s.Failed != 2 {
		t.Errorf("counts %+v", s)
	}
}

func TestPumpWholeBatchFails(t *testing.T) {
	tests := map[string]handler{
		"function error": func([]events.SQSMessage) (string, error) { return "", errors.New("bad") },
		"wrong answer":   func([]events.SQSMessage) (string, error) { return `{"batchItemFailures":[{"id":"x"}]}`, nil },
		"no runner":      func([]events.SQSMessage) (string, error) { return "", ErrClosed },
	}
	for name, h := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 5)
			p := &Pump{Invoker: h}
			b.send("ok", "ok", "ok")
			b.run(p)
			eventually(t, "all stay", func() bool { return p.Stats().Failed == 3 && b.holds(b.queue) == "0+3" })
			if s := p.Stats(); s.Deleted != 0 || s.BatchErrors == 0 {
				t.Errorf("counts %+v", s)
			}
		})
	}
}

func TestPumpRetriesWhenThrottled(t *testing.T) {
	b := newBench(t, 5)
	var calls atomic.Int32
	p := &Pump{Invoker: handler(func(records []events.SQSMessage) (string, error) {
		if calls.Add(1) <= 2 {
			return "", ErrThrottled
		}
		if n := records[0].Attributes["ApproximateReceiveCount"]; n != "1" {
			t.Errorf("received %s times, want once", n)
		}
		return "", nil
	})}
	b.send("ok")
	b.run(p)
	eventually(t, "it is deleted", func() bool { return p.Stats().Deleted == 1 })
	if s := p.Stats(); s.Batches != 1 || s.BatchErrors != 0 {
		t.Errorf("counts %+v", s)
	}
}

func TestPumpScalesWithLoad_P092(t *testing.T) {
	b := newBench(t, 5)
	open := make(chan struct{})
	p := &Pump{MaxConcurrency: 7, Invoker: handler(func(records []events.SQSMessage) (string, error) {
		if records[0].Body == "slow" {
			<-open
		}
		return "", nil
	})}
	slow := make([]string, 60)
	for i := range slow {
		slow[i] = "slow"
	}
	b.send(slow...)
	b.run(p)
	eventually(t, "more than the first five run, and seven at most", func() bool { return p.Stats().Concurrent > startPollers })
	close(open)
	eventually(t, "all are done", func() bool { return p.Stats().Deleted == 60 })
	if s := p.Stats(); s.MaxConcurrent > 7 {
		t.Errorf("counts %+v", s)
	}
}

func TestPumpFinishesWhatItBegan(t *testing.T) {
	b := newBench(t, 5)
	open, begun := make(chan struct{}), make(chan struct{})
	p := &Pump{Invoker: handler(func([]events.SQSMessage) (string, error) {
		close(begun)
		<-open
		return "", nil
	})}
	b.send("ok")
	stop := b.run(p)
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	close(open)
	<-stopped
	if got := b.holds(b.queue); got != "0+0" {
		t.Errorf("the queue holds %s, want nothing", got)
	}
}

func TestPumpRefusesAnUnfitQueue(t *testing.T) {
	b := newBench(t, 5)
	p := &Pump{SQS: b.client, QueueURL: b.queue, Function: "f", Timeout: 2 * visibility}
	if err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "visibility time-out 1m0s") {
		t.Errorf("short visibility: %v", err)
	}
	p = &Pump{SQS: b.client, QueueURL: b.queue + "-none", Function: "f"}
	if err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "binding-none") {
		t.Errorf("no queue: %v", err)
	}
}

// A real function between a real client and the local cloud's queue.
func TestPumpWithEmulatedFunction(t *testing.T) {
	r := emulate(t, Config{}, Function{})
	b := newBench(t, 2)
	p := &Pump{Invoker: r, Function: "echo"}
	b.run(p)
	b.send("ok", "fail", "ok")
	eventually(t, "two are deleted", func() bool { return p.Stats().Deleted == 2 && b.holds(b.queue) == "0+1" })
	b.send("exit")
	eventually(t, "the process exits and its message stays", func() bool { return r.Stats("echo").Crashes == 1 && b.holds(b.queue) == "0+2" })
	b.clock.Step(visibility + time.Second)
	eventually(t, "both fail again", func() bool { return p.Stats().Failed >= 4 && b.holds(b.queue) == "0+2" })
	b.clock.Step(visibility + time.Second)
	eventually(t, "both are moved", func() bool { return b.holds(b.queue) == "0+0" && b.holds(b.dlq) == "2+0" })
	b.send("ok")
	eventually(t, "work goes on", func() bool { return p.Stats().Deleted == 3 })
}

// BenchmarkPump times a message from its sending to its deletion, through the
// local cloud's queue and a function that does nothing.
func BenchmarkPump(b *testing.B) {
	r := emulate(b, Config{}, Function{})
	q := newBench(b, 5)
	p := &Pump{Invoker: r, Function: "echo"}
	q.run(p)
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		began, deleted := time.Now(), p.Stats().Deleted
		q.send("ok")
		eventually(b, "it is deleted", func() bool { return p.Stats().Deleted > deleted })
		times = append(times, time.Since(began))
	}
	report(b, times)
}
