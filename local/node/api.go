package node

import (
	"errors"

	"github.com/elbridge/elbridge/local/node/internal/container"
)

// The control API speaks JSON over HTTP on loopback. Every path that acts answers
// 204, or an Error with 400, 404 or 409.
//
//	GET  /v1/pods                                   []PodInfo
//	GET  /v1/nodes                                  []NodeInfo
//	POST /v1/pods/{namespace}/{name}/crash          Crash
//	POST /v1/pods/{namespace}/{name}/oom            Crash (its exit code is 137)
//	POST /v1/pods/{namespace}/{name}/evict          Evict
//	POST /v1/pods/{namespace}/{name}/ready          Ready
//	POST /v1/pods/{namespace}/{name}/health         Health
//	POST /v1/pods/{namespace}/{name}/sandbox        starts all anew, with another address
//	POST /v1/nodes/{node}/partition                 cuts it from the API server; its pods go on
//	POST /v1/nodes/{node}/lose                      the same, and its pods die
//	POST /v1/nodes/{node}/heal                      ends both
//	POST /v1/nodes/{node}/writes                    Writes
//	POST /v1/addresses                              Address

// Answer is what a built-in server says of itself, for those who parse it.
type Answer = container.Answer

// Headers of every answer of a built-in server.
const (
	HeaderPod = container.HeaderPod
	HeaderUID = container.HeaderUID
)

// Crash ends a container as if by itself. It is started again as its pod's
// restart policy says.
type Crash struct {
	Container string `json:"container,omitempty"` // default: the first
	ExitCode  int    `json:"exitCode,omitempty"`  // default: 1
}

// Evict puts a pod out as a kubelet short of a resource does.
type Evict struct {
	Resource string `json:"resource,omitempty"` // default memory
	DropIP   bool   `json:"dropIP,omitempty"`   // the status names no address any more
}

// Ready overrules the readiness of all containers of a pod; nil gives it back to
// the probes.
type Ready struct {
	Ready *bool `json:"ready"`
}

// Health is the status that /healthz of a built-in server answers; 0 gives it
// back to the server.
type Health struct {
	Status int `json:"status"`
}

// Writes pauses or resumes the writing of pod statuses, final deletes included.
type Writes struct {
	Paused bool `json:"paused"`
}

// Address is chosen for the next pod that fits, at once, whatever its cool-down;
// the pod waits while another pod has it. Name or Selector may be left out.
type Address struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name,omitempty"`
	Selector  string `json:"selector,omitempty"` // as in kubectl -l
	Address   string `json:"address"`            // published, IPv4, no node's
}

// PodInfo is one pod that runs on these nodes, or has not been buried yet.
type PodInfo struct {
	Namespace   string          `json:"namespace"`
	Name        string          `json:"name"`
	UID         string          `json:"uid"`
	Node        string          `json:"node"`
	Zone        string          `json:"zone"`
	Phase       string          `json:"phase"` // as the node sees it, written or not
	Ready       bool            `json:"ready"`
	Terminating bool            `json:"terminating"`
	Addresses   []string        `json:"addresses"` // published
	Listen      []string        `json:"listen"`    // the loopback addresses behind them
	Containers  []ContainerInfo `json:"containers"`
}

// ContainerInfo is one container of a pod, init containers included.
type ContainerInfo struct {
	Name     string `json:"name"`
	Running  bool   `json:"running"`
	Ready    bool   `json:"ready"`
	Restarts int32  `json:"restarts"`
	Ports    []int  `json:"ports,omitempty"` // of a built-in server
	PID      int    `json:"pid,omitempty"`   // of a process
	Log      string `json:"log,omitempty"`   // file with what the process prints
}

// NodeInfo is one node.
type NodeInfo struct {
	Name    string `json:"name"`
	Zone    string `json:"zone"`
	Address string `json:"address"`
	State   string `json:"state"` // connected, partitioned or lost
	Paused  bool   `json:"paused"`
	Pods    int    `json:"pods"`
}

// Error is the body of a refusal.
type Error struct {
	Error string `json:"error"`
}

var (
	errNotFound   = errors.New("not found")
	errNotPresent = errors.New("not possible now")
)
