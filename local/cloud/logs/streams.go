package logs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

var streamForm = regexp.MustCompile(`^[^:*]{1,512}$`)

// streamRequest is any request about streams of a group.
type streamRequest struct {
	groupRequest
	Stream string `json:"logStreamName"`
	Prefix string `json:"logStreamNamePrefix"`
	Events []struct {
		Timestamp *int64 `json:"timestamp"`
		Message   string `json:"message"`
	} `json:"logEvents"`
	pageRequest
}

func (s *Service) onStreams(call *core.Call, do func(*group, streamRequest) (any, error)) (any, error) {
	var in streamRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	g, err := s.find(call, in.groupRequest)
	if err != nil {
		return nil, err
	}
	return do(g, in)
}

func (s *Service) createStream(call *core.Call) (any, error) {
	return s.onStreams(call, func(g *group, in streamRequest) (any, error) {
		if !streamForm.MatchString(in.Stream) {
			return nil, violation("logStreamName", in.Stream, "Member must satisfy regular expression pattern: [^:*]*")
		}
		if _, ok := g.streams[in.Stream]; ok {
			return nil, taken("log stream")
		}
		return nil, g.addStream(in.Stream, call.Time)
	})
}

type streamAnswer struct {
	Name    string `json:"logStreamName"`
	Created int64  `json:"creationTime"`
	ARN     string `json:"arn"`
}

func (s *Service) describeStreams(call *core.Call) (any, error) {
	return s.onStreams(call, func(g *group, in streamRequest) (any, error) {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(g.streams)), func(name string) bool { return !strings.HasPrefix(name, in.Prefix) })
		page, next, err := in.page(names)
		if err != nil {
			return nil, err
		}
		out := struct {
			Streams   []streamAnswer `json:"logStreams"`
			NextToken string         `json:"nextToken,omitempty"`
		}{[]streamAnswer{}, next}
		for _, name := range page {
			out.Streams = append(out.Streams, streamAnswer{name, g.streams[name].UnixMilli(), g.arn() + ":log-stream:" + name})
		}
		return out, nil
	})
}

// Limits of a call of PutLogEvents.
const (
	maxBatch      = 10_000
	maxBatchBytes = 1 << 20
	eventOverhead = 26 // bytes that each event counts for beside its message
)

// putEvents refuses single events by leaving them out; what it says of them is
// not more than AWS does: where the good ones begin and end.
func (s *Service) putEvents(call *core.Call) (any, error) {
	return s.onStreams(call, func(g *group, in streamRequest) (any, error) {
		if _, ok := g.streams[in.Stream]; !ok {
			return nil, noStream()
		}
		size, last := 0, int64(0)
		for _, e := range in.Events {
			if e.Timestamp == nil || e.Message == "" {
				return nil, invalid("Log event message must not be empty, and its timestamp must not be null")
			}
			if *e.Timestamp < last {
				return nil, invalid("Log events in a single PutLogEvents request must be in chronological order.")
			}
			last = *e.Timestamp
			size += len(e.Message) + eventOverhead
		}
		if n := len(in.Events); n < 1 || n > maxBatch || size > maxBatchBytes {
			return nil, invalid("Upload too large: %d bytes in %d log events exceed limit of %d in 1 to %d", size, n, maxBatchBytes, maxBatch)
		}
		rejected := map[string]int{}
		for i, e := range in.Events {
			at := time.UnixMilli(*e.Timestamp)
			switch {
			case at.After(call.Time.Add(tooNew)):
				if _, ok := rejected["tooNewLogEventStartIndex"]; !ok {
					rejected["tooNewLogEventStartIndex"] = i
				}
			case at.Before(call.Time.Add(-tooOld)):
				rejected["tooOldLogEventEndIndex"] = i + 1
			case g.expired(*e.Timestamp, call.Time):
				rejected["expiredLogEventEndIndex"] = i + 1
			default:
				g.add(in.Stream, at, e.Message, call.Time)
			}
		}
		if len(rejected) > 0 {
			return map[string]any{"rejectedLogEventsInfo": rejected}, nil
		}
		return nil, nil
	})
}
