package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Event is an event of the bus, as it was.
type Event struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Time       time.Time       `json:"time"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

// decode reads a line of the log; ok is false if it is no event.
func decode(line string) (e Event, ok bool) {
	err := json.Unmarshal([]byte(line), &e)
	return e, err == nil && e.ID != "" && e.DetailType != "" && e.Source != "" && !e.Time.IsZero() && len(e.Detail) > 0
}

// names says whether each value is somewhere in the event, as a whole string.
func (e Event) names(values []string) bool {
	missing := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(e.Resources, v) })
	d := json.NewDecoder(bytes.NewReader(e.Detail))
	for len(missing) > 0 {
		token, err := d.Token()
		if err != nil { // the end: the detail is part of a document that was read
			return false
		}
		if s, ok := token.(string); ok {
			missing = slices.DeleteFunc(missing, func(v string) bool { return v == s })
		}
	}
	return true
}

// precision is how exact the time of an event of the bus is.
const precision = time.Second

// at is when the event was put: its own word for it, where it has one that
// agrees with the bus's.
func (e Event) at() time.Time {
	var d struct {
		At time.Time `json:"at"`
	}
	if json.Unmarshal(e.Detail, &d) == nil && d.At.Sub(e.Time).Abs() <= precision {
		return d.At
	}
	return e.Time
}

// sortByTime puts the oldest first.
func sortByTime(events []Event) {
	type timed struct {
		at time.Time
		Event
	}
	all := make([]timed, len(events))
	for i, e := range events {
		all[i] = timed{e.at(), e}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.ID, b.ID)) })
	for i := range all {
		events[i] = all[i].Event
	}
}
