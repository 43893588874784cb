package reconcile

import (
	"log/slog"
	"regexp"
	"strings"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/internal/settings"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// Settings are those that all who change target groups have in common.
type Settings struct {
	BusARN        string // also the value of a group's owner tag (I18)
	QueueARN      string // the registrar's: rule targets name it
	DeadLetterURL string
	Clusters      []cluster.Config
	Annotations   podevent.AllowList // the webhook's, so that live pods and events look alike to a pattern
	Observe       bool               // I19, for everything
	LogLevel      slog.Level
}

var (
	busARN   = regexp.MustCompile(`^arn:[a-z-]+:events:[a-z0-9-]+:\d{12}:event-bus/[/.\-_A-Za-z0-9]+$`)
	queueARN = regexp.MustCompile(`^arn:[a-z-]+:sqs:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+$`)
)

// ReadSettings reads them; faults stay with e.
func ReadSettings(e *settings.Env) Settings {
	s := Settings{
		BusARN:        e.Matching(telemetry.EnvBus, busARN, "the bus's ARN, arn:aws:events:REGION:ACCOUNT:event-bus/NAME"),
		QueueARN:      e.Matching(telemetry.EnvQueueARN, queueARN, "a standard queue's ARN, arn:aws:sqs:REGION:ACCOUNT:NAME"),
		DeadLetterURL: e.URL(telemetry.EnvDeadLetterURL),
		Observe:       e.OneOf(telemetry.EnvMode, "manage", "observe") == "observe",
	}
	var err error
	if text := e.Required(telemetry.EnvClusters); text != "" {
		if s.Clusters, err = cluster.ParseConfigs(text); err != nil {
			e.Fault(telemetry.EnvClusters, err.Error())
		}
	}
	for _, a := range strings.Split(e.Optional(telemetry.EnvAnnotations, ""), ",") {
		if a = strings.TrimSpace(a); a != "" {
			s.Annotations = append(s.Annotations, a)
		}
	}
	if err := s.LogLevel.UnmarshalText([]byte(e.Optional(telemetry.EnvLogLevel, "info"))); err != nil {
		e.Fault(telemetry.EnvLogLevel, "want debug, info, warn or error")
	}
	return s
}
