package logs

import (
	"slices"

	"github.com/elbridge/elbridge/local/cloud/core"
)

type outputEvent struct {
	Timestamp int64  `json:"timestamp"`
	Message   string `json:"message"`
	Ingestion int64  `json:"ingestionTime"`
}

// getEvents reads one stream. Here endTime itself is outside the range, the
// newest come first unless startFromHead is true, and each page has two tokens.
func (s *Service) getEvents(call *core.Call) (any, error) {
	var in struct {
		filterRequest
		Stream string `json:"logStreamName"`
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	most, err := atMost("limit", in.Limit, maxFound)
	if err != nil {
		return nil, err
	}
	g, err := s.find(call, in.groupRequest)
	if err != nil {
		return nil, err
	}
	if _, ok := g.streams[in.Stream]; !ok {
		return nil, noStream()
	}
	end := in.End
	if end != nil {
		end = new(*in.End - 1)
	}
	c := cursor{For: g.key + "\n" + in.Stream, Backward: in.StartFromHead == nil || !*in.StartFromHead}
	if in.NextToken != "" {
		if c, err = c.resume(in.NextToken); err != nil {
			return nil, err
		}
	}
	found, last, _ := scan(g.within(in.Start, end), c, most, func(e event) bool { return e.stream == in.Stream })
	return pageOfStream(c, found, last), nil
}

// pageOfStream is the answer of GetLogEvents: always oldest first, with tokens
// that go on from either end of the page.
func pageOfStream(c cursor, found []filteredEvent, ahead *place) any {
	behind := c.After
	if len(found) > 0 {
		behind = &found[0].place // the first that was read
	}
	if behind == nil {
		behind = edge(!c.Backward)
	}
	if ahead == nil {
		ahead = edge(c.Backward)
	}
	forward, backward := ahead, behind
	if c.Backward {
		forward, backward = behind, ahead
		found = slices.Clone(found)
		slices.Reverse(found)
	}
	events := []outputEvent{}
	for _, e := range found {
		events = append(events, outputEvent{e.Timestamp, e.Message, e.Ingestion})
	}
	return map[string]any{"events": events,
		"nextForwardToken":  cursor{For: c.For, After: forward}.token(),
		"nextBackwardToken": cursor{For: c.For, After: backward, Backward: true}.token()}
}
