package cloud_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/elbridge/elbridge/local/cloud"
	"github.com/elbridge/elbridge/local/cloud/core"
)

const region = "eu-west-1"

// The principals of every test: two of the first account, one of another.
var (
	alice = core.Principal{AccessKeyID: "AKIAALICE", SecretAccessKey: "alice's secret", Account: "111122223333", ARN: "arn:aws:iam::111122223333:user/alice"}
	robot = core.Principal{AccessKeyID: "ASIAROBOT", SecretAccessKey: "robot's secret", SessionToken: "robot/token+==", Account: "111122223333",
		ARN: "arn:aws:sts::111122223333:assumed-role/registrar/run-1"}
	other = core.Principal{AccessKeyID: "AKIAOTHER", SecretAccessKey: "other's secret", Account: "444455556666", ARN: "arn:aws:iam::444455556666:user/other"}
)

// world is a local cloud on loopback with clients.
type world struct {
	*cloud.Cloud
	url   string
	clock *core.FakeClock // of the services
	as    core.Principal
	in    string // region
}

func start(t *testing.T) *world {
	t.Helper()
	clock := core.NewFakeClock(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	w := serve(t, clock)
	w.clock = clock
	return w
}

// startReal is start with the machine's clock.
func startReal(t testing.TB) *world {
	t.Helper()
	return serve(t, core.RealClock{})
}

func serve(t testing.TB, clock core.Clock) *world {
	t.Helper()
	c, err := cloud.New(cloud.Config{Principals: []core.Principal{alice, robot, other}, Clock: clock, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return &world{Cloud: c, url: "http://" + l.Addr().String(), as: alice, in: region}
}

// by returns the same world seen by another principal.
func (w world) by(p core.Principal) *world { w.as = p; return &w }

// at returns the same world seen from another region.
func (w world) at(region string) *world { w.in = region; return &w }

func (w *world) config() aws.Config {
	return aws.Config{Region: w.in, BaseEndpoint: &w.url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(w.as.AccessKeyID, w.as.SecretAccessKey, w.as.SessionToken)}
}

func (w *world) sqs() *sqs.Client            { return sqs.NewFromConfig(w.config()) }
func (w *world) events() *eventbridge.Client { return eventbridge.NewFromConfig(w.config()) }
func (w *world) logs() *cloudwatchlogs.Client {
	return cloudwatchlogs.NewFromConfig(w.config())
}
func (w *world) eks() *eks.Client { return eks.NewFromConfig(w.config()) }
func (w *world) sts() *sts.Client { return sts.NewFromConfig(w.config()) }

// code is the error code that the SDK sees, empty without an error.
func code(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return err.Error()
}

// must returns v, or ends the test.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to pass that %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// step moves the services' clock once somebody waits on it.
func (w *world) step(t *testing.T, d time.Duration) {
	t.Helper()
	eventually(t, "somebody waits on the clock", func() bool { n, _ := w.clock.Timers(); return n > 0 })
	w.clock.Step(d)
}
