package cloud_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// control sends a control request and returns status and answer.
func (w *world) control(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body)))
	resp := must[*http.Response](t)(http.DefaultClient.Do(r))
	defer resp.Body.Close()
	return resp.StatusCode, string(must[[]byte](t)(io.ReadAll(resp.Body)))
}

func TestFaultsOfCalls(t *testing.T) {
	t.Parallel()
	w := start(t)
	list := func(w *world) string {
		_, err := w.events().ListRules(t.Context(), &eventbridge.ListRulesInput{})
		return code(err)
	}
	queues := func() string { _, err := w.sqs().ListQueues(t.Context(), &sqs.ListQueuesInput{}); return code(err) }
	tests := []struct{ fault, events, sqs string }{
		{`{"kind":"throttle"}`, "ThrottlingException", "RequestThrottled"},
		{`{"kind":"throttle","service":"sqs"}`, "", "RequestThrottled"},
		{`{"kind":"throttle","operation":"ListR*"}`, "ThrottlingException", ""},
		{`{"kind":"error","code":"InternalException","status":500,"operation":"ListRules"}`, "InternalException", ""},
		{`{"kind":"error","region":"us-east-1"}`, "", ""},
		{`{"kind":"error","principal":"user/alice"}`, "InternalFailure", "InternalFailure"},
		{`{"kind":"error","contains":"no such text"}`, "", ""},
		{`[{"kind":"error","code":"A","times":1,"service":"events"},{"kind":"error","code":"B","times":1,"service":"sqs"}]`, "A", "B"},
	}
	for _, tt := range tests {
		if status, body := w.control(t, "POST", "/_local/faults", tt.fault); status != http.StatusCreated {
			t.Fatalf("%s: %d %s", tt.fault, status, body)
		}
		if e, q := list(w), queues(); e != tt.events || q != tt.sqs {
			t.Errorf("%s: events %q sqs %q, want %q and %q", tt.fault, e, q, tt.events, tt.sqs)
		}
		if status, _ := w.control(t, "DELETE", "/_local/faults", ""); status != http.StatusNoContent {
			t.Fatalf("DELETE: %d", status)
		}
	}
	if e, q := list(w), queues(); e != "" || q != "" {
		t.Errorf("after the last fault: events %q, sqs %q", e, q)
	}
}

func TestLostRequestsAndAnswers(t *testing.T) {
	t.Parallel()
	for kind, created := range map[core.FaultKind]string{core.FaultLostAnswer: "", core.FaultLostRequest: "ResourceNotFoundException"} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := start(t)
			must[string](t)(w.Server.Faults.Add(core.Fault{Operation: "CreateEventBus", Kind: kind, Times: 1}))
			if _, err := w.events().CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: aws.String("elbridge")}); err == nil {
				t.Error("the caller got an answer")
			}
			_, err := w.events().DescribeEventBus(t.Context(), &eventbridge.DescribeEventBusInput{Name: aws.String("elbridge")})
			if got := code(err); got != created {
				t.Errorf("the bus: %q, want %q", got, created)
			}
		})
	}
}

func TestPartialAndDelay(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.bus(t, "elbridge")
	must[string](t)(w.Server.Faults.Add(core.Fault{Operation: "PutEvents", Kind: core.FaultPartial, Code: "ThrottlingException", Times: 1}))
	out := w.put(t, podEvent(`{}`), podEvent(`{}`), podEvent(`{}`))
	if out.FailedEntryCount != 1 || aws.ToString(out.Entries[1].ErrorCode) != "ThrottlingException" || out.Entries[0].EventId == nil || out.Entries[2].EventId == nil {
		t.Errorf("PutEvents: %d failed, %+v; want the second to fail", out.FailedEntryCount, out.Entries)
	}
	must[string](t)(w.Server.Faults.Add(core.Fault{Operation: "PutEvents", Kind: core.FaultDelay, Delay: core.Duration(time.Minute)}))
	done := make(chan error, 1)
	go func() {
		_, err := w.events().PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{podEvent(`{}`)}})
		done <- err
	}()
	w.step(t, time.Minute)
	if err := <-done; err != nil {
		t.Errorf("after the delay: %v", err)
	}
}

func TestBadFaultsAreRefused(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, fault := range []string{`{"kind":"explode"}`, `{"kind":"error","rate":2}`, `{"kind":"delay"}`, `{"kind":"error","colour":"red"}`, `{`,
		`[{"kind":"error"},{"kind":"error","status":200}]`, `{"kind":"delay","delay":"soon"}`} {
		if status, body := w.control(t, "POST", "/_local/faults", fault); status != http.StatusBadRequest || !strings.Contains(body, "error") {
			t.Errorf("%s: %d %s, want 400", fault, status, body)
		}
	}
	if _, body := w.control(t, "GET", "/_local/faults", ""); strings.TrimSpace(body) != "[]" {
		t.Errorf("faults %s, want none", body)
	}
	if status, _ := w.control(t, "DELETE", "/_local/faults/f9", ""); status != http.StatusNotFound {
		t.Errorf("deleting what is not there: %d", status)
	}
}

func TestCallsAreRecorded(t *testing.T) {
	t.Parallel()
	w := start(t)
	q := w.queue(t, "q")
	_, _ = w.by(robot).sqs().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q + "x"), MessageBody: aws.String("hello")})
	_, body := w.control(t, "GET", "/_local/calls?service=sqs&operation=SendMessage", "")
	var got []core.Record
	if err := json.Unmarshal([]byte(body), &got); err != nil || len(got) != 1 {
		t.Fatalf("%v: %s", err, body)
	}
	r := got[0]
	if r.Account != robot.Account || r.Principal != robot.ARN || r.Region != region || r.Code != "QueueDoesNotExist" || r.Status != 400 ||
		!strings.Contains(r.Params, "hello") || r.RequestID == "" || !r.Time.Equal(w.clock.Now()) {
		t.Errorf("record %+v", r)
	}
	if all := w.Server.Recorder.Since(0); strings.Contains(all[0].Params, robot.SessionToken) {
		t.Errorf("a record holds a session token: %+v", all[0])
	}
}

func TestCallsAreFollowed(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.queue(t, "q1")
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), "GET", w.url+"/_local/calls?follow=true&operation=CreateQueue", nil))
	resp := must[*http.Response](t)(http.DefaultClient.Do(r))
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, name := range []string{"q1", "q2"} {
		if name == "q2" {
			w.queue(t, name)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), name) {
			t.Fatalf("line %q, want one with %s", lines.Text(), name)
		}
	}
}
