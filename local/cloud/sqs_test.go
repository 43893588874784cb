package cloud_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func (w *world) queue(t *testing.T, name string, attributes ...string) string {
	t.Helper()
	in := &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{}}
	for i := 0; i+1 < len(attributes); i += 2 {
		in.Attributes[attributes[i]] = attributes[i+1]
	}
	return *must[*sqs.CreateQueueOutput](t)(w.sqs().CreateQueue(t.Context(), in)).QueueUrl
}

func (w *world) send(t *testing.T, queue, body string) {
	t.Helper()
	must[*sqs.SendMessageOutput](t)(w.sqs().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}))
}

func (w *world) receive(t *testing.T, queue string) []types.Message {
	t.Helper()
	return must[*sqs.ReceiveMessageOutput](t)(w.sqs().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, MessageAttributeNames: []string{"All"}})).Messages
}

func bodies(all []types.Message) string {
	var out []string
	for _, m := range all {
		out = append(out, *m.Body)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (w *world) delete(t *testing.T, queue string, handle *string) {
	t.Helper()
	must[*sqs.DeleteMessageOutput](t)(w.sqs().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: handle}))
}

func (w *world) attribute(t *testing.T, queue, name string) string {
	t.Helper()
	return must[*sqs.GetQueueAttributesOutput](t)(w.sqs().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &queue,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeName(name)}})).Attributes[name]
}

func TestMessageComesBackUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	w := start(t)
	q := w.queue(t, "q", "VisibilityTimeout", "60")
	w.send(t, q, "one")

	first := w.receive(t, q)
	if bodies(first) != "one" || first[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Fatalf("first receive: %+v", first)
	}
	sent := strconv.FormatInt(w.clock.Now().UnixMilli(), 10)
	if a := first[0].Attributes; a["SentTimestamp"] != sent || a["ApproximateFirstReceiveTimestamp"] != sent || a["SenderId"] == "" {
		t.Errorf("attributes %v, want both timestamps %s and a sender", a, sent)
	}
	if got := w.receive(t, q); len(got) != 0 {
		t.Fatalf("received %q while it was in flight", bodies(got))
	}
	if n := w.attribute(t, q, "ApproximateNumberOfMessagesNotVisible"); n != "1" {
		t.Errorf("%s messages in flight, want 1", n)
	}

	w.clock.Step(60 * time.Second)
	second := w.receive(t, q)
	if bodies(second) != "one" || second[0].Attributes["ApproximateReceiveCount"] != "2" || second[0].Attributes["ApproximateFirstReceiveTimestamp"] != sent {
		t.Fatalf("second receive: %+v", second)
	}

	w.delete(t, q, first[0].ReceiptHandle) // stale: succeeds, does nothing
	w.clock.Step(60 * time.Second)
	third := w.receive(t, q)
	if bodies(third) != "one" {
		t.Fatal("a stale receipt handle deleted the message")
	}
	w.delete(t, q, third[0].ReceiptHandle)
	w.clock.Step(time.Hour)
	if got := w.receive(t, q); len(got) != 0 {
		t.Errorf("received %q after it was deleted", bodies(got))
	}
}

func TestVisibilityIsChanged(t *testing.T) {
	t.Parallel()
	w := start(t)
	q := w.queue(t, "q")
	change := func(handle *string, seconds int32) string {
		_, err := w.sqs().ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &q, ReceiptHandle: handle, VisibilityTimeout: seconds})
		return code(err)
	}
	w.send(t, q, "one")
	first := w.receive(t, q)
	if got := change(first[0].ReceiptHandle, 5); got != "" {
		t.Fatal(got)
	}
	w.clock.Step(5 * time.Second)
	second := w.receive(t, q)
	if bodies(second) != "one" {
		t.Fatal("the message did not come back after 5 s")
	}
	if got := change(first[0].ReceiptHandle, 5); got != "InvalidParameterValue" {
		t.Errorf("stale handle: %q, want InvalidParameterValue", got)
	}
	if got := change(second[0].ReceiptHandle, 43201); got != "InvalidParameterValue" {
		t.Errorf("12 hours and a second: %q, want InvalidParameterValue", got)
	}
	if got := change(second[0].ReceiptHandle, 0); got != "" || bodies(w.receive(t, q)) != "one" {
		t.Errorf("visibility 0 (%q) did not bring the message back at once", got)
	}
	if got := change(aws.String("rubbish"), 0); got != "ReceiptHandleIsInvalid" {
		t.Errorf("rubbish: %q, want ReceiptHandleIsInvalid", got)
	}
}

func TestLongPollWakes(t *testing.T) {
	t.Parallel()
	w := start(t)
	q := w.queue(t, "q")
	poll := func() chan string {
		got := make(chan string, 1)
		go func() {
			out, err := w.sqs().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
			if err != nil {
				got <- err.Error()
				return
			}
			got <- bodies(out.Messages)
		}()
		eventually(t, "the poll waits", func() bool { n, _ := w.clock.Timers(); return n == 1 })
		return got
	}
	t.Run("when a message is sent", func(t *testing.T) {
		got := poll()
		w.send(t, q, "one")
		if s := <-got; s != "one" {
			t.Errorf("got %q", s)
		}
	})
	t.Run("when a message comes back", func(t *testing.T) {
		got := poll()
		w.clock.Step(10 * time.Second) // nothing yet
		w.step(t, 10*time.Second)
		if s := <-got; s != "" {
			t.Errorf("got %q before the visibility timeout", s)
		}
		got = poll()
		w.clock.Step(10 * time.Second)
		if s := <-got; s != "one" {
			t.Errorf("got %q", s)
		}
	})
	t.Run("not for a client that left", func(t *testing.T) {
		q := w.queue(t, "q2")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			_, _ = w.sqs().ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
			close(gone)
		}()
		eventually(t, "the poll waits", func() bool { n, _ := w.clock.Timers(); return n == 1 })
		cancel()
		<-gone
		eventually(t, "the poll ended", func() bool { n, _ := w.clock.Timers(); return n == 0 })
		w.send(t, q, "two")
		if s := bodies(w.receive(t, q)); s != "two" {
			t.Errorf("got %q, want the message that the client which left did not take", s)
		}
	})
	t.Run("when the queue is deleted", func(t *testing.T) {
		q = w.queue(t, "q3")
		got := poll()
		must[*sqs.DeleteQueueOutput](t)(w.sqs().DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &q}))
		if s := <-got; !strings.Contains(s, "QueueDoesNotExist") && !strings.Contains(s, "NonExistentQueue") {
			t.Errorf("got %q", s)
		}
	})
}

func TestRedrive_P091(t *testing.T) {
	t.Parallel()
	w := start(t)
	dead := w.queue(t, "dead")
	arn := w.attribute(t, dead, "QueueArn")
	q := w.queue(t, "q", "VisibilityTimeout", "1", "RedrivePolicy", fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, arn))
	w.send(t, q, "poison")
	for range 2 {
		if s := bodies(w.receive(t, q)); s != "poison" {
			t.Fatalf("received %q", s)
		}
		w.clock.Step(time.Second)
	}
	if s := bodies(w.receive(t, q)); s != "" {
		t.Fatalf("received %q for the third time", s)
	}
	got := w.receive(t, dead)
	if bodies(got) != "poison" || got[0].Attributes["DeadLetterQueueSourceArn"] != w.attribute(t, q, "QueueArn") {
		t.Errorf("dead-letter queue holds %+v", got)
	}
	sources := must[*sqs.ListDeadLetterSourceQueuesOutput](t)(w.sqs().ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead}))
	if !slices.Equal(sources.QueueUrls, []string{q}) {
		t.Errorf("sources %v, want %s", sources.QueueUrls, q)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	w := start(t)
	q := w.queue(t, "q", "MaximumMessageSize", "1024")
	out := must[*sqs.SendMessageBatchOutput](t)(w.sqs().SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &q, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("a"), MessageBody: aws.String("one"), MessageAttributes: map[string]types.MessageAttributeValue{
			"kind": {DataType: aws.String("String"), StringValue: aws.String("x")}, "raw": {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2}}}},
		{Id: aws.String("b"), MessageBody: aws.String(strings.Repeat("x", 1025))},
		{Id: aws.String("c"), MessageBody: aws.String("late"), DelaySeconds: 30},
	}}))
	if len(out.Successful) != 2 || len(out.Failed) != 1 || *out.Failed[0].Id != "b" || !out.Failed[0].SenderFault {
		t.Fatalf("sent: %+v failed: %+v", out.Successful, out.Failed)
	}
	got := w.receive(t, q)
	if bodies(got) != "one" || *got[0].MessageAttributes["kind"].StringValue != "x" || string(got[0].MessageAttributes["raw"].BinaryValue) != "\x01\x02" {
		t.Fatalf("received %+v", got)
	}
	w.clock.Step(29 * time.Second)
	if s := bodies(w.receive(t, q)); s != "" {
		t.Errorf("received %q too early", s)
	}
	w.clock.Step(time.Second)
	got = append(got, w.receive(t, q)...)
	if bodies(got) != "late one one" { // "one" came back after its 30 s
		t.Errorf("received %q", bodies(got))
	}

	var entries []types.DeleteMessageBatchRequestEntry
	for i, m := range got {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String("bad"), ReceiptHandle: aws.String("nonsense")})
	deleted := must[*sqs.DeleteMessageBatchOutput](t)(w.sqs().DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: entries}))
	if len(deleted.Successful) != 3 || len(deleted.Failed) != 1 || *deleted.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Errorf("deleted: %+v failed: %+v", deleted.Successful, deleted.Failed)
	}
	w.clock.Step(time.Hour)
	if s := bodies(w.receive(t, q)); s != "" {
		t.Errorf("received %q after the batch deleted it", s)
	}
}

func TestQueueErrors(t *testing.T) {
	t.Parallel()
	w := start(t)
	ctx := t.Context()
	q := w.queue(t, "q", "VisibilityTimeout", "5")
	missing := w.url + "/111122223333/missing"
	eleven := make([]types.SendMessageBatchRequestEntry, 11)
	for i := range eleven {
		eleven[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String("x")}
	}
	twice := []types.SendMessageBatchRequestEntry{{Id: aws.String("a"), MessageBody: aws.String("x")}, {Id: aws.String("a"), MessageBody: aws.String("x")}}
	create := func(w *world, name string, attributes map[string]string) error {
		_, err := w.sqs().CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		return err
	}
	send := func(w *world, queue, body string) error {
		_, err := w.sqs().SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body})
		return err
	}
	batch := func(entries []types.SendMessageBatchRequestEntry) error {
		_, err := w.sqs().SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q, Entries: entries})
		return err
	}
	receive := func(most int32) error {
		_, err := w.sqs().ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q, MaxNumberOfMessages: most})
		return err
	}
	purge := func() error {
		_, err := w.sqs().PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &q})
		return err
	}
	tests := []struct {
		name string
		do   func() error
		want string
	}{
		{"no such queue", func() error { return send(w, missing, "x") }, "AWS.SimpleQueueService.NonExistentQueue"},
		{"not in this region", func() error { return send(w.at("eu-central-1"), q, "x") }, "AWS.SimpleQueueService.NonExistentQueue"},
		{"another account's", func() error { return send(w.by(other), q, "x") }, "AccessDenied"},
		{"created again alike", func() error { return create(w, "q", map[string]string{"VisibilityTimeout": "5"}) }, ""},
		{"created again otherwise", func() error { return create(w, "q", map[string]string{"VisibilityTimeout": "6"}) }, "QueueAlreadyExists"},
		{"bad name", func() error { return create(w, "a.b", nil) }, "InvalidParameterValue"},
		{"fifo", func() error { return create(w, "a.fifo", map[string]string{"FifoQueue": "true"}) }, "InvalidParameterValue"},
		{"bad visibility", func() error { return create(w, "r", map[string]string{"VisibilityTimeout": "43201"}) }, "InvalidAttributeValue"},
		{"unknown attribute", func() error { return create(w, "r", map[string]string{"Colour": "red"}) }, "InvalidAttributeName"},
		{"redrive to nowhere", func() error {
			return create(w, "r", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:111122223333:none","maxReceiveCount":3}`})
		}, "InvalidParameterValue"},
		{"empty body", func() error { return send(w, q, "") }, "MissingParameter"},
		{"control character", func() error { return send(w, q, "a\x01b") }, "InvalidMessageContents"},
		{"over a mebibyte", func() error { return send(w, q, strings.Repeat("x", 1<<20+1)) }, "InvalidParameterValue"},
		{"a mebibyte", func() error { return send(w, q, strings.Repeat("x", 1<<20)) }, ""},
		{"eleven entries", func() error { return batch(eleven) }, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"},
		{"ids repeated", func() error { return batch(twice) }, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"},
		{"eleven at once", func() error { return receive(11) }, "InvalidParameterValue"},
		{"purged", purge, ""},
		{"purged again", purge, "AWS.SimpleQueueService.PurgeQueueInProgress"},
		{"deleted", func() error { _, err := w.sqs().DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &q}); return err }, ""},
		{"created too soon", func() error { return create(w, "q", nil) }, "AWS.SimpleQueueService.QueueDeletedRecently"},
	}
	names := map[string]string{ // the Go SDK's words for codes that have a shape
		"AWS.SimpleQueueService.NonExistentQueue": "QueueDoesNotExist",
	}
	for _, tt := range tests { // in order: they build on each other
		got := code(tt.do())
		if got != tt.want && got != names[tt.want] {
			t.Errorf("%s: error %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestListQueuesInPages(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, name := range []string{"b1", "a", "b3", "b2"} {
		w.queue(t, name)
	}
	w.by(other).queue(t, "b4")
	var names []string
	pages := sqs.NewListQueuesPaginator(w.sqs(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("b"), MaxResults: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, u := range must[*sqs.ListQueuesOutput](t)(pages.NextPage(t.Context())).QueueUrls {
			names = append(names, u[strings.LastIndex(u, "/")+1:])
		}
	}
	if got := strings.Join(names, " "); got != "b1 b2 b3" {
		t.Errorf("queues %q", got)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	w := start(t)
	q := w.queue(t, "q", "MessageRetentionPeriod", "60")
	w.send(t, q, "old")
	w.clock.Step(61 * time.Second)
	w.send(t, q, "new")
	if s := bodies(w.receive(t, q)); s != "new" {
		t.Errorf("received %q", s)
	}
}
