// Package podevent is the event "Pod State Change" as a Go value: what a pod
// event says, how it is written and read, and which events a change of a pod
// makes. It talks to nothing and has no clock; the moment of an observation is
// an argument. An event is a hint (I1): nothing in it is proof of anything.
package podevent

import "time"

// Source, detail-types and schema version of the events that the webhook puts.
// The webhook's role may put these and no others (I17).
const (
	Source = "elbridge"

	DetailTypePodStateChange   = "Pod State Change"
	DetailTypeWebhookStarted   = "Webhook Started"
	DetailTypeWebhookHeartbeat = "Webhook Heartbeat"
	DetailTypeEventsDropped    = "Events Dropped"

	// Schema is the version in detail.schema. Added fields leave it alone; a
	// field that changes its meaning raises it.
	Schema = 1
)

// Reason says which kind of change an event tells of.
type Reason string

// The reasons. One sample of each stands in events/samples.
const (
	IPAssigned  Reason = "IPAssigned"  // the pod got an address, or another one
	Ready       Reason = "Ready"       // Ready or ContainersReady became true
	NotReady    Reason = "NotReady"    // Ready or ContainersReady became false
	Terminating Reason = "Terminating" // a DELETE with a grace period, or deletionTimestamp appeared
	Evicted     Reason = "Evicted"     // an eviction that took effect
	Deleted     Reason = "Deleted"     // a DELETE with grace period 0: the object goes
	Finished    Reason = "Finished"    // phase became Succeeded or Failed
	Relabelled  Reason = "Relabelled"  // labels or allowed annotations changed
)

// Event is the detail of a "Pod State Change" event.
type Event struct {
	Schema    int    `json:"schema"`
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// ResourceVersion is the one before the change: admission sees a write
	// before it is stored, and old and new object carry the same version.
	ResourceVersion string   `json:"resourceVersion"`
	PodIP           string   `json:"podIP,omitempty"`
	PodIPs          []string `json:"podIPs,omitempty"`
	HostIP          string   `json:"hostIP,omitempty"`
	HostNetwork     bool     `json:"hostNetwork"`
	NodeName        string   `json:"nodeName,omitempty"`
	Phase           string   `json:"phase,omitempty"`
	Ready           bool     `json:"ready"`
	ContainersReady bool     `json:"containersReady"`
	Terminating     bool     `json:"terminating"`
	// DeletionGracePeriodSeconds is set only on a pod that is being deleted.
	DeletionGracePeriodSeconds *int64            `json:"deletionGracePeriodSeconds,omitempty"`
	Labels                     map[string]string `json:"labels"`
	Annotations                map[string]string `json:"annotations"` // those on the webhook's allow-list
	Owner                      *Owner            `json:"owner,omitempty"`
	ServiceAccount             string            `json:"serviceAccount,omitempty"`
	Ports                      []Port            `json:"ports,omitempty"`
	Previous                   *Previous         `json:"previous,omitempty"`
	Reason                     Reason            `json:"reason"`
	ObservedAt                 time.Time         `json:"observedAt"` // RFC 3339 with milliseconds, UTC
	Webhook                    Webhook           `json:"webhook"`
	// Cut counts what was left out to keep the event within its size limit.
	Cut *Cut `json:"cut,omitempty"`
}

// Owner is the controlling owner of a pod.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Port is a declared container port. HostPort is 0 where there is none.
type Port struct {
	Name          string `json:"name,omitempty"`
	ContainerPort int32  `json:"containerPort"`
	HostPort      int32  `json:"hostPort,omitempty"`
	Protocol      string `json:"protocol"`
}

// Previous is what the pod was before the change, where that differs.
type Previous struct {
	PodIP  string            `json:"podIP,omitempty"`
	PodIPs []string          `json:"podIPs,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Terminating is true where the pod was being deleted already: an event that
	// tells of its end once more.
	Terminating bool `json:"terminating,omitempty"`
}

// Webhook names the program that observed the change.
type Webhook struct {
	Version  string `json:"version"`
	Instance string `json:"instance"`
}

// Cut counts the entries left out of an event that was too large.
type Cut struct {
	Annotations int `json:"annotations,omitempty"`
	Ports       int `json:"ports,omitempty"`
	Labels      int `json:"labels,omitempty"`
}

// Pod is a pod in elbridge's own words: what may decide about a claim or a
// rule, and nothing else. The webhook reads it from an AdmissionReview,
// pkg/cluster from the API server.
type Pod struct {
	Namespace       string
	Name            string
	UID             string
	ResourceVersion string
	Labels          map[string]string
	Annotations     map[string]string // unfiltered where the reader has them all
	Owner           *Owner
	ServiceAccount  string
	NodeName        string
	HostNetwork     bool
	Ports           []Port
	PodIPs          []string // the first one is status.podIP
	HostIP          string
	Phase           string
	Ready           bool // condition Ready is True
	ContainersReady bool // condition ContainersReady is True
	// Terminating is true from deletionTimestamp on. Its value lies in the
	// future; that it is there is the signal.
	Terminating                bool
	DeletionGracePeriodSeconds *int64
}

// PodIP is status.podIP, or "" before the pod has an address.
func (p *Pod) PodIP() string {
	if len(p.PodIPs) == 0 {
		return ""
	}
	return p.PodIPs[0]
}

// Finished reports whether the pod's phase is Succeeded or Failed: it keeps its
// address in its status while the network may give it to another pod (P046).
func (p *Pod) Finished() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }
