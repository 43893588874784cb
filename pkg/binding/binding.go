// Package binding reads what an EventBridge rule of the elbridge bus says: which
// pods (the pattern) belong into which target group, and how (the constants in
// the target's input template). It also renders what EventBridge would deliver
// to a target, and reads the messages that come of it.
//
// A rule that cannot be understood covers nothing and is reported; the others go
// on. Absent configuration means "not ours" (I8). The package is pure.
package binding

import (
	"net/netip"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// Rule is an EventBridge rule as ListRules shows it.
type Rule struct {
	ARN, Name, Bus     string
	State              string // "DISABLED"; anything else is enabled
	Pattern            string // EventPattern; empty for a scheduled rule
	ScheduleExpression string
}

// Target is a target of a rule as ListTargetsByRule shows it.
type Target struct {
	ID, ARN          string
	Input, InputPath string
	Transformer      *Transformer
}

// Transformer is a target's InputTransformer.
type Transformer struct {
	PathsMap map[string]string
	Template string
}

// RegisterWhen says from which state of a pod on its address is claimed.
type RegisterWhen string

// The values of registerWhen.
const (
	HasIP           RegisterWhen = "HasIP"
	ContainersReady RegisterWhen = "ContainersReady"
	Ready           RegisterWhen = "Ready"
)

// Mode says whether changes are made or only told.
type Mode string

// The values of mode.
const (
	Manage  Mode = "manage"
	Observe Mode = "observe" // I19
)

// Values of availabilityZone beside the name of a zone.
const (
	ZoneAuto = "auto"
	ZoneAll  = "all"
)

// Defaults of the constants.
const (
	DefaultMinTargets        = 1
	DefaultMaxRemovalPercent = 20
)

// GroupRef names a target group: exactly one of its fields is set.
type GroupRef struct {
	ARN  string
	Name string
	Tags map[string]string
}

// Carried reports whether tags are among those that the reference names groups by.
func (r GroupRef) Carried(tags map[string]string) bool {
	for k, v := range r.Tags {
		if got, ok := tags[k]; !ok || got != v {
			return false
		}
	}
	return len(r.Tags) > 0
}

// Port is the port of a target: a number, a container port name, or neither
// (the group's own).
type Port struct {
	Number int32
	Name   string
}

// Binding is one rule target: a pattern and constants.
type Binding struct {
	Rule, TargetID    string // rule ARN and target id
	Pattern           *eventpattern.Pattern
	Group             GroupRef
	Port              Port
	RegisterWhen      RegisterWhen
	MinTargets        int
	MaxRemovalPercent int
	PodCIDRs          []netip.Prefix
	Mode              Mode
	KeepForeign       bool // foreignTargets: keep (I18)
	Empty             bool
	AvailabilityZone  string // ZoneAuto, ZoneAll or a zone
	RoleARN           string
	ExternalID        string
	ReadinessGate     string
	Enabled           bool // the rule's state
}
