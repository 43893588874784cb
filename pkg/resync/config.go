package resync

import (
	"fmt"
	"time"

	"github.com/elbridge/elbridge/pkg/internal/settings"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// Defaults of the settings.
const (
	// DefaultRunLength ends a run just before the fourteenth firing of a schedule
	// of one minute, which starts the next: Lambda's longest time is 15 min.
	DefaultRunLength = 13*time.Minute + 50*time.Second
	// MaxRunLength leaves a minute of Lambda's 15 for the end of a round.
	MaxRunLength = 14 * time.Minute
	// DefaultInterval is the time between two rounds (design: 20 s up to 50 groups).
	DefaultInterval = 20 * time.Second
	// DefaultShare is our share of the account's rates: ELB's are everybody's.
	DefaultShare = 0.25
	// minInterval keeps a mistyped setting from spending the account's rates.
	minInterval = time.Second
)

// Config is resync's environment.
type Config struct {
	reconcile.Settings
	RequestsURL string        // of the queue of requests; "": there is none
	RunLength   time.Duration // of one run, at most MaxRunLength
	Interval    time.Duration // between two rounds
	Share       float64       // of the account's rates, more than 0 and at most 1
}

// ConfigFromEnv reads the environment. Its error names every fault at once.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	e := settings.New(lookup)
	c := Config{
		Settings:    reconcile.ReadSettings(e),
		RequestsURL: e.OptionalURL(telemetry.EnvResyncQueueURL),
		RunLength:   e.Duration(telemetry.EnvRunLength, DefaultRunLength),
		Interval:    e.Duration(telemetry.EnvResyncInterval, DefaultInterval),
		Share:       e.Number(telemetry.EnvRateShare, DefaultShare),
	}
	if c.RunLength > MaxRunLength || c.RunLength < c.Interval {
		e.Fault(telemetry.EnvRunLength, fmt.Sprintf("%s: want at least a round, %s, and at most %s", c.RunLength, c.Interval, MaxRunLength))
	}
	if c.Interval < minInterval {
		e.Fault(telemetry.EnvResyncInterval, fmt.Sprintf("%s: want at least %s", c.Interval, minInterval))
	}
	if c.Share <= 0 || c.Share > 1 {
		e.Fault(telemetry.EnvRateShare, fmt.Sprintf("%g: want more than 0 and at most 1", c.Share))
	}
	return c, e.Err()
}
