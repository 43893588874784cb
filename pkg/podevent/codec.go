package podevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// timeLayout is RFC 3339 with milliseconds, always three digits.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// Decode reads the detail of a "Pod State Change" event. Fields it does not
// know are skipped, as adding one is compatible; so are reasons. An event of
// another schema version, or one that names no pod, is refused.
func Decode(detail []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(detail, &e); err != nil {
		return Event{}, fmt.Errorf("pod event: %w", err)
	}
	if e.Schema != Schema {
		return Event{}, fmt.Errorf("pod event: detail.schema %d: want %d", e.Schema, Schema)
	}
	var missing []error
	for _, f := range []struct{ name, value string }{
		{"cluster", e.Cluster}, {"namespace", e.Namespace}, {"name", e.Name}, {"uid", e.UID},
	} {
		if f.value == "" {
			missing = append(missing, fmt.Errorf("detail.%s is empty: want the pod's", f.name))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return Event{}, fmt.Errorf("pod event: %w", err)
	}
	return e.normal(), nil
}

// Encode writes the event as the detail of an EventBridge entry. What makes it
// larger than MaxBytes is cut, and counted in Cut: annotations first, then
// ports, labels last. An event that is too large without any of them is an
// error; no pod that an API server accepts makes one.
func (e Event) Encode() ([]byte, error) {
	detail, err := marshal(e)
	if err != nil {
		return nil, fmt.Errorf("pod event %s/%s: %w", e.Namespace, e.Name, err)
	}
	if len(detail) <= MaxBytes {
		return detail, nil
	}
	return e.encodeCut(len(detail))
}

// MarshalJSON writes observedAt with exactly three digits of milliseconds, and
// labels and annotations as objects even when there are none, so that every
// pattern finds the fields it names.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	e = e.normal()
	return marshal(struct {
		plain
		ObservedAt string `json:"observedAt"` // shadows the one of plain
	}{plain(e), e.ObservedAt.Format(timeLayout)})
}

// normal is the event as it looks after a round trip.
func (e Event) normal() Event {
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.ObservedAt = e.ObservedAt.UTC().Truncate(time.Millisecond)
	return e
}

// marshal is json.Marshal without the escaping of <, > and &, which would make
// the event larger and unlike what rules are written against.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
