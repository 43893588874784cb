package binding

import "strings"

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
