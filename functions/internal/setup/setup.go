// Package setup is what the functions that change target groups begin with.
package setup

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/elbridge/elbridge/pkg/telemetry"
)

const (
	// sdkAttempts of one call are enough for a lost packet or a short throttle.
	sdkAttempts = 3
	// After a freeze a pooled HTTP/2 connection is often dead; client-go's own
	// 30 s and 15 s would outlast an invocation, or a round.
	http2ReadIdleSeconds = "5"
	http2PingSeconds     = "3"
)

// SDK returns the SDK's configuration, with at most that time between two
// attempts of a call, and makes client-go find out soon that a connection is dead.
func SDK(ctx context.Context, maxBackoff time.Duration, log *slog.Logger) (aws.Config, error) {
	// client-go reads these when it builds a transport; what the operator set stays.
	if err := errors.Join(setDefault("HTTP2_READ_IDLE_TIMEOUT_SECONDS", http2ReadIdleSeconds), setDefault("HTTP2_PING_TIMEOUT_SECONDS", http2PingSeconds)); err != nil {
		return aws.Config{}, err
	}
	return awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(telemetry.SDKLog(log)), awsconfig.WithRetryer(func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = sdkAttempts, maxBackoff })
	}))
}

func setDefault(name, value string) error {
	if _, set := os.LookupEnv(name); set {
		return nil
	}
	return os.Setenv(name, value)
}
