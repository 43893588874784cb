package queue_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/elbridge/elbridge/pkg/queue"
)

const (
	queueURL = "http://127.0.0.1/111122223333/bindings"
	deadURL  = "http://127.0.0.1/111122223333/bindings-dead"
)

func TestBatch(t *testing.T) {
	raw, err := os.ReadFile("testdata/invocation.json")
	if err != nil {
		t.Fatal(err)
	}
	var in events.SQSEvent
	if err := json.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	got := queue.Batch(in)
	want := []queue.Message{
		{ID: "m-1", Body: `{"binding":{}}`, Receipt: "receipt-1", Sent: time.UnixMilli(1796040000123), Receives: 3, Sender: "AIDAEXAMPLE"},
		{ID: "m-2", Body: "", Receipt: "receipt-2"},  // without attributes
		{ID: "m-3", Body: "x", Receipt: "receipt-3"}, // with ones that are no numbers
	}
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("message %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if !got[1].Sent.IsZero() {
		t.Error("an unknown time is not zero")
	}
}

func TestResponse(t *testing.T) {
	tests := map[string]struct {
		failed []string
		want   string
	}{
		"all succeeded": {nil, `{"batchItemFailures":[]}`},
		"some failed":   {[]string{"m-2", "m-9"}, `{"batchItemFailures":[{"itemIdentifier":"m-2"},{"itemIdentifier":"m-9"}]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(queue.Response(tt.failed))
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, error %v; want %s", got, err, tt.want)
			}
		})
	}
}

// call is a request to SQS as it was on the wire.
type call struct {
	action string
	body   struct {
		QueueURL          string `json:"QueueUrl"`
		ReceiptHandle     string
		VisibilityTimeout *int
		MessageBody       string
		MessageAttributes map[string]struct{ DataType, StringValue string }

		MaxNumberOfMessages         int
		WaitTimeSeconds             *int
		MessageSystemAttributeNames []string
	}
}

func serve(t *testing.T, refuse string) (*queue.Client, *[]call) {
	t.Helper()
	api, calls := sdk(t, refuse, `{"MessageId":"dead-1"}`)
	return queue.New(api, queueURL, deadURL), calls
}

// sdk is the SDK's client with a service that gives one answer, or refuses.
func sdk(t *testing.T, refuse, answer string) (*sqs.Client, *[]call) {
	t.Helper()
	var calls []call
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := call{action: strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")}
		if err := json.NewDecoder(r.Body).Decode(&c.body); err != nil {
			panic(err)
		}
		calls = append(calls, c)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if refuse != "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"` + refuse + `","message":"as told"}`))
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(srv.Close)
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: &srv.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", "")}
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true }), &calls
}

func TestAgain(t *testing.T) {
	tests := map[time.Duration]int{
		-time.Second:            0,
		0:                       0,
		time.Millisecond:        1,
		400 * time.Millisecond:  1,
		time.Second:             1,
		1600 * time.Millisecond: 2,
		30 * time.Second:        30,
		12 * time.Hour:          43200,
		13 * time.Hour:          43200,
		1 << 62:                 43200,
	}
	c, calls := serve(t, "")
	for wait, want := range tests {
		*calls = nil
		if err := c.Again(t.Context(), queue.Message{ID: "m-1", Receipt: "receipt-1"}, wait); err != nil {
			t.Fatal(err)
		}
		got := (*calls)[0]
		if got.action != "ChangeMessageVisibility" || got.body.QueueURL != queueURL || got.body.ReceiptHandle != "receipt-1" ||
			got.body.VisibilityTimeout == nil || *got.body.VisibilityTimeout != want {
			t.Errorf("after %s: %+v, want a visibility of %d s", wait, got, want)
		}
	}
}

func TestBury(t *testing.T) {
	long := strings.Repeat("é", 600) // two bytes each
	tests := map[string]struct{ reason, want string }{
		"as it is":                       {"rule web: port 70000: want 1 to 65535\n\tor a name", "rule web: port 70000: want 1 to 65535\n\tor a name"},
		"long: cut between characters":   {long, strings.Repeat("é", 512)},
		"none":                           {"", "no reason was given"},
		"quotes a body that is no text":  {"bad \x00\x1b\xff body \uffff", "bad ??? body ?"},
		"characters of the other planes": {"😀", "😀"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, calls := serve(t, "")
			if err := c.Bury(t.Context(), queue.Message{ID: "m-1", Body: "not ours", Receipt: "receipt-1"}, tt.reason); err != nil {
				t.Fatal(err)
			}
			got := (*calls)[0]
			if got.action != "SendMessage" || got.body.QueueURL != deadURL || got.body.MessageBody != "not ours" {
				t.Errorf("sent %+v, want the body as it was to the dead-letter queue", got)
			}
			a := got.body.MessageAttributes
			if reason := a[queue.AttributeReason]; reason.StringValue != tt.want || reason.DataType != "String" {
				t.Errorf("reason %+v, want %q", reason, tt.want)
			}
			if id := a[queue.AttributeMessageID]; id.StringValue != "m-1" || id.DataType != "String" {
				t.Errorf("message id %+v, want m-1", id)
			}
		})
	}
}

func TestErrorsNameTheMessage(t *testing.T) {
	c, _ := serve(t, "com.amazonaws.sqs#ReceiptHandleIsInvalid")
	m := queue.Message{ID: "m-1", Body: "x", Receipt: "receipt-1"}
	for what, err := range map[string]error{"Again": c.Again(t.Context(), m, time.Second), "Bury": c.Bury(t.Context(), m, "why")} {
		if _, ok := errors.AsType[smithy.APIError](err); !ok || !strings.Contains(err.Error(), "message m-1") {
			t.Errorf("%s: %v; want the message's id and the SDK's error", what, err)
		}
	}
}
