package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/elbridge/elbridge/pkg/bus"
)

// service answers like EventBridge, over real HTTP to the real client. Each
// entry's detail is a JSON string that says how it fares, one word a call:
// "ok", or the error code; the last word stays.
type service struct {
	mu    sync.Mutex
	seen  map[string]int
	calls []string // the details of each call, and what the call was told
	whole []string // what whole calls fare, one word a call; "ok" after the last
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in struct {
		Entries []struct{ Detail, EventBusName, Source, DetailType string }
		Name    string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	var details []string
	for _, e := range in.Entries {
		details = append(details, strings.Trim(e.Detail, `"`))
	}
	s.calls = append(s.calls, strings.Join(details, ","))
	if len(s.whole) > 0 {
		fate := s.whole[0]
		s.whole = s.whole[1:]
		if fate == "cut" {
			panic(http.ErrAbortHandler)
		}
		if fate != "ok" {
			code, status, _ := strings.Cut(fate, ":")
			w.WriteHeader(map[string]int{"": 400, "500": 500, "503": 503}[status])
			fmt.Fprintf(w, `{"__type":%q,"message":"as told"}`, code)
			return
		}
	}
	if len(in.Entries) == 0 {
		fmt.Fprintf(w, `{"Name":%q,"Arn":"arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"}`, in.Name)
		return
	}
	failed, results := 0, []string{}
	for _, d := range details {
		words := strings.Fields(d)
		fate := words[min(s.seen[d], len(words)-1)]
		s.seen[d]++
		if fate == "ok" {
			results = append(results, `{"EventId":"1"}`)
		} else {
			failed++
			results = append(results, fmt.Sprintf(`{"ErrorCode":%q,"ErrorMessage":"as told"}`, fate))
		}
	}
	fmt.Fprintf(w, `{"FailedEntryCount":%d,"Entries":[%s]}`, failed, strings.Join(results, ","))
}

func (s *service) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func client(t *testing.T, s *service) *eventbridge.Client {
	t.Helper()
	s.seen = map[string]int{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return eventbridge.New(eventbridge.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", ""),
	})
}

func entries(details ...string) (out []bus.Entry) {
	for _, d := range details {
		out = append(out, bus.Entry{Source: "elbridge", DetailType: "Pod State Change", Detail: []byte(`"` + d + `"`), Time: time.Unix(1e9, 0)})
	}
	return out
}

var quick = bus.Retry{Attempts: 3, AttemptTimeout: 5 * time.Second, Base: time.Microsecond, Cap: time.Microsecond}

func TestPut(t *testing.T) {
	tests := map[string]struct {
		entries, whole []string
		calls          []string
		unsent         string // "index code", …
	}{
		"P085 FailedEntryCount 0 is no failure":    {entries: []string{"ok", "ok"}, calls: []string{"ok,ok"}},
		"P085 one of two failed for now":           {entries: []string{"ok", "ThrottlingException ok"}, calls: []string{"ok,ThrottlingException ok", "ThrottlingException ok"}},
		"one failed for good":                      {entries: []string{"MalformedDetail", "ok"}, calls: []string{"MalformedDetail,ok"}, unsent: "0 MalformedDetail"},
		"one for now, one for good":                {entries: []string{"InternalFailure ok", "NotAuthorizedForSourceException"}, calls: []string{"InternalFailure ok,NotAuthorizedForSourceException", "InternalFailure ok"}, unsent: "1 NotAuthorizedForSourceException"},
		"attempts are bounded":                     {entries: []string{"ThrottlingException"}, calls: []string{"ThrottlingException", "ThrottlingException", "ThrottlingException"}, unsent: "0 ThrottlingException"},
		"whole call throttled: tried once a time":  {entries: []string{"ok"}, whole: []string{"ThrottlingException", "ok"}, calls: []string{"ok", "ok"}},
		"whole call failed inside":                 {entries: []string{"ok"}, whole: []string{"InternalException:500", "ok"}, calls: []string{"ok", "ok"}},
		"whole call refused":                       {entries: []string{"ok", "ok"}, whole: []string{"AccessDeniedException"}, calls: []string{"ok,ok"}, unsent: "0 AccessDeniedException, 1 AccessDeniedException"},
		"credentials expired":                      {entries: []string{"ok"}, whole: []string{"ExpiredTokenException", "ok"}, calls: []string{"ok", "ok"}},
		"connection cut":                           {entries: []string{"ok"}, whole: []string{"cut", "ok"}, calls: []string{"ok", "ok"}},
		"service away: three calls, not nine":      {entries: []string{"ok"}, whole: []string{"cut", "cut", "cut", "cut"}, calls: []string{"ok", "ok", "ok"}, unsent: "0 Unreachable"},
		"chunks of ten, a failed one stops no one": {entries: slices.Repeat([]string{"ok"}, 21), whole: []string{"ValidationException"}, calls: []string{strings.Repeat(",ok", 10)[1:], strings.Repeat(",ok", 10)[1:], "ok"}, unsent: "0 V, 1 V, 2 V, 3 V, 4 V, 5 V, 6 V, 7 V, 8 V, 9 V"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &service{whole: tt.whole}
			p := bus.NewPublisher(client(t, s), "elbridge", quick)
			unsent, err := p.Put(t.Context(), entries(tt.entries...))
			var got []string
			for _, u := range unsent {
				code := u.Code
				if code == "ValidationException" {
					code = "V"
				}
				got = append(got, fmt.Sprintf("%d %s", u.Index, code))
				if string(u.Detail) != `"`+tt.entries[u.Index]+`"` {
					t.Errorf("unsent %d carries %s", u.Index, u.Detail)
				}
			}
			if strings.Join(got, ", ") != tt.unsent {
				t.Errorf("unsent %q, want %q", strings.Join(got, ", "), tt.unsent)
			}
			if (err != nil) != (tt.unsent != "") {
				t.Errorf("err = %v with unsent %v", err, unsent)
			}
			if got := s.called(); !slices.Equal(got, tt.calls) {
				t.Errorf("calls %q, want %q", got, tt.calls)
			}
		})
	}
}

func TestPutChunksBySize(t *testing.T) {
	s := &service{}
	pad := func(n int) string { return "ok" + strings.Repeat(" ok", n/3) }
	small, half, large := pad(30), pad(bus.MaxCallBytes/2), pad(bus.MaxCallBytes+10)
	p := bus.NewPublisher(client(t, s), "elbridge", quick)
	unsent, err := p.Put(t.Context(), entries(small, half, half, large, small))
	if len(unsent) != 1 || unsent[0].Index != 3 || unsent[0].Code != bus.CodeTooLarge || err == nil || !strings.Contains(err.Error(), "want at most 256000") {
		t.Errorf("unsent %d, err %v: want the large one only", len(unsent), err)
	}
	if want := []string{small + "," + half, half + "," + small}; !slices.Equal(s.called(), want) {
		t.Errorf("%d calls, want two chunks below the limit", len(s.called()))
	}
}

func TestPutEndsWithTheContext(t *testing.T) {
	s := &service{whole: slices.Repeat([]string{"ThrottlingException"}, 1000)}
	p := bus.NewPublisher(client(t, s), "elbridge", bus.Retry{Attempts: -1, Base: time.Hour, Cap: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if len(s.called()) > 0 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	unsent, err := p.Put(ctx, entries("ok"))
	if len(unsent) != 1 || err == nil {
		t.Errorf("unsent %v, err %v", unsent, err)
	}
	if unsent, _ := p.Put(ctx, entries("ok")); len(unsent) != 1 || unsent[0].Code != bus.CodeInterrupted {
		t.Errorf("after the end of the context: %v", unsent)
	}
}

func TestPutNothing(t *testing.T) {
	s := &service{}
	if unsent, err := bus.NewPublisher(client(t, s), "elbridge", quick).Put(t.Context(), nil); err != nil || unsent != nil || len(s.called()) != 0 {
		t.Errorf("Put of nothing: %v, %v, %d calls", unsent, err, len(s.called()))
	}
}

func TestExists_P083(t *testing.T) {
	tests := map[string]struct {
		whole []string
		is    error
		want  string
	}{
		"there":         {nil, nil, ""},
		"missing":       {[]string{"ResourceNotFoundException"}, bus.ErrNoBus, `no such event bus "elbridge" in this account and region: create it`},
		"not allowed":   {[]string{"AccessDeniedException"}, bus.ErrDenied, "allow events:DescribeEventBus"},
		"service broke": {slices.Repeat([]string{"InternalException:500"}, 9), nil, `looking at event bus "elbridge"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := client(t, &service{whole: tt.whole})
			arn, err := bus.Exists(t.Context(), c, "elbridge")
			switch {
			case tt.want == "" && (err != nil || arn != "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"):
				t.Errorf("Exists = %q, %v", arn, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is)):
				t.Errorf("Exists = %v, want %q", err, tt.want)
			}
		})
	}
}
