// Command webhook is the container that runs in the cluster: the API server
// sends it every change of a pod that may matter, and it puts pod events on the
// bus.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/pflag"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/webhook"
)

// version is set by the linker.
var version = "dev"

// Memory is the webhook's price on every cluster: collect early, and more often
// the closer it comes to the limit. Environment variables GOGC and GOMEMLIMIT
// win.
const (
	gcPercent   = 50
	memoryLimit = 12 << 20 // bytes, soft: queue and bodies are bounded by themselves
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); errors.Is(err, pflag.ErrHelp) {
		return
	} else if err != nil {
		fmt.Fprintf(os.Stderr, "webhook: %s\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	limitMemory()
	cfg, err := webhook.ConfigFrom(os.Args[1:], os.LookupEnv)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: cfg.LogLevel})).With("cluster", cfg.Cluster)
	aws, err := awsconfig.LoadDefaultConfig(ctx) // credentials are fetched by the first call, not here
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	if aws.Region == "" {
		return errors.New("AWS configuration: no region: want AWS_REGION")
	}
	client := eventbridge.NewFromConfig(aws)
	w, err := webhook.New(cfg, webhook.Deps{
		Version:   version,
		Publisher: bus.NewPublisher(client, cfg.Bus, bus.Retry{Attempts: -1}),
		Bus:       func(ctx context.Context) (string, error) { return bus.Exists(ctx, client, cfg.Bus) },
		Pods:      webhook.NewPodReader(cfg.APIServer, cfg.TokenFile, cfg.CAFile, cfg.Annotations),
		Log:       log,
		Now:       time.Now,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func limitMemory() {
	if _, ok := os.LookupEnv("GOGC"); !ok {
		debug.SetGCPercent(gcPercent)
	}
	if _, ok := os.LookupEnv("GOMEMLIMIT"); !ok {
		debug.SetMemoryLimit(memoryLimit)
	}
}
