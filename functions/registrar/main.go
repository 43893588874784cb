// Command registrar is the Lambda behind the binding queue: every SQS message is
// one rendered rule target, and a hint to look at the keys it names.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/elbridge/elbridge/functions/internal/setup"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/registrar"
	"github.com/elbridge/elbridge/pkg/targetgroup"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// version is set by the build.
var version = "dev"

// sdkMaxBackoff is the longest wait between two attempts of one call. What lasts longer is the queue's to repeat.
const sdkMaxBackoff = 300 * time.Millisecond

func main() {
	r, err := wire(context.Background())
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).Error("registrar did not start", "err", err)
		os.Exit(1)
	}
	lambda.Start(func(ctx context.Context, in events.SQSEvent) (events.SQSEventResponse, error) {
		return queue.Response(r.Process(ctx, queue.Batch(in))), nil
	})
}

func wire(ctx context.Context) (*registrar.Registrar, error) {
	cfg, err := registrar.ConfigFromEnv(os.LookupEnv) // err names every bad variable at once
	if err != nil {
		return nil, err
	}
	log := telemetry.NewLogger(os.Stdout, cfg.LogLevel)
	sdk, err := setup.SDK(ctx, sdkMaxBackoff, log)
	if err != nil {
		return nil, err
	}
	bridge, sqsClient := eventbridge.NewFromConfig(sdk), sqs.NewFromConfig(sdk)
	accounts := &targetgroup.Accounts{AWS: sdk}
	r := &registrar.Registrar{
		Config: cfg, Clusters: map[string]reconcile.Cluster{}, Observed: map[string]bool{},
		Groups: func(b *binding.Binding) reconcile.Groups { return accounts.For(b) },
		Rules:  bus.NewRules(bridge, cfg.BusARN),
		Queue:  queue.New(sqsClient, cfg.QueueURL, cfg.DeadLetterURL),
		Events: bus.NewPublisher(bridge, cfg.BusARN, bus.Retry{}),
		Meter:  telemetry.NewMeter(os.Stdout, time.Now, map[string]string{"bus": cfg.BusARN}),
		Log:    log,
		Now:    time.Now,
		Sleep:  registrar.Sleep,
	}
	if cfg.ResyncURL != "" {
		r.Handover = queue.NewRequests(sqsClient, cfg.ResyncURL)
	}
	dialer := &cluster.Dialer{AWS: sdk, EKS: eks.NewFromConfig(sdk), UserAgent: "elbridge-registrar/" + version, Now: time.Now}
	for _, c := range cfg.Clusters {
		r.Clusters[c.Name] = dialer.Client(c)
		r.Observed[c.Name] = c.Observe
	}
	return r, nil
}
