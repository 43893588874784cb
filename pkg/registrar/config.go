package registrar

import (
	"log/slog"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/internal/settings"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// Defaults of the settings.
const (
	// DefaultHintMaxAge is when a hint is handed to resync; by then EventBridge
	// and SQS have had their usual delays a hundred times over.
	DefaultHintMaxAge = 10 * time.Minute
	// DefaultRegisterPace is the least time between two RegisterTargets calls of
	// one instance for one group. The account has 4 a second after a burst of 20;
	// within the pace everything that has become due is read by one LIST, and a
	// lone pod, one a second, never waits.
	DefaultRegisterPace = 800 * time.Millisecond
	// DefaultDescribeSpare is the rate, per instance, of looks at a group for
	// hints that change no claim by themselves. Five instances take a fifth of the
	// account's 10 Describe calls a second, which are everybody's.
	DefaultDescribeSpare = 0.4
)

// Verify says what happens while an API server is out of reach.
type Verify string

// The values of Verify.
const (
	VerifyAlways Verify = "always" // hold registration and removal
	VerifyPrefer Verify = "prefer" // register young events within podCIDRs; never remove
)

// Config is the registrar's environment.
type Config struct {
	BusARN        string // also the value of a group's owner tag (I18)
	QueueURL      string
	QueueARN      string
	DeadLetterURL string
	ResyncURL     string // of the queue of resync's requests; "": expired hints are handed to nobody
	Clusters      []cluster.Config
	Annotations   podevent.AllowList // the webhook's, so that live pods and events look alike to a pattern
	Observe       bool               // I19, for everything
	Verify        Verify
	HintMaxAge    time.Duration
	RegisterPace  time.Duration
	DescribeSpare float64 // calls a second
	LogLevel      slog.Level
}

// ConfigFromEnv reads the environment. Its error names every fault at once.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	e := settings.New(lookup)
	common := reconcile.ReadSettings(e)
	c := Config{
		BusARN: common.BusARN, QueueARN: common.QueueARN, DeadLetterURL: common.DeadLetterURL, Clusters: common.Clusters,
		Annotations: common.Annotations, Observe: common.Observe, LogLevel: common.LogLevel,
		QueueURL:      e.URL(telemetry.EnvQueueURL),
		ResyncURL:     e.OptionalURL(telemetry.EnvResyncQueueURL),
		Verify:        Verify(e.OneOf(telemetry.EnvVerify, string(VerifyAlways), string(VerifyPrefer))),
		HintMaxAge:    e.Duration(telemetry.EnvHintMaxAge, DefaultHintMaxAge),
		RegisterPace:  e.Duration(telemetry.EnvRegisterPace, DefaultRegisterPace),
		DescribeSpare: e.Number(telemetry.EnvDescribeSpare, DefaultDescribeSpare),
	}
	return c, e.Err()
}
