package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// Environment variables. Each stands for the flag of the same name in lower
// case; a flag wins.
const (
	EnvCluster       = "ELBRIDGE_CLUSTER"
	EnvBus           = "ELBRIDGE_BUS"
	EnvListen        = "ELBRIDGE_LISTEN"
	EnvMetricsListen = "ELBRIDGE_METRICS_LISTEN"
	EnvTLSCert       = "ELBRIDGE_TLS_CERT"
	EnvTLSKey        = "ELBRIDGE_TLS_KEY"
	EnvAnnotations   = "ELBRIDGE_ANNOTATIONS"
	EnvAPIServer     = "ELBRIDGE_API_SERVER"
	EnvTokenFile     = "ELBRIDGE_TOKEN_FILE" //nolint:gosec // the name of a file
	EnvCAFile        = "ELBRIDGE_CA_FILE"
	EnvInstance      = "ELBRIDGE_INSTANCE"
	EnvHeartbeat     = "ELBRIDGE_HEARTBEAT"
	EnvQueueEvents   = "ELBRIDGE_QUEUE_EVENTS"
	EnvQueueBytes    = "ELBRIDGE_QUEUE_BYTES"
	EnvDrain         = "ELBRIDGE_DRAIN"
	EnvFlush         = "ELBRIDGE_FLUSH"
	EnvLogLevel      = "ELBRIDGE_LOG_LEVEL"

	// EnvPodName is the instance where EnvInstance is not set.
	EnvPodName = "POD_NAME"

	envServiceHost = "KUBERNETES_SERVICE_HOST"
	envServicePort = "KUBERNETES_SERVICE_PORT"
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"
)

// Config is all a webhook has to be told. AWS is configured as the SDK's default
// chain does it.
type Config struct {
	Cluster       string // the name that rules select by
	Bus           string // name or ARN
	Listen        string // address for the API server, TLS
	MetricsListen string // address for /metrics, /livez and /readyz, plain HTTP
	CertFile      string
	KeyFile       string
	Annotations   podevent.AllowList
	APIServer     string // URL, to read evicted pods from
	TokenFile     string
	CAFile        string
	Instance      string
	Heartbeat     time.Duration
	QueueEvents   int
	QueueBytes    int
	Drain         time.Duration // from the signal to stop until no review is taken any more
	Flush         time.Duration // for what is not yet sent then
	LogLevel      slog.Level
}

// setting is one value of the configuration.
type setting struct {
	flag, env, fallback, usage string
	set                        func(value string) error
}

func (c *Config) settings(lookup func(string) (string, bool)) []setting {
	env := func(name string) string { v, _ := lookup(name); return v }
	api := ""
	if host := env(envServiceHost); host != "" {
		api = "https://" + net.JoinHostPort(host, env(envServicePort))
	}
	return []setting{
		{"cluster", EnvCluster, "", "name of the cluster, as rules select it", text(&c.Cluster, `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`, "1 to 100 letters, digits, dots, dashes and underscores")},
		{"bus", EnvBus, "elbridge", "event bus, name or ARN", text(&c.Bus, `(arn:[a-z0-9-]+:events:[a-z0-9-]+:\d{12}:event-bus/)?[/.A-Za-z0-9_-]{1,256}`, "a name or an ARN")},
		{"listen", EnvListen, ":8443", "address for admission reviews, TLS", address(&c.Listen)},
		{"metrics-listen", EnvMetricsListen, ":8080", "address for /metrics, /livez and /readyz, plain HTTP", address(&c.MetricsListen)},
		{"tls-cert", EnvTLSCert, "/tls/tls.crt", "file with the serving certificate, read again when it changes", file(&c.CertFile)},
		{"tls-key", EnvTLSKey, "/tls/tls.key", "file with its key", file(&c.KeyFile)},
		{"annotations", EnvAnnotations, "", "annotations that events carry, separated by commas; a * at the end matches any rest", keys(&c.Annotations)},
		{"api-server", EnvAPIServer, api, "URL of the API server, to read evicted pods", serverURL(&c.APIServer)},
		{"token-file", EnvTokenFile, serviceAccount + "token", "file with the token for it", file(&c.TokenFile)},
		{"ca-file", EnvCAFile, serviceAccount + "ca.crt", "file with its CA", file(&c.CAFile)},
		{"instance", EnvInstance, env(EnvPodName), "name of this instance in events", text(&c.Instance, `\S{1,253}`, "the pod's name")},
		{"heartbeat", EnvHeartbeat, "1m", "time between heartbeat events", duration(&c.Heartbeat, time.Second)},
		{"queue-events", EnvQueueEvents, "2048", "pod events that may wait; the oldest is dropped", number(&c.QueueEvents, 10)},
		{"queue-bytes", EnvQueueBytes, "2097152", "bytes that they may take together", number(&c.QueueBytes, 512<<10)},
		{"drain", EnvDrain, "5s", "time to go on serving after SIGTERM, while the Service forgets this instance", duration(&c.Drain, 0)},
		{"flush", EnvFlush, "5s", "time to send what waits after that", duration(&c.Flush, 0)},
		{"log-level", EnvLogLevel, "info", "debug, info, warn or error", func(v string) error { return c.LogLevel.UnmarshalText([]byte(v)) }},
	}
}

// ConfigFrom reads flags and environment. Its error lists every fault.
func ConfigFrom(args []string, lookup func(string) (string, bool)) (Config, error) {
	var c Config
	settings := c.settings(lookup)
	flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
	flags.SortFlags = false
	values := make([]*string, len(settings))
	for i, s := range settings {
		values[i] = flags.String(s.flag, s.fallback, s.usage+" ("+s.env+")")
	}
	var faults []error
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return c, err
	} else if err != nil {
		faults = append(faults, err)
	}
	if flags.NArg() > 0 {
		faults = append(faults, fmt.Errorf("%q: want flags only", flags.Args()))
	}
	for i, s := range settings {
		value, from := *values[i], "--"+s.flag
		if v, _ := lookup(s.env); v != "" && !flags.Changed(s.flag) {
			value, from = v, s.env
		}
		if value == "" && s.fallback == "" && s.flag != "annotations" {
			faults = append(faults, fmt.Errorf("--%s or %s: not set: want the %s", s.flag, s.env, s.usage))
		} else if err := s.set(value); err != nil {
			faults = append(faults, fmt.Errorf("%s %q: %w", from, value, err))
		}
	}
	return c, errors.Join(faults...)
}

func text(to *string, pattern, want string) func(string) error {
	return func(v string) error {
		*to = v
		if !regexp.MustCompile("^(" + pattern + ")$").MatchString(v) {
			return errors.New("want " + want)
		}
		return nil
	}
}

func file(to *string) func(string) error {
	return func(v string) error {
		*to = v
		if v == "" {
			return errors.New("want the path of a file")
		}
		return nil
	}
}

func address(to *string) func(string) error {
	return func(v string) error {
		*to = v
		if _, port, err := net.SplitHostPort(v); err != nil || !isPort(port) {
			return errors.New("want host:port or :port")
		}
		return nil
	}
}

func isPort(v string) bool {
	n, err := strconv.Atoi(v)
	return err == nil && n >= 0 && n <= 65535
}

func serverURL(to *string) func(string) error {
	return func(v string) error {
		*to = v
		if u, err := url.Parse(v); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return errors.New("want a URL such as https://10.96.0.1:443")
		}
		return nil
	}
}

func keys(to *podevent.AllowList) func(string) error {
	return func(v string) error {
		for entry := range strings.SplitSeq(v, ",") {
			entry = strings.TrimSpace(entry)
			if strings.Contains(strings.TrimSuffix(entry, "*"), "*") || strings.ContainsAny(entry, " \t\"") {
				return errors.New("want annotation keys separated by commas, with a * at their end at most")
			}
			if entry != "" {
				*to = append(*to, entry)
			}
		}
		return nil
	}
}

func duration(to *time.Duration, least time.Duration) func(string) error {
	return func(v string) error {
		d, err := time.ParseDuration(v)
		*to = d
		if err != nil || d < least {
			return fmt.Errorf("want a duration such as 5s, at least %s", least)
		}
		return nil
	}
}

func number(to *int, least int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		*to = n
		if err != nil || n < least {
			return fmt.Errorf("want a number, at least %d", least)
		}
		return nil
	}
}
