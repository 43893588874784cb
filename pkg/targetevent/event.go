// Package targetevent holds the events about target groups as Go values:
// "Targets Changed", "Removal Held", "Binding Invalid", "Binding Changed" and
// "Resync Completed". They are the record of every mutation and of every
// mutation not made, each with its cause (I10).
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

	DetailTypeTargetsChanged  = "Targets Changed"
	DetailTypeRemovalHeld     = "Removal Held"
	DetailTypeBindingInvalid  = "Binding Invalid"
	DetailTypeBindingChanged  = "Binding Changed"
	DetailTypeResyncCompleted = "Resync Completed"

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
	Round     int       `json:"round,omitempty"`     // of that run, from 1
	Drift     string    `json:"drift,omitempty"`     // kind of the drift: missing, extra, …
	Request   string    `json:"request,omitempty"`   // id of an operator's request, where one asked for the round
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
	Schema      int    `json:"schema"`
	Cause       Cause  `json:"cause"`
	Rule        string `json:"rule"`
	TargetGroup string `json:"targetGroup"`
	Mode        string `json:"mode"`
	WouldDo     bool   `json:"wouldDo"`
	Held        []Key  `json:"held"`
	// Hash names the plan. It is missing where only a part of the group was looked at,
	// as the registrar does for a hint: resync's event of the next round names the
	// whole plan, which alone can be approved.
	Hash string `json:"hash,omitempty"`
	// Overdue is true once the hold has outlasted the witness window (I9): it is
	// told once more then, for people.
	Overdue bool      `json:"overdue,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when the first of the keys came to be held
	Counts  Counts    `json:"counts"`
	At      time.Time `json:"at"`
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

// ChangeKind says what became of a rule.
type ChangeKind string

// The kinds of changes of a rule.
const (
	RuleAdded        ChangeKind = "added"
	RuleRemoved      ChangeKind = "removed"
	RuleEnabled      ChangeKind = "enabled"
	RuleDisabled     ChangeKind = "disabled"
	PatternChanged   ChangeKind = "pattern"
	ConstantsChanged ChangeKind = "constants" // what the rule's targets say
)

// BindingChanged tells of a rule that was added, removed or changed, with what
// that does to the groups it names or named.
type BindingChanged struct {
	Schema  int          `json:"schema"`
	Cause   Cause        `json:"cause"`
	Rule    string       `json:"rule"`
	Changes []ChangeKind `json:"changes"`
	Effects []Effect     `json:"effects"`
	At      time.Time    `json:"at"`
}

// Effect is what a comparison of one group, right after a change, would do or
// hold. Long lists are cut to their first MaxListed keys, the counts are whole.
type Effect struct {
	TargetGroup string `json:"targetGroup"`
	Gain        int    `json:"gain"`
	Lose        int    `json:"lose"`
	Hold        int    `json:"hold"`
	Gained      []Key  `json:"gained,omitempty"`
	Lost        []Key  `json:"lost,omitempty"`
	Held        []Key  `json:"held,omitempty"`
	Hash        string `json:"hash,omitempty"` // of what is held
}

// MaxListed bounds lists in events whose length nothing else bounds, so that an
// event stays within 256 KB.
const MaxListed = 200

// ResyncCompleted tells of a round: what was compared, what differed and what
// became of it. It is put when a round found something new, when somebody asked
// for the round, and at least every five minutes.
type ResyncCompleted struct {
	Schema    int            `json:"schema"`
	RunID     string         `json:"runId"`
	Round     int            `json:"round"`
	Trigger   string         `json:"trigger"` // schedule, request, webhook-started, events-dropped, hint-expired
	Request   *Request       `json:"request,omitempty"`
	DryRun    bool           `json:"dryRun,omitempty"`
	Clusters  []ClusterState `json:"clusters"`
	Groups    int            `json:"groups"`   // compared in this round
	Unread    int            `json:"unread"`   // groups that could not be compared
	Found     int            `json:"found"`    // differences
	Repaired  int            `json:"repaired"` // of those
	Held      int            `json:"held"`
	Failed    int            `json:"failed"`
	Findings  []Finding      `json:"findings"`            // the first MaxListed
	Truncated int            `json:"truncated,omitempty"` // findings that are not listed
	Problems  []string       `json:"problems,omitempty"`  // what was not read, and why
	Seconds   float64        `json:"seconds"`
	At        time.Time      `json:"at"`
}

// Request is an operator's wish, as the function understood it, and who had it.
type Request struct {
	ID      string   `json:"id"`
	Groups  []string `json:"groups,omitempty"` // empty: all
	Approve string   `json:"approve,omitempty"`
	By      string   `json:"by,omitempty"`     // ARN that the caller says is its own
	Sender  string   `json:"sender,omitempty"` // principal id, as SQS saw it
	Reason  string   `json:"reason,omitempty"`
}

// ClusterState says how well a cluster was read.
type ClusterState struct {
	Name     string `json:"name"`
	Complete bool   `json:"complete"`
	Pods     int    `json:"pods"` // selected ones
	Error    string `json:"error,omitempty"`
}

// Finding is one difference and what became of it.
type Finding struct {
	TargetGroup string `json:"targetGroup"`
	Drift       string `json:"drift"`  // its kind
	Action      string `json:"action"` // registered, deregistered, would-register, would-deregister, held, failed, reported
	Key
}

// Decode reads the detail of one of these events. Fields it does not know are
// skipped; another schema version is refused.
func Decode[T TargetsChanged | RemovalHeld | BindingInvalid | BindingChanged | ResyncCompleted](detail []byte) (T, error) {
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
