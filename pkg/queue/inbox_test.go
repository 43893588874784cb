package queue_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

const resyncURL = "http://127.0.0.1/111122223333/elbridge-resync"

func TestReceive(t *testing.T) {
	api, calls := sdk(t, "", `{"Messages":[
		{"MessageId":"m-1","Body":"{}","ReceiptHandle":"receipt-1","Attributes":{"SenderId":"AROAEXAMPLE:ops","SentTimestamp":"1796040000123","ApproximateReceiveCount":"2"}},
		{"MessageId":"m-2","Body":"x","ReceiptHandle":"receipt-2"}]}`)
	got, err := queue.NewInbox(api, resyncURL, deadURL).Receive(t.Context(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := []queue.Message{
		{ID: "m-1", Body: "{}", Receipt: "receipt-1", Sent: time.UnixMilli(1796040000123), Receives: 2, Sender: "AROAEXAMPLE:ops"},
		{ID: "m-2", Body: "x", Receipt: "receipt-2"}, // without attributes
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	asked := (*calls)[0]
	if asked.action != "ReceiveMessage" || asked.body.QueueURL != resyncURL || asked.body.MaxNumberOfMessages != 10 ||
		!slices.Equal(asked.body.MessageSystemAttributeNames, []string{"SenderId", "SentTimestamp", "ApproximateReceiveCount"}) {
		t.Errorf("asked %+v, want up to 10 messages with their sender, time and receives", asked)
	}
}

func TestReceiveWaits(t *testing.T) {
	tests := map[time.Duration]int{-time.Second: 0, 0: 0, 400 * time.Millisecond: 0, 1600 * time.Millisecond: 2, 20 * time.Second: 20, time.Minute: 20}
	api, calls := sdk(t, "", `{}`)
	inbox := queue.NewInbox(api, resyncURL, deadURL)
	for wait, want := range tests {
		*calls = nil
		ms, err := inbox.Receive(t.Context(), wait)
		if err != nil || len(ms) != 0 {
			t.Fatalf("%v, error %v, want no message", ms, err)
		}
		seconds := 0
		if s := (*calls)[0].body.WaitTimeSeconds; s != nil {
			seconds = *s
		}
		if seconds != want {
			t.Errorf("a wait of %s: %d s, want %d", wait, seconds, want)
		}
	}
}

func TestDelete(t *testing.T) {
	api, calls := sdk(t, "", `{}`)
	inbox := queue.NewInbox(api, resyncURL, deadURL)
	m := queue.Message{ID: "m-1", Body: "{", Receipt: "receipt-1"}
	if err := inbox.Bury(t.Context(), m, "not valid JSON"); err != nil {
		t.Fatal(err)
	}
	if err := inbox.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	buried, deleted := (*calls)[0], (*calls)[1]
	if buried.action != "SendMessage" || buried.body.QueueURL != deadURL || buried.body.MessageBody != "{" {
		t.Errorf("buried as %+v", buried)
	}
	if deleted.action != "DeleteMessage" || deleted.body.QueueURL != resyncURL || deleted.body.ReceiptHandle != "receipt-1" {
		t.Errorf("deleted as %+v", deleted)
	}
}

// Two requests are two: an id names one in the record.
func TestAsk(t *testing.T) {
	api, calls := sdk(t, "", `{"MessageId":"m-1"}`)
	requests := queue.NewRequests(api, resyncURL)
	ids := map[string]bool{}
	for range 2 {
		if err := requests.Ask(t.Context(), []string{"arn:a", "arn:b"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range *calls {
		var got struct {
			Schema  int
			Trigger string
			Request targetevent.Request
			DryRun  bool
		}
		if err := json.Unmarshal([]byte(c.body.MessageBody), &got); err != nil {
			t.Fatal(err)
		}
		if c.action != "SendMessage" || c.body.QueueURL != resyncURL || got.Schema != 1 || got.Trigger != "hint-expired" || got.DryRun ||
			!slices.Equal(got.Request.Groups, []string{"arn:a", "arn:b"}) {
			t.Errorf("sent %+v", c)
		}
		if !uuid.MatchString(got.Request.ID) {
			t.Errorf("id %q is no random UUID", got.Request.ID)
		}
		ids[got.Request.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("ids %v, want two", ids)
	}
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestErrorsNameTheQueue(t *testing.T) {
	api, _ := sdk(t, "com.amazonaws.sqs#QueueDoesNotExist", "")
	inbox := queue.NewInbox(api, resyncURL, deadURL)
	_, received := inbox.Receive(t.Context(), 0)
	deleted := inbox.Delete(t.Context(), queue.Message{ID: "m-1", Receipt: "receipt-1"})
	asked := queue.NewRequests(api, resyncURL).Ask(t.Context(), []string{"arn:a"})
	for part, err := range map[string]error{"receiving from " + resyncURL: received, "message m-1": deleted, "a request to " + resyncURL: asked} {
		if _, ok := errors.AsType[smithy.APIError](err); !ok || !strings.Contains(err.Error(), part) {
			t.Errorf("%v; want %q and the SDK's error", err, part)
		}
	}
}
