package cloud_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// What is no call of AWS is answered with an error, and nothing breaks.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	w := start(t)
	tests := map[string]struct {
		method, path, target, body string
		status                     int
	}{
		"nothing":           {"GET", "/", "", "", 404},
		"unknown target":    {"POST", "/", "DynamoDB_20120810.PutItem", "{}", 400},
		"unsigned":          {"POST", "/", "AWSEvents.PutEvents", "{}", 400},
		"unknown path":      {"PUT", "/bucket/key", "", "x", 404},
		"unsigned cluster":  {"GET", "/clusters/local", "", "", 403},
		"over the limit":    {"POST", "/", "AWSEvents.PutEvents", strings.Repeat("x", 9<<20), 413},
		"control, unknown":  {"GET", "/_local/nothing", "", "", 404},
		"control, bad body": {"POST", "/_local/events/fire", "", "{", 400},
		"control, no rule":  {"POST", "/_local/events/fire", "", `{"rule":"x"}`, 404},
		"control, no token": {"POST", "/_local/clusters/x/token", "", `{}`, 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), tt.method, w.url+tt.path, strings.NewReader(tt.body)))
			if tt.target != "" {
				r.Header.Set("X-Amz-Target", tt.target)
			}
			resp := must[*http.Response](t)(http.DefaultClient.Do(r))
			defer resp.Body.Close()
			if body, _ := io.ReadAll(resp.Body); resp.StatusCode != tt.status {
				t.Errorf("%d %s, want %d", resp.StatusCode, body, tt.status)
			}
		})
	}
}

func TestInvokeOfLambda(t *testing.T) {
	t.Parallel()
	w := start(t)
	if err := w.RegisterLambda(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Amz-Executed-Version", "$LATEST")
		fmt.Fprintf(rw, "%s got %s", r.URL.Path, body)
	})); err != nil {
		t.Fatal(err)
	}
	sign := func(secret string) *http.Response {
		payload := []byte(`{"a":1}`)
		r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), "POST", w.url+"/2015-03-31/functions/resync/invocations", bytes.NewReader(payload)))
		sum := sha256.Sum256(payload)
		if err := v4.NewSigner().SignHTTP(context.WithoutCancel(t.Context()), aws.Credentials{AccessKeyID: alice.AccessKeyID, SecretAccessKey: secret}, r,
			hex.EncodeToString(sum[:]), "lambda", region, time.Now()); err != nil {
			t.Fatal(err)
		}
		return must[*http.Response](t)(http.DefaultClient.Do(r))
	}
	resp := sign(alice.SecretAccessKey)
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != `/2015-03-31/functions/resync/invocations got {"a":1}` || resp.Header.Get("X-Amz-Executed-Version") != "$LATEST" {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
	if bad := sign("guess"); bad.StatusCode != http.StatusForbidden {
		t.Errorf("with a wrong signature: %d", bad.StatusCode)
	}
	if err := w.Register("s3", core.ServiceFunc(nil)); err == nil {
		t.Error("a service that the core does not know was registered")
	}
}

// BenchmarkEventToQueue is the local stack's share of the way from PutEvents
// to the end of a long poll, over the wire and through the SDK.
func BenchmarkEventToQueue(b *testing.B) {
	w := startReal(b)
	ctx := b.Context()
	bus := aws.String("elbridge")
	policy := `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*"}]}`
	q, err := w.sqs().CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: map[string]string{"Policy": policy}})
	if err != nil {
		b.Fatal(err)
	}
	for _, err := range []error{
		second(w.events().CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: bus})),
		second(w.events().PutRule(ctx, &eventbridge.PutRuleInput{Name: aws.String("r"), EventBusName: bus, EventPattern: aws.String(anyPod)})),
		second(w.events().PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: aws.String("r"), EventBusName: bus, Targets: []types.Target{to("q", "arn:aws:sqs:eu-west-1:111122223333:q")}})),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	events, queues := w.events(), w.sqs()
	b.ReportAllocs()
	for b.Loop() {
		got := make(chan error, 1)
		go func() {
			out, err := queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 20})
			if err == nil && len(out.Messages) != 1 {
				err = fmt.Errorf("%d messages", len(out.Messages))
			}
			got <- err
		}()
		if _, err := events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{podEvent(`{"a":1}`)}}); err != nil {
			b.Fatal(err)
		}
		if err := <-got; err != nil {
			b.Fatal(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
