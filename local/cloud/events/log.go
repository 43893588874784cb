package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/logs"
)

func (t target) isLogGroup() bool { return strings.HasPrefix(t.Arn, "arn:aws:logs:") }

// logTemplate is the only form that an input for a log group may have.
var logTemplate = regexp.MustCompile(`(?s)^\s*\{\s*"timestamp"\s*:.+,\s*"message"\s*:.+\}\s*$`)

// checkLogInput refuses what PutTargets does not take for a log group.
func (t target) checkLogInput() error {
	input := t.Input
	if t.InputTransformer != nil {
		input = t.InputTransformer.InputTemplate
	}
	if input == "" || !t.isLogGroup() || logTemplate.MatchString(input) {
		return nil
	}
	return invalid("Invalid input for target %s : it must be of the form {\"timestamp\":<timestamp>,\"message\":<message>}.", t.Id)
}

// handToLogGroup logs the event as one line. Its time is the event's, and so it
// is with a part of it; a written input has its own.
func (s *Service) handToLogGroup(d *delivery, input []byte) (string, error) {
	if s.logs == nil {
		return "NO_RESOURCE", fmt.Errorf("target %s of rule %s: the local cloud has no log groups", d.target.Arn, d.rule.ARN)
	}
	at, message, err := d.logEvent(input)
	if err != nil {
		return "SDK_CLIENT_ERROR", err
	}
	err = s.logs.Deliver(logs.Delivery{Service: principal, SourceARN: d.rule.ARN, Account: d.scope.Account, GroupARN: d.target.Arn, Time: at, Message: message})
	switch {
	case errors.Is(err, logs.ErrNoGroup):
		return "NO_RESOURCE", err
	case errors.Is(err, logs.ErrNotPermitted):
		return "NO_PERMISSIONS", err
	case err != nil:
		return "SDK_CLIENT_ERROR", err
	}
	return "", nil
}

func (d *delivery) logEvent(input []byte) (at time.Time, message string, err error) {
	written, text := struct{ Timestamp, Message json.RawMessage }{}, d.env.Time
	if d.target.Input == "" && d.target.InputTransformer == nil {
		message = string(input)
	} else {
		if err := json.Unmarshal(input, &written); err != nil {
			return at, "", fmt.Errorf("input of target %s of rule %s: %w", d.target.Id, d.rule.ARN, err)
		}
		message, text = plain(written.Message), plain(written.Timestamp)
	}
	if at, err = time.Parse(time.RFC3339, text); err == nil {
		return at, message, nil
	}
	ms, notNumber := json.Number(text).Int64()
	if notNumber != nil {
		return at, "", fmt.Errorf("input of target %s of rule %s: timestamp %q: want milliseconds, or a time as in events", d.target.Id, d.rule.ARN, text)
	}
	return time.UnixMilli(ms), message, nil
}

// plain is a JSON string's value, or anything else as it is written.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
