package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// requests is resync's queue.
type requests struct {
	none   bool // there is no queue
	most   int  // requests that it takes; 0: any number
	bodies []string
}

func (q *requests) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	if q.none || *in.QueueName != "elbridge-resync" {
		return nil, &types.QueueDoesNotExist{}
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: new("https://sqs/elbridge-resync")}, nil
}

func (q *requests) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if q.most > 0 && len(q.bodies) >= q.most {
		return nil, errors.New("throttled")
	}
	q.bodies = append(q.bodies, *in.QueueUrl+" "+*in.MessageBody)
	return &sqs.SendMessageOutput{}, nil
}

// events is an audit log; the answer to a request comes after some looks.
type events struct {
	all    []audit.Event
	after  int
	err    error
	asked  []audit.Query
	answer func(id string) targetevent.ResyncCompleted
}

func (l *events) Events(_ context.Context, q audit.Query) ([]audit.Event, error) {
	l.asked = append(l.asked, q)
	if l.err != nil && !errors.Is(l.err, audit.ErrIncomplete) {
		return nil, l.err
	}
	if q.Request == "" || l.answer == nil {
		return slices.DeleteFunc(slices.Clone(l.all), func(e audit.Event) bool { return !slices.Contains(q.DetailTypes, e.DetailType) }), l.err
	}
	if l.after--; l.after >= 0 {
		return nil, nil
	}
	return append(l.all, event(targetevent.DetailTypeResyncCompleted, l.answer(q.Request))), nil
}

func event(detailType string, detail any) audit.Event {
	text, err := json.Marshal(detail)
	if err != nil {
		panic(err) // values of this package's tests
	}
	return audit.Event{ID: "event-id", DetailType: detailType, Source: targetevent.Source, Detail: text}
}

func TestResync(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	finding := targetevent.Finding{TargetGroup: groupARN, Drift: "extra", Action: "held", Key: targetevent.Key{ID: "10.64.1.9", Port: 80, Pod: "ingress/a", Reason: "no second witness"}}
	round := func(change func(*targetevent.ResyncCompleted)) func(string) targetevent.ResyncCompleted {
		return func(id string) targetevent.ResyncCompleted {
			r := targetevent.ResyncCompleted{Schema: targetevent.Schema, RunID: "run", Round: 7, Request: &targetevent.Request{ID: id}, Groups: 3, Findings: []targetevent.Finding{}, At: at}
			if change != nil {
				change(&r)
			}
			return r
		}
	}
	for name, tt := range map[string]struct {
		o      resyncOptions
		answer func(string) targetevent.ResyncCompleted
		code   int
		text   string
	}{
		"not waited for":  {o: resyncOptions{}, text: " was sent"},
		"nothing differs": {o: resyncOptions{wait: true}, answer: round(nil), text: "round 7 of run run at 2026-11-30T12:00:00Z: 3 groups compared"},
		"all is repaired": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) { r.Found, r.Repaired = 2, 2 }), text: "2 repaired"},
		"dry":             {o: resyncOptions{wait: true, dryRun: true}, answer: round(func(r *targetevent.ResyncCompleted) { r.Found, r.DryRun = 1, true }), code: 2, text: "dry round 7"},
		"held":            {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) { r.Held, r.Findings = 1, []targetevent.Finding{finding} }), code: 2, text: "extra web 10.64.1.9:80 ingress/a held no second witness"},
		"I9 approved": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) {
			gone := finding
			gone.Action, gone.Witness = "deregistered", "approved"
			r.Request.Approve, r.Found, r.Repaired, r.Findings = "5b1d7a0c9e3f", 1, 1, []targetevent.Finding{gone}
		}), text: "1 repaired"},
		"I9 approved, and another plan by now": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) { r.Request.Approve = "5b1d7a0c9e3f" }),
			code: 2, text: "the approval met no plan: nothing is held as 5b1d7a0c9e3f now"},
		"a group, no target": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) {
			r.Findings = []targetevent.Finding{{TargetGroup: groupARN, Drift: "no-listener", Action: "reported"}}
		}), code: 2, text: "no-listener web - - reported -"},
		"unread": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) { r.Unread, r.Problems = 1, []string{"group api: denied"} }), code: 2, text: "group api: denied"},
		"half read": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) {
			r.Clusters = []targetevent.ClusterState{{Name: "prod", Error: "silent"}}
		}), code: 2, text: "cluster prod was not read completely (silent)"},
		"a group without a rule": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) {
			r.Groups, r.Request.Groups, r.Problems = 0, []string{groupARN}, []string{"no rule of the bus names it"}
		}), code: 2, text: "no rule of the bus names it"},
		"the rules were not read": {o: resyncOptions{wait: true}, answer: round(func(r *targetevent.ResyncCompleted) {
			r.Groups, r.Problems = 0, []string{"the rules were not read: nothing is compared: boom"}
		}), code: 2, text: "the rules were not read: nothing is compared: boom"},
		"no answer":        {o: resyncOptions{wait: true}, code: 3, text: " was sent"},
		"another's answer": {o: resyncOptions{wait: true}, answer: func(string) targetevent.ResyncCompleted { return round(nil)("other") }, code: 3, text: " was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.o.timeout = time.Minute
			q, log := &requests{}, &events{answer: tt.answer, after: 2}
			a := asker{poller: (&clock{at: at}).poller(), queue: q, log: log, lookup: func(string) string { return "" }, stderr: io.Discard}
			r := targetevent.Request{ID: queue.NewID(), Groups: []string{groupARN}, By: "arn:kim", Reason: "why not"}
			res, err := a.ask(context.Background(), &tt.o, r)
			if err != nil {
				t.Fatal(err)
			}
			var out, stderr bytes.Buffer
			if err := write(&out, "table", res, res.table); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.TrimSpace(tt.text)) {
				t.Errorf("said\n%s\nwant %q", out.String(), tt.text)
			}
			exit, _ := errors.AsType[exitError](res.exit(&stderr, &tt.o))
			if exit.code != tt.code {
				t.Errorf("exit code %d, want %d", exit.code, tt.code)
			}
			if (stderr.Len() > 0) != (tt.code == 3) {
				t.Errorf("stderr says %q", stderr.String())
			}
			var m queue.Request
			url, body, _ := strings.Cut(strings.Join(q.bodies, "\n"), " ")
			if err := json.Unmarshal([]byte(body), &m); err != nil || url != "https://sqs/elbridge-resync" {
				t.Fatalf("sent %q: %v", q.bodies, err)
			}
			if m.Schema != 1 || m.Trigger != "request" || m.DryRun != tt.o.dryRun || m.Request.ID != r.ID || m.Request.By != "arn:kim" || m.Request.Groups[0] != groupARN {
				t.Errorf("sent %+v", m)
			}
		})
	}
}

// Nobody is asked where the answer can't be read, or there is nobody to ask.
func TestResync_NotAsked(t *testing.T) {
	q := &requests{}
	a := asker{poller: (&clock{}).poller(), queue: q, log: &events{err: errors.New("no log")}, lookup: func(string) string { return "" }, stderr: io.Discard}
	if _, err := a.ask(context.Background(), &resyncOptions{wait: true}, targetevent.Request{ID: "id"}); err == nil || len(q.bodies) > 0 {
		t.Errorf("error %v, sent %v", err, q.bodies)
	}
	if _, err := a.ask(context.Background(), &resyncOptions{}, targetevent.Request{ID: "id"}); err != nil || len(q.bodies) != 1 {
		t.Errorf("without waiting: error %v, sent %v", err, q.bodies)
	}
	q.none = true
	if _, err := a.ask(context.Background(), &resyncOptions{}, targetevent.Request{ID: "id"}); err == nil || !strings.Contains(err.Error(), "ELBRIDGE_RESYNC_QUEUE_URL") {
		t.Errorf("without a queue: %v", err)
	}
	for _, url := range []string{"given", "environment"} {
		given := ""
		if url == "given" {
			given = url
		}
		if got, err := queueURL(context.Background(), q, given, func(string) string { return "environment" }); got != url || err != nil {
			t.Errorf("%s: %s, %v", url, got, err)
		}
	}
}

func TestResync_Reason(t *testing.T) {
	for n, refused := range map[int]bool{maxReason: false, maxReason + 1: true} {
		o := resyncOptions{reason: strings.Repeat("ß", n), output: "table"}
		if err := o.check(); (err != nil) != refused {
			t.Errorf("%d characters: %v", n, err)
		}
	}
}

// A run that ends before its round is asked again, once, and only while there is
// time for an answer.
func TestResync_CutShort(t *testing.T) {
	source, err := os.ReadFile("../../pkg/resync/round.go")
	if err != nil || !strings.Contains(string(source), `"`+runEnded) {
		t.Errorf("pkg/resync does not say %q: %v", runEnded, err)
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		ends    int // so many runs end too early
		timeout time.Duration
		refused bool // the second request
		sent    int
		code    int
	}{
		"the next run answers":    {ends: 1, timeout: time.Minute, sent: 2},
		"the next run ends too":   {ends: 2, timeout: time.Minute, sent: 2, code: 2},
		"no time for another one": {ends: 1, sent: 1, code: 2},
		"it can't be asked again": {ends: 1, timeout: time.Minute, refused: true, sent: 1, code: 2},
		"nothing ended too early": {timeout: time.Minute, sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := &requests{most: 9}
			if tt.refused {
				q.most = 1
			}
			var asked []string
			log := &events{answer: func(id string) targetevent.ResyncCompleted {
				if len(asked) == 0 || asked[len(asked)-1] != id {
					asked = append(asked, id)
				}
				r := targetevent.ResyncCompleted{Schema: targetevent.Schema, Request: &targetevent.Request{ID: id}, Findings: []targetevent.Finding{}, At: at}
				if len(asked) <= tt.ends {
					r.Problems = []string{runEnded + ": ask again"}
				}
				return r
			}}
			var stderr bytes.Buffer
			a := asker{poller: (&clock{at: at}).poller(), queue: q, log: log, lookup: func(string) string { return "" }, stderr: &stderr}
			o := &resyncOptions{wait: true, timeout: tt.timeout}
			res, err := a.ask(context.Background(), o, targetevent.Request{ID: queue.NewID(), Reason: "why not"})
			if err != nil {
				t.Fatal(err)
			}
			if exit, _ := errors.AsType[exitError](res.exit(io.Discard, o)); exit.code != tt.code || len(q.bodies) != tt.sent {
				t.Errorf("exit code %d after %d requests, want %d after %d", exit.code, len(q.bodies), tt.code, tt.sent)
			}
			if last := q.bodies[len(q.bodies)-1]; !strings.Contains(last, res.Request.ID) || !strings.Contains(last, "why not") {
				t.Errorf("the answer is to %s, the last request was %s", res.Request.ID, last)
			}
			if tt.sent == 2 && !strings.Contains(stderr.String(), "asked again") || tt.refused && !strings.Contains(stderr.String(), "could not be asked again") {
				t.Errorf("said %q", stderr.String())
			}
		})
	}
}

func TestResync_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var stderr bytes.Buffer
	a := asker{poller: (&clock{stop: cancel}).poller(), queue: &requests{}, log: &events{}, lookup: func(string) string { return "" }, stderr: &stderr}
	_, err := a.ask(ctx, &resyncOptions{wait: true, timeout: time.Hour}, targetevent.Request{ID: "id"})
	if exit, ok := errors.AsType[exitError](unlessInterrupted(ctx, err)); !ok || exit.code != 130 || !strings.Contains(stderr.String(), "request id was sent") {
		t.Errorf("error %v, said %q", err, stderr.String())
	}
}

func TestResync_LastRound(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	last := targetevent.ResyncCompleted{Schema: targetevent.Schema, RunID: "r1", Round: 40, At: now.Add(-time.Minute)}
	for want, log := range map[string]*events{
		"is resync running? its schedule":         {},
		"is 40 of run r1 at 2026-11-30T11:59:00Z": {all: []audit.Event{event(targetevent.DetailTypeResyncCompleted, last)}},
		"could not be read: broken":               {err: errors.New("broken")},
	} {
		a := asker{poller: (&clock{at: now}).poller(), log: log}
		if got := a.lastRound(context.Background()); !strings.Contains(got, want) {
			t.Errorf("said %q, want %q", got, want)
		}
	}
}

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if a, b := queue.NewID(), queue.NewID(); a == b || !form.MatchString(a) {
		t.Errorf("%s and %s", a, b)
	}
}
