package registrar

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
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

var (
	busARN   = regexp.MustCompile(`^arn:[a-z-]+:events:[a-z0-9-]+:\d{12}:event-bus/[/.\-_A-Za-z0-9]+$`)
	queueARN = regexp.MustCompile(`^arn:[a-z-]+:sqs:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+$`)
)

// ConfigFromEnv reads the environment. Its error names every fault at once.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	e := env{lookup: lookup}
	c := Config{
		BusARN:        e.matching(telemetry.EnvBus, busARN, "the bus's ARN, arn:aws:events:REGION:ACCOUNT:event-bus/NAME"),
		QueueURL:      e.url(telemetry.EnvQueueURL),
		QueueARN:      e.matching(telemetry.EnvQueueARN, queueARN, "a standard queue's ARN, arn:aws:sqs:REGION:ACCOUNT:NAME"),
		DeadLetterURL: e.url(telemetry.EnvDeadLetterURL),
		ResyncURL:     e.optionalURL(telemetry.EnvResyncQueueURL),
		Verify:        Verify(e.oneOf(telemetry.EnvVerify, string(VerifyAlways), string(VerifyPrefer))),
		Observe:       e.oneOf(telemetry.EnvMode, "manage", "observe") == "observe",
		HintMaxAge:    e.duration(telemetry.EnvHintMaxAge, DefaultHintMaxAge),
		RegisterPace:  e.duration(telemetry.EnvRegisterPace, DefaultRegisterPace),
		DescribeSpare: e.number(telemetry.EnvDescribeSpare, DefaultDescribeSpare),
	}
	var err error
	if text := e.required(telemetry.EnvClusters); text != "" {
		if c.Clusters, err = cluster.ParseConfigs(text); err != nil {
			e.fault(telemetry.EnvClusters, err.Error())
		}
	}
	for _, a := range strings.Split(e.optional(telemetry.EnvAnnotations, ""), ",") {
		if a = strings.TrimSpace(a); a != "" {
			c.Annotations = append(c.Annotations, a)
		}
	}
	if err := c.LogLevel.UnmarshalText([]byte(e.optional(telemetry.EnvLogLevel, "info"))); err != nil {
		e.fault(telemetry.EnvLogLevel, "want debug, info, warn or error")
	}
	return c, errors.Join(e.faults...)
}

// env reads variables and collects what is wrong with them.
type env struct {
	lookup func(string) (string, bool)
	faults []error
}

func (e *env) fault(name, what string) {
	e.faults = append(e.faults, fmt.Errorf("%s: %s", name, what))
}

func (e *env) optional(name, fallback string) string {
	if v, ok := e.lookup(name); ok && v != "" {
		return v
	}
	return fallback
}

func (e *env) required(name string) string {
	v := e.optional(name, "")
	if v == "" {
		e.fault(name, "missing")
	}
	return v
}

func (e *env) matching(name string, re *regexp.Regexp, want string) string {
	v := e.required(name)
	if v != "" && !re.MatchString(v) {
		e.fault(name, fmt.Sprintf("%q: want %s", v, want))
	}
	return v
}

func (e *env) url(name string) string {
	e.required(name)
	return e.optionalURL(name)
}

func (e *env) optionalURL(name string) string {
	v := e.optional(name, "")
	if u, err := url.Parse(v); v != "" && (err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http")) {
		e.fault(name, fmt.Sprintf("%q: want the queue's URL", v))
	}
	return v
}

func (e *env) oneOf(name string, values ...string) string {
	v := e.optional(name, values[0])
	if slices.Contains(values, v) {
		return v
	}
	e.fault(name, fmt.Sprintf("%q: want %s", v, strings.Join(values, " or ")))
	return values[0]
}

func (e *env) duration(name string, fallback time.Duration) time.Duration {
	v := e.optional(name, fallback.String())
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		e.fault(name, fmt.Sprintf("%q: want a duration such as %s", v, fallback))
	}
	return d
}

func (e *env) number(name string, fallback float64) float64 {
	v := e.optional(name, strconv.FormatFloat(fallback, 'g', -1, 64))
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n < 0 {
		e.fault(name, fmt.Sprintf("%q: want a number, 0 or more", v))
	}
	return n
}
