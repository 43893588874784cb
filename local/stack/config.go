// Package stack runs the whole of elbridge on one machine: a real control plane,
// nodes that run pods, a local AWS, the webhook in the cluster and the functions
// outside of it. It wires the other packages under local/ together; what an
// account or a cluster would be set up with in the field is set up here, through
// the same APIs.
package stack

import (
	"io"
	"log/slog"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/local/node"
)

// Names of what the stack sets up.
const (
	Region         = "eu-west-1"
	Account        = "111122223333"
	ClusterName    = "local"
	Bus            = "elbridge"
	BusARN         = "arn:aws:events:" + Region + ":" + Account + ":event-bus/" + Bus
	Queue          = "elbridge-registrar"
	DeadLetters    = "elbridge-registrar-dead"
	QueueARN       = "arn:aws:sqs:" + Region + ":" + Account + ":" + Queue
	DeadLettersARN = "arn:aws:sqs:" + Region + ":" + Account + ":" + DeadLetters
	Registrar      = "registrar" // function
	Resync         = "resync"    // function
	RegistrarRole  = "elbridge-registrar"
	ResyncRole     = "elbridge-resync"
	WebhookSpace   = "elbridge-system"
	WebhookName    = "elbridge-webhook"
)

const (
	// registrarTimeout is the function's; the queue's visibility time-out is six
	// times that, as Lambda asks for.
	registrarTimeout = 15 * time.Second
	visibility       = 6 * registrarTimeout
	// maxReceives is SQS's maximum: age ends a hint, not the number of receives.
	maxReceives = 1000
	// registrarInstances is the event source mapping's maximum concurrency.
	registrarInstances = 5
)

// Config says how the stack is to be. Dir and Binaries are required.
type Config struct {
	Dir       string // data, logs, keys
	Clean     bool   // remove what an earlier stack left in Dir
	Binaries  string // folder with what `make build` makes: registrar/bootstrap, webhook
	CloudPort int    // of the local AWS; 0 chooses a free one

	// Ports are those of the pods and listeners to come: a program that listens on
	// one of them on all addresses would stand in their way.
	Ports []int

	Way            Way           // how target groups learn of pods; default WayBoth, or WayEvents with a Bootstrap
	ResyncInterval time.Duration // between resync's rounds; default 20 s
	RunLength      time.Duration // of a run of resync; 0 is its default
	RateShare      float64       // of the account's ELB rates, for resync; 0 is its default

	WebhookReplicas int                              // default 2
	Pace            time.Duration                    // the registrar's; 0 is its default
	BusDelay        time.Duration                    // between PutEvents and delivery
	CheckSpeedup    float64                          // of health checks; default 5, so that 5 s become 1 s
	GracePeriod     time.Duration                    // node monitor's; 0 is Kubernetes' 50 s
	OnTarget        func(elb.Change)                 // each step of a target's life
	OnLine          func(functions.Line)             // each line that a function prints
	Node            func(*node.Config)               // changes to the node agent's settings
	LogLevel        slog.Level                       // of the functions; default info
	Bootstrap       string                           // another binary in the registrar's place
	Say             func(format string, args ...any) // progress in plain words
	Progress        io.Writer                        // of builds
	Log             *slog.Logger
}
