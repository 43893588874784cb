package binding

import (
	"strings"
	"time"
	"unicode"
)

// Tags by which people speak to elbridge.
const (
	// OwnerTag on a target group names the bus whose rules own it (I18): its ARN,
	// or its name where bus and group are of one account and region.
	OwnerTag = "elbridge:owner"
	// FreezeTag on a bus or a group stops removals, unless it is empty or "false".
	FreezeTag = "elbridge:freeze"
)

// Owns reports whether an owner tag names the bus: by ARN, or by name where bus
// and group are of one account and region, as EventBridge itself takes a name.
func Owns(tag, busARN, groupARN string) bool {
	if tag == "" {
		return false
	}
	if tag == busARN {
		return true
	}
	b, g := strings.Split(busARN, ":"), strings.Split(groupARN, ":")
	return len(b) > 5 && len(g) > 4 && b[3] == g[3] && b[4] == g[4] && b[5] == "event-bus/"+tag
}

// Frozen reports whether the tags stop removals.
func Frozen(tags map[string]string) bool {
	v := tags[FreezeTag]
	return v != "" && v != "false"
}

// The tags that record what people did, as Note writes it.
const (
	// AdoptedTag on a target group says who let a bus own it, and why.
	AdoptedTag = "elbridge:adopted"
	// UnfrozenTag on a bus or a group says who let removals go on, and why: the
	// freeze tag itself is gone then.
	UnfrozenTag = "elbridge:unfrozen"
)

// maxTagValue is the longest value of a tag, in characters: of ELB as of EventBridge.
const maxTagValue = 256

// Note is the text of a tag that records when somebody did something, who, and
// why. What a tag's value may not hold becomes a space, and the end of what is too
// long is cut. It begins with the time, so it is never empty nor "false".
func Note(who, why string, at time.Time) string {
	note := "at " + at.UTC().Format(time.RFC3339)
	if who = legal(who); who != "" {
		note += " by " + who
	}
	if why = legal(why); why != "" {
		note += " : " + why
	}
	if r := []rune(note); len(r) > maxTagValue {
		note = strings.TrimSpace(string(r[:maxTagValue]))
	}
	return note
}

// legal keeps what a tag's value may hold, with single spaces.
func legal(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("+-=._:/@", r) {
			return r
		}
		return ' '
	}, s)), " ")
}
