package events

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// Limits of PutEvents.
const (
	maxEntries = 10
	maxEvents  = 1 << 20 // bytes of all entries of a call (256 KB until 2026)
	timeBytes  = 14      // what a given Time counts
	maxHops    = 5       // buses that an event goes through
)

// entry is an event as PutEvents takes it.
type entry struct {
	Source       string
	DetailType   string
	Detail       string
	Resources    []string
	Time         json.RawMessage
	EventBusName string
	TraceHeader  string
}

func (e entry) complete() bool { return e.Source != "" && e.DetailType != "" && e.Detail != "" }

// size is the entry's size as EventBridge counts it, in bytes.
func (e entry) size() int {
	n := len(e.Source) + len(e.DetailType) + len(e.Detail)
	if len(e.Time) > 0 {
		n += timeBytes
	}
	for _, r := range e.Resources {
		n += len(r)
	}
	return n
}

// envelope is an event as targets see it, with the fields in AWS's order.
type envelope struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`

	hops int // buses that it has been through
}

func (e envelope) encode() ([]byte, error) {
	if e.Resources == nil {
		e.Resources = []string{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

type entryAnswer struct {
	EventId      string `json:",omitempty"`
	ErrorCode    string `json:",omitempty"`
	ErrorMessage string `json:",omitempty"`
}

type putAnswer struct {
	FailedEntryCount int
	Entries          []entryAnswer
}

func (s *Service) putEvents(call *core.Call) (any, error) {
	var in struct{ Entries []entry }
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if err := checkEntries(in.Entries); err != nil {
		return nil, err
	}
	out := putAnswer{}
	for i, e := range in.Entries {
		id, err := s.accept(call, i, e)
		if err != nil {
			out.FailedEntryCount++
			out.Entries = append(out.Entries, entryAnswer{ErrorCode: err.Code, ErrorMessage: err.Message})
			continue
		}
		out.Entries = append(out.Entries, entryAnswer{EventId: id})
	}
	return out, nil
}

// checkEntries refuses requests that fail as a whole.
func checkEntries(all []entry) error {
	if n := len(all); n < 1 || n > maxEntries {
		return violation("entries", "", "Member must have length between 1 and 10")
	}
	size, complete := 0, false
	for _, e := range all {
		size += e.size()
		complete = complete || e.complete()
	}
	switch {
	case size >= maxEvents:
		return invalid("Total size of the entries in the request is over the limit.")
	case !complete:
		return invalid("Parameters Source, DetailType and Detail must be specified for at least one entry.")
	}
	return nil
}

// accept checks one entry and has its event matched.
func (s *Service) accept(call *core.Call, i int, e entry) (string, *core.Error) {
	if f := call.FailEntry(i); f != nil {
		return "", f
	}
	if err := e.check(); err != nil {
		return "", err
	}
	at := call.Time
	if len(e.Time) > 0 && string(e.Time) != "null" {
		var err error
		if at, err = parseTime(e.Time); err != nil {
			return "", core.Errorf("InvalidArgument", "Parameter Time is not valid. Reason: %v.", err)
		}
	}
	id, err := s.busID(call, e.EventBusName)
	if err != nil {
		return "", core.Errorf("InvalidArgument", "Parameter EventBusName is not valid. Reason: Provided Arn is not in correct format.")
	}
	env := envelope{Version: "0", ID: core.NewID(), DetailType: e.DetailType, Source: e.Source, Account: call.Account,
		Time: at.UTC().Format("2006-01-02T15:04:05Z"), Region: call.Region, Resources: e.Resources, Detail: json.RawMessage(e.Detail)}
	return env.ID, s.publish(id, call.Principal, env, call.Time)
}

func (e entry) check() *core.Error {
	for _, required := range []struct{ name, value string }{{"Source", e.Source}, {"DetailType", e.DetailType}, {"Detail", e.Detail}} {
		if required.value == "" {
			return core.Errorf("InvalidArgument", "Parameter %s is not valid. Reason: %s is a required argument.", required.name, required.name)
		}
	}
	if len([]rune(e.DetailType)) > 128 {
		return core.Errorf("InvalidArgument", "Parameter DetailType is not valid. Reason: it is longer than 128 characters.")
	}
	if strings.HasPrefix(e.Source, "aws.") {
		return core.Errorf("NotAuthorizedForSourceException", "Not authorized for the source.")
	}
	if text := strings.TrimSpace(e.Detail); !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return core.Errorf("MalformedDetail", "Detail is malformed.")
	}
	return nil
}

// parseTime reads a timestamp of the JSON protocol: seconds since 1970, or text.
func parseTime(raw json.RawMessage) (time.Time, error) {
	var n float64
	if err := json.Unmarshal(raw, &n); err == nil {
		return time.UnixMilli(int64(n * 1000)), nil
	}
	var t time.Time
	err := json.Unmarshal(raw, &t)
	return t, err
}

// publish matches an event against the rules of a bus and queues deliveries.
// A bus that does not exist swallows it, as in AWS.
func (s *Service) publish(id busID, by core.Principal, env envelope, now time.Time) *core.Error {
	s.mu.Lock()
	b := s.lookup(id)
	if b == nil {
		s.mu.Unlock()
		s.server.Log.Warn("event swallowed: the bus does not exist", "bus", id.arn(), "event_id", env.ID)
		return nil
	}
	if by.Account != id.Account && !b.allow.Allows(policy.Request{Account: by.Account, ARN: by.ARN, Action: "events:PutEvents", Resource: id.arn()}) {
		s.mu.Unlock()
		return core.Errorf("AccessDeniedException", "%s is not authorized to perform: events:PutEvents on resource: %s", by.ARN, id.arn())
	}
	m := b.matcher()
	s.mu.Unlock()
	text, err := env.encode()
	if err != nil {
		return core.Errorf("MalformedDetail", "Detail is malformed.")
	}
	event, err := eventpattern.ParseEvent(text)
	if err != nil {
		return core.Errorf("MalformedDetail", "Detail is malformed. %v", err)
	}
	for _, i := range m.set.Matches(event) {
		s.schedule(m.rules[i], id, env, text, now)
	}
	return nil
}

// schedule queues the event for every target of the rule.
func (s *Service) schedule(r *rule, id busID, env envelope, text []byte, now time.Time) {
	due := now.Add(time.Duration(s.delay.Load()))
	for _, t := range r.targets {
		s.work.add(&delivery{rule: r.Rule, target: t, scope: id.Scope, env: env, event: text, ingested: now}, due)
	}
}
