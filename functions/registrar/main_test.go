package main

import (
	"os"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// settings are a good environment.
var settings = map[string]string{
	"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
	telemetry.EnvBus:            "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge",
	telemetry.EnvQueueURL:       "https://sqs.eu-west-1.amazonaws.com/111122223333/bindings",
	telemetry.EnvQueueARN:       "arn:aws:sqs:eu-west-1:111122223333:bindings",
	telemetry.EnvDeadLetterURL:  "https://sqs.eu-west-1.amazonaws.com/111122223333/bindings-dead",
	telemetry.EnvResyncQueueURL: "",
	telemetry.EnvClusters:       `[{"name":"prod","eks":{}},{"name":"lab","kubeconfig":"/nowhere","observe":true}]`,
}

func setenv(t *testing.T, env map[string]string) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	// Set by wire; Setenv puts them back when the test ends.
	for _, name := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWire(t *testing.T) {
	setenv(t, settings)
	r, err := wire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Clusters) != 2 || r.Clusters["prod"] == nil || r.Clusters["lab"] == nil || !r.Observed["lab"] || r.Observed["prod"] {
		t.Errorf("clusters %v, observed %v", r.Clusters, r.Observed)
	}
	if r.Groups(&binding.Binding{Group: binding.GroupRef{Name: "web"}}) == nil || r.Rules == nil || r.Queue == nil || r.Events == nil || r.Meter == nil || r.Log == nil || r.Now == nil || r.Sleep == nil {
		t.Errorf("something is missing in %+v", r)
	}
	if r.Handover != nil {
		t.Errorf("expired hints are handed to %v, want to nobody without a queue", r.Handover)
	}
	if got := os.Getenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS") + " " + os.Getenv("HTTP2_PING_TIMEOUT_SECONDS"); got != "5 3" {
		t.Errorf("HTTP/2 timeouts %q, want 5 and 3 s", got)
	}
}

func TestWireHandover(t *testing.T) {
	setenv(t, settings)
	t.Setenv(telemetry.EnvResyncQueueURL, "https://sqs.eu-west-1.amazonaws.com/111122223333/elbridge-resync")
	r, err := wire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Handover == nil {
		t.Error("expired hints are handed to nobody")
	}
}

func TestWhatTheOperatorSetStays(t *testing.T) {
	setenv(t, settings)
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "7")
	if _, err := wire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := os.Getenv("HTTP2_PING_TIMEOUT_SECONDS"); got != "7" {
		t.Errorf("ping timeout %s, want 7 as it was set", got)
	}
}

// An operator sees every fault at once, not one a deploy.
func TestEveryFaultIsNamed(t *testing.T) {
	tests := map[string]struct {
		change map[string]string
		want   []string // parts of the message, one a fault
	}{
		"nothing is set": {
			map[string]string{telemetry.EnvBus: "", telemetry.EnvQueueURL: "", telemetry.EnvQueueARN: "", telemetry.EnvDeadLetterURL: "", telemetry.EnvClusters: ""},
			[]string{telemetry.EnvBus + ": missing", telemetry.EnvQueueURL + ": missing", telemetry.EnvQueueARN + ": missing", telemetry.EnvDeadLetterURL + ": missing", telemetry.EnvClusters + ": missing"},
		},
		"everything is wrong": {
			map[string]string{telemetry.EnvBus: "elbridge", telemetry.EnvQueueURL: "bindings", telemetry.EnvQueueARN: "bindings", telemetry.EnvDeadLetterURL: "::", telemetry.EnvResyncQueueURL: "resync", telemetry.EnvClusters: `[{"name":"prod"},{"eks":{}}]`,
				telemetry.EnvMode: "watch", telemetry.EnvVerify: "never", telemetry.EnvHintMaxAge: "ten", telemetry.EnvRegisterPace: "-1s", telemetry.EnvDescribeSpare: "-1", telemetry.EnvLogLevel: "loud"},
			[]string{
				telemetry.EnvBus + `: "elbridge": want the bus's ARN`, telemetry.EnvQueueURL + `: "bindings": want the queue's URL`, telemetry.EnvQueueARN + `: "bindings": want a standard queue's ARN`,
				telemetry.EnvDeadLetterURL + `: "::": want the queue's URL`, telemetry.EnvResyncQueueURL + `: "resync": want the queue's URL`, "[0] (prod): want exactly one of eks and kubeconfig", "[1].name: missing", telemetry.EnvMode + `: "watch": want manage or observe`,
				telemetry.EnvVerify + `: "never": want always or prefer`, telemetry.EnvHintMaxAge + `: "ten": want a duration such as`, telemetry.EnvRegisterPace + `: "-1s"`, telemetry.EnvDescribeSpare + `: "-1"`,
				telemetry.EnvLogLevel + ": want debug, info, warn or error",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			setenv(t, settings)
			for name, value := range tt.change {
				t.Setenv(name, value)
			}
			r, err := wire(t.Context())
			if err == nil || r != nil {
				t.Fatalf("started as %+v, error %v", r, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in the message:\n%v", want, err)
				}
			}
		})
	}
}
