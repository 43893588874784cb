package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// fake answers with pages, newest first as it is asked to; the last one again
// and again if endless.
type fake struct {
	pages   [][]string
	endless bool
	fail    map[int]error // by call, from 1
	calls   []cloudwatchlogs.FilterLogEventsInput
}

func (f *fake) FilterLogEvents(ctx context.Context, in *cloudwatchlogs.FilterLogEventsInput, _ ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error) {
	f.calls = append(f.calls, *in)
	n := len(f.calls)
	if err := f.fail[n]; err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	out := &cloudwatchlogs.FilterLogEventsOutput{}
	for _, line := range f.pages[min(n, len(f.pages))-1] {
		out.Events = append(out.Events, types.FilteredLogEvent{Message: &line})
	}
	if f.endless || n < len(f.pages) {
		out.NextToken = aws.String(fmt.Sprint("page ", n+1))
	}
	return out, nil
}

// line is an event of the log.
func line(id, detailType string, second int, detail string) string {
	return fmt.Sprintf(`{"version":"0","id":%q,"detail-type":%q,"source":"elbridge.targets","account":"1","time":%q,"region":"r","resources":[],"detail":%s}`,
		id, detailType, noon.Add(time.Duration(second)*time.Second).Format(time.RFC3339), detail)
}

func ids(events []Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}

func TestEvents(t *testing.T) {
	api := &fake{pages: [][]string{
		{},
		{line("c", "Targets Changed", 2, `{}`), "not JSON", `{"an":"object"}`, line("c", "Targets Changed", 2, `{}`)},
		{},
		{line("b2", "Targets Changed", 1, `{"at":"2026-12-01T12:00:01.9Z"}`), line("b1", "Targets Changed", 1, `{"at":"2026-12-01T12:00:01.1Z"}`), line("b3", "Removal Held", 1, `{"at":"2020-01-01T00:00:00Z"}`)},
		{line("a", "Targets Changed", 0, `[1]`), line("c", "Targets Changed", 2, `{}`)},
	}}
	r := New(api, "/aws/events/elbridge")
	events, err := r.Events(t.Context(), Query{})
	if err != nil || ids(events) != "a b3 b1 b2 c" || r.Skipped() != 2 {
		t.Errorf("%s, error %v, %d skipped", ids(events), err, r.Skipped())
	}
	if e := events[1]; e.DetailType != "Removal Held" || e.Source != "elbridge.targets" || !e.Time.Equal(noon.Add(time.Second)) || string(e.Detail) != `{"at":"2020-01-01T00:00:00Z"}` {
		t.Errorf("event %+v", e)
	}
	for i, in := range api.calls {
		if *in.LogGroupName != "/aws/events/elbridge" || *in.StartFromHead || in.FilterPattern != nil || (in.NextToken == nil) != (i == 0) {
			t.Errorf("call %d: %+v", i, in)
		}
	}
}

func TestEventsNarrows(t *testing.T) {
	const group = "arn:aws:elasticloadbalancing:r:1:targetgroup/web/0123456789abcdef"
	lines := []string{
		line("list", "Targets Changed", 9, `{"targetGroup":"`+group+`","cause":{"kind":"drift","runId":"run-1"},"deregistered":[{"id":"10.0.0.2"},{"id":"10.0.0.1"}]}`),
		line("longer", "Targets Changed", 8, `{"targetGroup":"`+group+`0","deregistered":[{"id":"10.0.0.12"}]}`),
		line("round", "Resync Completed", 7, `{"runId":"run-1","request":{"id":"req-1"},"findings":[{"targetGroup":"`+group+`","id":"10.0.0.1"}]}`),
		line("v6", "Removal Held", 6, `{"held":[{"id":"fd00::1"}],"cause":{"request":"req-1"}}`),
	}
	tests := map[string]struct {
		q       Query
		pattern string
		want    string
	}{
		"all":                      {Query{}, "", "v6 round longer list"},
		"address":                  {Query{Address: "10.0.0.1"}, `"10.0.0.1"`, "round list"},
		"address, written at will": {Query{Address: "FD00:0::1"}, `"fd00::1"`, "v6"},
		"group":                    {Query{TargetGroup: group}, `"` + group + `"`, "round list"},
		"group and one type":       {Query{TargetGroup: group, DetailTypes: []string{"Targets Changed"}}, `"` + group + `" "Targets Changed"`, "list"},
		"address and two types":    {Query{Address: "10.0.0.1", DetailTypes: []string{"Targets Changed", "Removal Held"}}, `"10.0.0.1"`, "list"},
		"types":                    {Query{DetailTypes: []string{"Targets Changed", "Removal Held"}}, `{ ($.detail-type = "Targets Changed" || $.detail-type = "Removal Held") }`, "v6 longer list"},
		"run":                      {Query{RunID: "run-1"}, `{ ($.detail.runId = "run-1" || $.detail.cause.runId = "run-1") }`, "round list"},
		"request and type": {Query{Request: "req-1", DetailTypes: []string{"Removal Held"}},
			`{ ($.detail.request.id = "req-1" || $.detail.cause.request = "req-1") && ($.detail-type = "Removal Held") }`, "v6"},
		"address and run":     {Query{Address: "10.0.0.1", RunID: "run-1"}, `"10.0.0.1" "run-1"`, "round list"},
		"the newest":          {Query{Limit: 2}, "", "longer list"},
		"longer than allowed": {Query{RunID: strings.Repeat("x", 600)}, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api := &fake{pages: [][]string{lines}}
			events, err := New(api, "log").Events(t.Context(), tt.q)
			if err != nil || ids(events) != tt.want {
				t.Errorf("%s, error %v, want %s", ids(events), err, tt.want)
			}
			if got := aws.ToString(api.calls[0].FilterPattern); got != tt.pattern {
				t.Errorf("pattern %s\n   want %s", got, tt.pattern)
			}
		})
	}
}

func TestEventsInTime(t *testing.T) {
	api := &fake{pages: [][]string{{}}}
	at := noon.Add(700 * time.Millisecond)
	for _, q := range []Query{{}, {From: at, To: at}, {From: at}} {
		if _, err := New(api, "log").Events(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	first, instant, since := api.calls[0], api.calls[1], api.calls[2]
	if *first.StartTime != firstDay.UnixMilli() || first.EndTime != nil {
		t.Errorf("without a time: from %d to %v", *first.StartTime, first.EndTime)
	}
	if *instant.StartTime != noon.UnixMilli() || *instant.EndTime != at.UnixMilli() {
		t.Errorf("an instant: from %d to %d", *instant.StartTime, *instant.EndTime)
	}
	if *since.StartTime != noon.UnixMilli() || since.EndTime != nil {
		t.Errorf("since: from %d to %v", *since.StartTime, since.EndTime)
	}
}

// A value may not become a part of the pattern's grammar.
func TestEventsRefusesQueries(t *testing.T) {
	for name, q := range map[string]Query{
		"quote":           {Address: `10.0.0.1" || "`},
		"backslash":       {TargetGroup: `arn\`},
		"wildcard":        {RunID: "*"},
		"brace":           {Request: "x }"},
		"regular":         {DetailTypes: []string{"Targets Changed", "%a%"}},
		"line":            {Address: "10.0.0.1\n"},
		"other letters":   {Request: "é"},
		"no detail-type":  {DetailTypes: []string{""}},
		"negative":        {Limit: -1},
		"ends and begins": {From: noon, To: noon.Add(-time.Second)},
	} {
		api := &fake{pages: [][]string{{}}}
		if _, err := New(api, "log").Events(t.Context(), q); !errors.Is(err, ErrQuery) || len(api.calls) > 0 {
			t.Errorf("%s: error %v after %d calls", name, err, len(api.calls))
		}
	}
}

func TestEventsIsBounded(t *testing.T) {
	var lines []string // 0 is the newest
	for i := range 6 {
		lines = append(lines, line(fmt.Sprint(i), "x", -i, "{}"))
	}
	size := len(lines[0])
	tests := map[string]struct {
		most  bounds
		api   fake
		q     Query
		want  string
		whole bool
		calls int
	}{
		"pages without end":        {bounds{pages: 7, events: 9, bytes: 9999}, fake{pages: [][]string{lines[:1], {}}, endless: true}, Query{}, "0", false, 7},
		"so many pages":            {bounds{pages: 2, events: 9, bytes: 9999}, fake{pages: [][]string{lines[:1], {}}}, Query{}, "0", true, 2},
		"events":                   {bounds{pages: 9, events: 5, bytes: 9999}, fake{pages: [][]string{lines, {}}}, Query{}, "4 3 2 1 0", false, 1},
		"so many events":           {bounds{pages: 9, events: 6, bytes: 9999}, fake{pages: [][]string{lines}}, Query{}, "5 4 3 2 1 0", true, 1},
		"bytes":                    {bounds{pages: 9, events: 9, bytes: 2 * size}, fake{pages: [][]string{lines[:2], lines[2:]}}, Query{}, "1 0", false, 2},
		"so many bytes":            {bounds{pages: 9, events: 9, bytes: 2 * size}, fake{pages: [][]string{lines[:2], {}}}, Query{}, "1 0", true, 2},
		"a limit ends the reading": {bounds{pages: 9, events: 9, bytes: 9999}, fake{pages: [][]string{lines[:2], {}}, endless: true}, Query{Limit: 2}, "1 0", true, 1},
		"a limit past the bounds":  {bounds{pages: 9, events: 2, bytes: 9999}, fake{pages: [][]string{lines}}, Query{Limit: 3}, "1 0", false, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := New(&tt.api, "log")
			r.most = tt.most
			events, err := r.Events(t.Context(), tt.q)
			if ids(events) != tt.want || (err == nil) != tt.whole || err != nil && !errors.Is(err, ErrIncomplete) || len(tt.api.calls) != tt.calls {
				t.Errorf("%s after %d calls, error %v", ids(events), len(tt.api.calls), err)
			}
		})
	}
}

func TestEventsFails(t *testing.T) {
	api := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "m"} }
	tests := map[string]struct{ err, want error }{
		"no group":       {&types.ResourceNotFoundException{}, ErrNoLog},
		"denied":         {api("AccessDeniedException"), ErrDenied},
		"throttled":      {api("ThrottlingException"), ErrThrottled},
		"something else": {api("ServiceUnavailableException"), nil},
		"no answer":      {context.DeadlineExceeded, context.DeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fake{pages: [][]string{{line("a", "x", 0, "{}")}, {}, {}}, fail: map[int]error{2: tt.err}}
			events, err := New(f, "log").Events(t.Context(), Query{})
			if err == nil || events != nil || !errors.Is(err, tt.err) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%d events of a log that was not read to the end, error %v", len(events), err)
			}
			for _, sentinel := range []error{ErrNoLog, ErrDenied, ErrThrottled, ErrIncomplete} {
				if errors.Is(err, sentinel) != (tt.want != nil && errors.Is(tt.want, sentinel)) {
					t.Errorf("error %v: whether it is %q", err, sentinel)
				}
			}
		})
	}
}
