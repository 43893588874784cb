package binding

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// Message is what the registrar's queue holds: a pod event, and the constants of
// the rule target that sent it.
type Message struct {
	Binding    Binding         // without a pattern; enabled, as the rule was when it sent the message
	Rule       string          // ARN
	Event      json.RawMessage // whole, as on the bus
	Detail     podevent.Event
	EventID    string
	Time       time.Time
	Account    string
	Region     string
	Source     string
	DetailType string
	ReplayName string // of a replayed event: a hint about another time
}

// Why a message cannot be used: errors.Is tells which of the two it is.
var (
	// ErrForeign is an event that is no pod event of elbridge. It is counted and
	// needs nothing else.
	ErrForeign = errors.New("not a pod event of elbridge")
	// ErrMalformed is a message that cannot be understood, and never will be.
	ErrMalformed = errors.New("malformed message")
)

// body is a message as it is sent.
type body struct {
	binding, event json.RawMessage
	rule           string
}

var bodyKeys = []string{"binding", "rule", "event"}

// parseBody reads the three members of a message. JSON paths in faults begin at
// the message.
func parseBody(raw []byte) (body, error) {
	var b body
	var f faults
	if !json.Valid(raw) {
		f.add("$", "not valid JSON")
		return b, f.err()
	}
	members, ok := value{raw: raw, path: "$", faults: &f}.object(`want {"binding":{…},"rule":"…","event":{…}}`)
	if !ok {
		return b, f.err()
	}
	for _, m := range members {
		switch m.key {
		case "binding":
			b.binding = m.raw
		case "rule":
			if s, ok := m.text(); ok && !ruleARN.MatchString(s) {
				m.fail("%q is no ARN of a rule: want <aws.events.rule-arn>", clip(s))
			} else {
				b.rule = s
			}
		case "event":
			if b.event = m.raw; m.raw[0] != '{' {
				m.fail("%s is no event: want <aws.events.event.json>, without quotes around it", m.show())
			}
		default:
			m.fail("unknown key%s: want %s", didYouMean(m.key, bodyKeys), strings.Join(bodyKeys, ", "))
		}
	}
	for _, key := range bodyKeys {
		if !slices.ContainsFunc(members, func(m member) bool { return m.key == key }) {
			f.add("$."+key, "missing")
		}
	}
	return b, f.err()
}

// envelope is what EventBridge wraps around a detail, as far as it matters here.
type envelope struct {
	ID         string          `json:"id"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Account    string          `json:"account"`
	Region     string          `json:"region"`
	Time       string          `json:"time"`
	ReplayName string          `json:"replay-name"`
	Detail     json.RawMessage `json:"detail"`
}

// ParseMessage reads the body of a message of the registrar's queue. Its error is
// ErrForeign or ErrMalformed, and what could be read is returned beside it.
func ParseMessage(raw []byte) (Message, error) {
	b, err := parseBody(raw)
	m := Message{Rule: b.rule, Event: b.event}
	if err != nil {
		return m, m.unusable(raw, err)
	}
	var e envelope
	if err := json.Unmarshal(b.event, &e); err != nil {
		return m, fmt.Errorf("%w: $.event: %w", ErrMalformed, err)
	}
	m.EventID, m.Source, m.DetailType = e.ID, e.Source, e.DetailType
	m.Account, m.Region, m.ReplayName = e.Account, e.Region, e.ReplayName
	if err := e.foreign(); err != nil {
		return m, err
	}
	if m.Binding, err = ParseConstants(b.binding); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	m.Binding.Rule, m.Binding.Enabled = b.rule, true
	if m.Time, err = time.Parse(time.RFC3339, e.Time); err != nil {
		return m, fmt.Errorf("%w: $.event.time: %q is no RFC 3339 time", ErrMalformed, clip(e.Time))
	}
	if e.ID == "" {
		return m, fmt.Errorf("%w: $.event.id: missing", ErrMalformed)
	}
	if m.Detail, err = podevent.Decode(e.Detail); err != nil {
		return m, fmt.Errorf("%w: $.event.detail: %w", ErrMalformed, err)
	}
	return m, nil
}

// unusable says what a message is that has not the three members: foreign, where
// it is some other event itself.
func (m *Message) unusable(raw []byte, err error) error {
	var e envelope
	if json.Unmarshal(raw, &e) == nil && e.Source != "" && e.DetailType != "" {
		m.EventID, m.Source, m.DetailType = e.ID, e.Source, e.DetailType
		if foreign := e.foreign(); foreign != nil {
			return foreign
		}
		return fmt.Errorf("%w: a pod event without constants: the rule target has no input transformer: %w", ErrMalformed, err)
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

func (e *envelope) foreign() error {
	if e.Source == podevent.Source && e.DetailType == podevent.DetailTypePodStateChange {
		return nil
	}
	return fmt.Errorf("%w: source %q and detail-type %q: want %q and %q", ErrForeign,
		clip(e.Source), clip(e.DetailType), podevent.Source, podevent.DetailTypePodStateChange)
}
