// Package contract_test holds the product's edges against the services of the
// local stack, over the wire: ELB, SQS, EventBridge, STS and EKS of local/cloud,
// and a real API server. The product doesn't know the local stack, so the tests
// are here.
package contract_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/elbridge/elbridge/local/cloud"
	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb"
)

const (
	account = "111122223333"
	region  = "eu-west-1"
)

// registrar is a Lambda's session.
var registrar = core.Principal{AccessKeyID: "ASIAREGISTRAR", SecretAccessKey: "registrar's secret", SessionToken: "registrar/token+==",
	Account: account, ARN: "arn:aws:sts::" + account + ":assumed-role/registrar/run-1"}

// stranger is of the same account and has no rights in any cluster.
var stranger = core.Principal{AccessKeyID: "AKIASTRANGER", SecretAccessKey: "stranger's secret", Account: account, ARN: "arn:aws:iam::" + account + ":user/stranger"}

// world is a local AWS.
type world struct {
	*cloud.Cloud
	url string
}

// start serves a local AWS until the test ends. Its load balancers, should a
// test make some, have addresses of their own.
func start(t *testing.T, cfg elb.Config) *world {
	t.Helper()
	c, err := cloud.New(cloud.Config{Principals: []core.Principal{registrar, stranger}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Buckets == nil {
		cfg.Buckets = &elb.Buckets{}
	}
	cfg.Addresses = netip.MustParsePrefix("127.99.0.0/16")
	cfg.CheckSpeedup = 250
	lb, err := elb.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register("elasticloadbalancing", lb); err != nil {
		t.Fatal(err)
	}
	c.Run("elasticloadbalancing", lb.Run)
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
			t.Errorf("the local AWS: %v", err)
		}
	})
	return &world{c, "http://" + l.Addr().String()}
}

// config is what a function's SDK is set up with.
func (w *world) config(p core.Principal) aws.Config {
	return aws.Config{Region: region, BaseEndpoint: &w.url, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, p.SessionToken)}
}

// fail has calls of an operation fail.
func (w *world) fail(t *testing.T, f core.Fault) {
	t.Helper()
	if _, err := w.Server.Faults.Add(f); err != nil {
		t.Fatal(err)
	}
}

// calls counts the calls of an operation so far.
func (w *world) calls(operation string) int {
	n := 0
	for _, r := range w.Server.Recorder.Since(0) {
		if r.Operation == operation {
			n++
		}
	}
	return n
}

// await waits until ok holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to pass that %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
