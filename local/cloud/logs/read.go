package logs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/logs/pattern"
)

// What ends a page before it is full. AWS does not say how far it looks for one
// page; it does say that a page may be empty and not the last one, and that a
// range that begins long before the first event makes such pages.
const (
	maxScanned = 1000      // events that are looked at for a page
	quiet      = time.Hour // without an event at the beginning of the range: a page of its own, and an empty one
)

// backwardFrom is the earliest startTime that may be read backwards.
var backwardFrom = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

type filterRequest struct {
	groupRequest
	Streams       []string `json:"logStreamNames"`
	Prefix        string   `json:"logStreamNamePrefix"`
	Start         *int64   `json:"startTime"`
	End           *int64   `json:"endTime"`
	Filter        string   `json:"filterPattern"`
	Limit         *int     `json:"limit"`
	NextToken     string   `json:"nextToken"`
	StartFromHead *bool    `json:"startFromHead"`
}

// cursor is where reading goes on. It is good for the same request only.
type cursor struct {
	For      string // what it belongs to
	Backward bool
	After    *place // the last event that was looked at; nil: begin
}

func (c cursor) token() string {
	b, _ := json.Marshal(c) // strings and numbers always marshal
	return base64.RawURLEncoding.EncodeToString(b)
}

func (in filterRequest) String() string {
	num := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	return strings.Join([]string{num(in.Start), num(in.End), in.Filter, in.Prefix, strings.Join(in.Streams, ",")}, "\n")
}

// check says what is wrong with a request, and where it begins.
func (in filterRequest) check(g *group) (cursor, error) {
	c := cursor{For: g.key + "\n" + in.String(), Backward: in.StartFromHead != nil && !*in.StartFromHead}
	switch {
	case in.Start != nil && *in.Start < 0 || in.End != nil && *in.End < 0:
		return c, violation("startTime or endTime", "negative", "Member must have value greater than or equal to 0")
	case in.Start != nil && in.End != nil && *in.Start > *in.End:
		return c, invalid("startTime %d is after endTime %d.", *in.Start, *in.End)
	case in.Prefix != "" && len(in.Streams) > 0:
		return c, invalid("logStreamNames and logStreamNamePrefix are mutually exclusive.")
	case in.NextToken == "":
		if c.Backward && (in.Start == nil || *in.Start < backwardFrom) {
			return c, invalid("startFromHead can be false only with a startTime on or after 2024-01-01.")
		}
		return c, nil
	}
	return c.resume(in.NextToken)
}

// resume is where a token goes on, if it belongs to what c does.
func (c cursor) resume(token string) (cursor, error) {
	var from cursor
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(b, &from) != nil || from.For != c.For || from.After == nil {
		return c, badToken()
	}
	return from, nil
}

type filteredEvent struct {
	place     `json:"-"`
	EventID   string `json:"eventId"`
	Ingestion int64  `json:"ingestionTime"`
	Stream    string `json:"logStreamName"`
	Message   string `json:"message"`
	Timestamp int64  `json:"timestamp"`
}

type filterAnswer struct {
	Events    []filteredEvent `json:"events"`
	Searched  []struct{}      `json:"searchedLogStreams"`
	NextToken string          `json:"nextToken,omitempty"`
}

func (s *Service) filterEvents(call *core.Call) (any, error) {
	var in filterRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	most, err := atMost("limit", in.Limit, maxFound)
	if err != nil {
		return nil, err
	}
	p, err := pattern.Parse(in.Filter)
	if err != nil {
		return nil, invalid("%v", err)
	}
	g, err := s.find(call, in.groupRequest)
	if err != nil {
		return nil, err
	}
	c, err := in.check(g)
	if err != nil {
		return nil, err
	}
	out := filterAnswer{Events: []filteredEvent{}, Searched: []struct{}{}}
	r := g.within(in.Start, in.End)
	if c.After == nil && in.quiet(r, c.Backward, call.Time) {
		c.After = edge(c.Backward)
		out.NextToken = c.token()
		return out, nil
	}
	var more bool
	out.Events, c.After, more = scan(r, c, most, func(e event) bool { return in.wants(e.stream) && p.Match(e.message) })
	if more {
		out.NextToken = c.token()
	}
	return out, nil
}

func (in filterRequest) wants(stream string) bool {
	return strings.HasPrefix(stream, in.Prefix) && (len(in.Streams) == 0 || slices.Contains(in.Streams, stream))
}

// quiet says whether nothing happened for long where the range begins.
func (in filterRequest) quiet(r []event, backward bool, now time.Time) bool {
	if len(r) == 0 {
		return true
	}
	if !backward {
		return in.Start == nil || r[0].At-*in.Start > quiet.Milliseconds()
	}
	end := now.UnixMilli()
	if in.End != nil {
		end = min(end, *in.End)
	}
	return end-r[len(r)-1].At > quiet.Milliseconds()
}

// edge is a place before, or behind, all events.
func edge(backward bool) *place {
	if backward {
		return &place{At: 1<<62 - 1}
	}
	return &place{At: -1}
}

// within returns the events from start to end, both included.
func (g *group) within(start, end *int64) []event {
	from, to := 0, len(g.events)
	at := func(e event, t int64) int {
		if e.At < t {
			return -1
		}
		return 1
	}
	if start != nil {
		from, _ = slices.BinarySearchFunc(g.events, *start, at)
	}
	if end != nil {
		to, _ = slices.BinarySearchFunc(g.events, *end+1, at)
	}
	return g.events[from:max(from, to)]
}

// scan looks through events from the cursor on until the page is full or enough
// has been looked at. last is the place it came to; more says that it was not
// the last one.
func scan(r []event, c cursor, most int, match func(event) bool) (found []filteredEvent, last *place, more bool) {
	found, last = []filteredEvent{}, c.After
	size := 0
	for n, e := range rest(r, c) {
		if n == maxScanned || len(found) == most {
			return found, last, true
		}
		if match(e) {
			if size += len(e.message); size > maxPage && len(found) > 0 {
				return found, last, true
			}
			found = append(found, e.show())
		}
		last = &place{e.At, e.Number}
	}
	return found, last, false
}

// rest yields, counted from 0, what comes after the cursor.
func rest(r []event, c cursor) func(yield func(int, event) bool) {
	return func(yield func(int, event) bool) {
		i, step := 0, 1
		if c.Backward {
			i, step = len(r)-1, -1
		}
		if c.After != nil {
			at, found := slices.BinarySearchFunc(r, *c.After, func(e event, p place) int { return e.compare(p) })
			if i = at; c.Backward {
				i--
			} else if found {
				i++
			}
		}
		for n := 0; i >= 0 && i < len(r) && yield(n, r[i]); n++ {
			i += step
		}
	}
}

func (e event) show() filteredEvent {
	return filteredEvent{place: e.place, EventID: fmt.Sprintf("%036d%020d", e.At, e.Number), Ingestion: e.ingested, Stream: e.stream, Message: e.message, Timestamp: e.At}
}
