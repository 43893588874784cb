package reconcile

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/elbridge/elbridge/pkg/bus"
)

const (
	// maxBrief is how much of an error's text an event tells, in bytes: the log has
	// all of it.
	maxBrief = 500
	// MaxEventBytes is what an event may weigh: well under what the bus takes, since
	// the envelope counts too.
	MaxEventBytes = bus.MaxCallBytes * 4 / 5
)

// Brief is a text, cut to what an event has room for.
func Brief(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	cut := maxBrief - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.TrimSpace(text[:cut]) + "…"
}

// Fits reports whether an event's detail is light enough for the bus.
func Fits(detail any) bool {
	text, err := json.Marshal(detail)
	return err != nil || len(text) <= MaxEventBytes // what can't be written is told of where it is to be sent
}
