package logs

import (
	"cmp"
	"slices"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// group is a log group. Its events are in order of time and, at one time, of
// arrival.
type group struct {
	groupID
	key       string // tells it from one of the same name before
	created   time.Time
	retention int // days; 0 is for ever
	streams   map[string]time.Time
	events    []event
	bytes     int
	next      uint64 // number of the next event
}

// event is a log event.
type event struct {
	place
	ingested int64 // milliseconds
	stream   string
	message  string
}

// place is where an event stands in its group.
type place struct {
	At     int64  // milliseconds
	Number uint64 // in order of arrival, from 1
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.At, o.At), cmp.Compare(p.Number, o.Number))
}

func newGroup(id groupID, now time.Time) *group {
	return &group{groupID: id, key: core.NewID(), created: now, streams: map[string]time.Time{}, next: 1}
}

// Events that are older or newer than this PutLogEvents does not take.
const (
	tooOld = 14 * 24 * time.Hour
	tooNew = 2 * time.Hour
)

// unacceptable says why the group does not take an event, or nothing.
func (g *group) unacceptable(at time.Time, message string, now time.Time) string {
	switch {
	case message == "":
		return "it is empty"
	case len(message) > maxMessage:
		return "it is larger than 1 MiB"
	case at.Before(now.Add(-tooOld)):
		return "it is older than 14 days"
	case at.After(now.Add(tooNew)):
		return "it is more than 2 hours in the future"
	case g.expired(at.UnixMilli(), now):
		return "it is older than the retention of the group"
	}
	return ""
}

func (g *group) expired(at int64, now time.Time) bool {
	return g.retention > 0 && at < now.AddDate(0, 0, -g.retention).UnixMilli()
}

// add keeps an event that is acceptable.
func (g *group) add(stream string, at time.Time, message string, now time.Time) {
	e := event{place: place{at.UnixMilli(), g.next}, ingested: now.UnixMilli(), stream: stream, message: message}
	g.next++
	i, _ := slices.BinarySearchFunc(g.events, e.place, func(o event, p place) int { return o.compare(p) })
	g.events = slices.Insert(g.events, i, e)
	g.bytes += len(message)
	g.trim(now)
}

// trim drops what is past the retention, and the oldest eighth when there is
// too much.
func (g *group) trim(now time.Time) {
	n := 0
	for n < len(g.events) && g.expired(g.events[n].At, now) {
		n++
	}
	if len(g.events) > maxEvents || g.bytes > maxBytes {
		n = max(n, len(g.events)/8, 1)
	}
	if n == 0 {
		return
	}
	for _, e := range g.events[:n] {
		g.bytes -= len(e.message)
	}
	g.events = slices.Delete(g.events, 0, n)
}

func (g *group) addStream(name string, now time.Time) error {
	if _, ok := g.streams[name]; ok {
		return nil
	}
	if len(g.streams) >= maxStreams {
		return limitExceeded()
	}
	g.streams[name] = now
	return nil
}

// serviceStream is the stream of a service for a day.
func (g *group) serviceStream(service string, now time.Time) string {
	return service + "/" + now.UTC().Format("2006/01/02") + "/" + g.key[:8]
}
