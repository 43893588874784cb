package webhook

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// from makes a lookup of "NAME=value" words.
func from(env string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for word := range strings.FieldsSeq(env) {
			if k, v, _ := strings.Cut(word, "="); k == name {
				return v, true
			}
		}
		return "", false
	}
}

const inPod = "KUBERNETES_SERVICE_HOST=10.96.0.1 KUBERNETES_SERVICE_PORT=443 POD_NAME=webhook-0 "

func TestConfigDefaults(t *testing.T) {
	got, err := ConfigFrom([]string{"--cluster=prod"}, from(inPod))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Cluster: "prod", Bus: "elbridge", Listen: ":8443", MetricsListen: ":8080", CertFile: "/tls/tls.crt", KeyFile: "/tls/tls.key",
		APIServer: "https://10.96.0.1:443", TokenFile: serviceAccount + "token", CAFile: serviceAccount + "ca.crt", Instance: "webhook-0",
		Heartbeat: time.Minute, QueueEvents: 2048, QueueBytes: 2 << 20, Drain: 5 * time.Second, Flush: 5 * time.Second,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ConfigFrom = %+v\nwant %+v", got, want)
	}
}

func TestConfigEnvironmentAndFlags(t *testing.T) {
	env := inPod + "ELBRIDGE_CLUSTER=a ELBRIDGE_BUS=arn:aws:events:eu-west-1:111122223333:event-bus/elbridge ELBRIDGE_ANNOTATIONS=a/*,b ELBRIDGE_HEARTBEAT="
	got, err := ConfigFrom([]string{"--cluster", "b", "--drain=0s"}, from(env))
	if err != nil {
		t.Fatal(err)
	}
	if got.Cluster != "b" || !strings.HasPrefix(got.Bus, "arn:") || !reflect.DeepEqual(got.Annotations, podevent.AllowList{"a/*", "b"}) || got.Drain != 0 || got.Heartbeat != time.Minute {
		t.Errorf("ConfigFrom = %+v: want flags before environment before defaults, empty as unset", got)
	}
}

func TestConfigListsEveryFault(t *testing.T) {
	env := "ELBRIDGE_BUS=two+words ELBRIDGE_HEARTBEAT=5 ELBRIDGE_QUEUE_BYTES=9"
	_, err := ConfigFrom([]string{"--listen=8443", "--annotations=*a", "--log-level=loud", "--drain=-1s", "--api-server=10.96.0.1", "--nonsense"}, from(env))
	if err == nil {
		t.Fatal("ConfigFrom accepts it all")
	}
	for _, want := range []string{
		"unknown flag: --nonsense",
		"--cluster or ELBRIDGE_CLUSTER: not set: want the name of the cluster",
		"--instance or ELBRIDGE_INSTANCE: not set",
		`ELBRIDGE_BUS "two+words": want a name or an ARN`,
		`ELBRIDGE_HEARTBEAT "5": want a duration such as 5s, at least 1s`,
		`ELBRIDGE_QUEUE_BYTES "9": want a number, at least 524288`,
		`--listen "8443": want host:port or :port`,
		`--annotations "*a": want annotation keys`,
		`--log-level "loud"`,
		`--drain "-1s": want a duration such as 5s, at least 0s`,
		`--api-server "10.96.0.1": want a URL such as https://`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%s", want, err)
		}
	}
}

func TestConfigHelp(t *testing.T) {
	if _, err := ConfigFrom([]string{"--help"}, from("")); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}
