// Package targetevent holds the events about target groups as Go values:
// "Targets Changed", "Removal Held" and "Binding Invalid". They are the record
// of every mutation and of every mutation not made, each with its cause (I10).
// It is pure: it builds and reads values and talks to nothing.
package targetevent

import (
	"encoding/json"
	"fmt"
	"time"
)

// Source and detail-types of the events that registrar and resync put.
const (
	Source = "elbridge.targets"

	DetailTypeTargetsChanged = "Targets Changed"
	DetailTypeRemovalHeld    = "Removal Held"
	DetailTypeBindingInvalid = "Binding Invalid"

	// Schema is the version in detail.schema. Added fields leave it alone.
	Schema = 1
)

// CauseKind says what made a program look at a target group.
type CauseKind string

// The kinds of causes (I10).
const (
	Hint   CauseKind = "hint"   // a pod event
	Drift  CauseKind = "drift"  // a difference that no event explained
	Resync CauseKind = "resync" // a run that compares everything
)

// Cause is why something was done, with the ids under which the logs tell more.
type Cause struct {
	Kind      CauseKind `json:"kind"`
	EventID   string    `json:"eventId,omitempty"`   // of a hint
	MessageID string    `json:"messageId,omitempty"` // of the hint's queue message
	RunID     string    `json:"runId,omitempty"`     // of a resync run
	Drift     string    `json:"drift,omitempty"`     // kind of the drift: missing, extra, …
}

// Key is a target, and what speaks for its change.
type Key struct {
	ID        string `json:"id"` // address or instance id
	Port      int32  `json:"port"`
	Zone      string `json:"zone,omitempty"`
	PodUID    string `json:"podUID,omitempty"`
	Pod       string `json:"pod,omitempty"` // namespace/name
	Cluster   string `json:"cluster,omitempty"`
	Node      string `json:"node,omitempty"`
	Witness   string `json:"witness,omitempty"` // the second witness of a removal (I9)
	Reason    string `json:"reason,omitempty"`  // why it changed or is held, in words
	Rule      string `json:"rule,omitempty"`    // ARN, where several rules share the group
	EventID   string `json:"eventId,omitempty"` // the hint behind this key, where several caused one call
	MessageID string `json:"messageId,omitempty"`
}

// Counts is the state of the group that the decision was made on.
type Counts struct {
	Claimed  int `json:"claimed"`
	Healthy  int `json:"healthy"`
	Draining int `json:"draining"`
	Targets  int `json:"targets"` // all, draining ones aside
}

// TargetsChanged tells of one decision about a group that was carried out, or,
// if WouldDo is set, that would have been (I19).
type TargetsChanged struct {
	Schema       int       `json:"schema"`
	Cause        Cause     `json:"cause"`
	Rule         string    `json:"rule"` // ARN
	TargetGroup  string    `json:"targetGroup"`
	Mode         string    `json:"mode"`    // manage or observe
	WouldDo      bool      `json:"wouldDo"` // nothing was changed
	Registered   []Key     `json:"registered"`
	Deregistered []Key     `json:"deregistered"`
	Failed       []Failure `json:"failed,omitempty"`
	Counts       Counts    `json:"counts"`
	At           time.Time `json:"at"`
}

// Failure is a key whose change the load balancer refused.
type Failure struct {
	Key
	Operation string `json:"operation"` // register or deregister
	Error     string `json:"error"`
}

// RemovalHeld tells of removals that were not made for want of a witness (I9).
// An operator approves this very plan by its hash.
type RemovalHeld struct {
	Schema      int       `json:"schema"`
	Cause       Cause     `json:"cause"`
	Rule        string    `json:"rule"`
	TargetGroup string    `json:"targetGroup"`
	Mode        string    `json:"mode"`
	WouldDo     bool      `json:"wouldDo"`
	Held        []Key     `json:"held"`
	Hash        string    `json:"hash"`
	Counts      Counts    `json:"counts"`
	At          time.Time `json:"at"`
}

// BindingInvalid tells of a rule target that can't be understood, or a binding
// that can't be followed: it covers nothing, the others go on.
type BindingInvalid struct {
	Schema      int       `json:"schema"`
	Cause       Cause     `json:"cause"`
	Rule        string    `json:"rule"`
	TargetID    string    `json:"targetId,omitempty"`
	TargetGroup string    `json:"targetGroup,omitempty"`
	Mode        string    `json:"mode,omitempty"`
	Problem     string    `json:"problem"`
	At          time.Time `json:"at"`
}

// Decode reads the detail of one of the three events. Fields it does not know
// are skipped; another schema version is refused.
func Decode[T TargetsChanged | RemovalHeld | BindingInvalid](detail []byte) (T, error) {
	var v struct {
		Schema int `json:"schema"`
	}
	var e T
	if err := json.Unmarshal(detail, &v); err != nil {
		return e, fmt.Errorf("%T: %w", e, err)
	}
	if v.Schema != Schema {
		return e, fmt.Errorf("%T: detail.schema %d: want %d", e, v.Schema, Schema)
	}
	if err := json.Unmarshal(detail, &e); err != nil {
		return e, fmt.Errorf("%T: %w", e, err)
	}
	return e, nil
}
