package podevent

import "time"

// WebhookStarted is the detail of the event that a webhook puts once it runs.
// Counted where events are consumed, it proves that the way there works (P083).
type WebhookStarted struct {
	Schema  int       `json:"schema"`
	Cluster string    `json:"cluster"`
	Webhook Webhook   `json:"webhook"`
	At      time.Time `json:"at"`
	// Bus is the ARN of the bus as it was looked up, or "" if that was refused.
	Bus string `json:"bus,omitempty"`
}

// WebhookHeartbeat is the detail of the event that a webhook puts each minute,
// so that its silence can raise an alarm.
type WebhookHeartbeat struct {
	Schema     int       `json:"schema"`
	Cluster    string    `json:"cluster"`
	Webhook    Webhook   `json:"webhook"`
	At         time.Time `json:"at"`
	StartedAt  time.Time `json:"startedAt"`
	QueueDepth int       `json:"queueDepth"` // events not yet sent
	QueueBytes int       `json:"queueBytes"`
	Reviews    uint64    `json:"reviews"` // since the start
	Sent       uint64    `json:"sent"`    // pod events, since the start
	Dropped    uint64    `json:"dropped"` // pod events, since the start
	// CertificateNotAfter is when the serving certificate expires (P074).
	CertificateNotAfter *time.Time `json:"certificateNotAfter,omitempty"`
}

// EventsDropped is the detail of the event that tells how many pod events were
// lost since the last one of its kind. Resync repairs what they would have
// said (I12).
type EventsDropped struct {
	Schema  int               `json:"schema"`
	Cluster string            `json:"cluster"`
	Webhook Webhook           `json:"webhook"`
	At      time.Time         `json:"at"`
	Since   time.Time         `json:"since"`
	Dropped uint64            `json:"dropped"`
	Causes  map[string]uint64 `json:"causes"` // cause -> count
}
