// Package binding reads what an EventBridge rule of the elbridge bus says: which
// pods (the pattern) belong into which target group, and how (the constants in
// the target's input template). It is pure.
package binding

import (
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Rule is an EventBridge rule as ListRules shows it.
type Rule struct {
	ARN, Name, Bus     string
	State              string // "ENABLED" or "DISABLED"
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

// Message is what the registrar's queue holds.
type Message struct {
	Binding    Binding
	Rule       string // ARN
	Event      json.RawMessage
	Detail     podevent.Event
	EventID    string
	Time       time.Time
	Account    string
	Region     string
	Source     string
	DetailType string
}

// What a message that cannot be used is: errors.Is tells.
var (
	ErrForeign   = errors.New("not a pod event of elbridge")
	ErrMalformed = errors.New("malformed message")
)

var errTODO = errors.New("not written yet")

// FromRule reads the bindings of a rule: one for each target that is queueARN.
// Targets elsewhere are ignored. Errors are joined, and good targets are still
// returned beside them.
func FromRule(rule Rule, targets []Target, queueARN string) ([]Binding, error) { return nil, errTODO }

// ParseConstants reads the "binding" object alone.
func ParseConstants(raw []byte) (Binding, error) { return Binding{}, errTODO }

// ParseMessage reads the body of a message of the registrar's queue.
func ParseMessage(body []byte) (Message, error) { return Message{}, errTODO }
