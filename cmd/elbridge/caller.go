package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Exit codes beside 0, 1 and 2.
const (
	exitTimeout     = 3   // what was waited for did not come in time
	exitInterrupted = 130 // 128 + SIGINT, as shells say it
)

// stsAPI is what of STS's client is used.
type stsAPI interface {
	GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error)
}

// callerARN is who runs the command, as AWS knows it. STS lets everybody ask.
func callerARN(ctx context.Context, api stsAPI) (string, error) {
	out, err := api.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("asking STS whose these credentials are: %w", err)
	}
	if aws.ToString(out.Arn) == "" {
		return "", errors.New("asking STS whose these credentials are: it names nobody")
	}
	return *out.Arn, nil
}

// unsigned stands in notes for somebody whom STS did not name.
const unsigned = "unknown: STS did not say who"

// callerTimeout is how long a note waits for the name of who wrote it.
const callerTimeout = 5 * time.Second

// signature is who runs the command, for a note. Stopping removals must not hang
// on STS: without an answer the note has no name, and stderr says so. CloudTrail
// knows it all the same.
func signature(ctx context.Context, api stsAPI, stderr io.Writer) string {
	ctx, cancel := context.WithTimeout(ctx, callerTimeout)
	defer cancel()
	who, err := callerARN(ctx, api)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "the note will not say who wrote it: %v\n", err)
		return unsigned
	}
	return who
}

// unlessInterrupted is err, or a quiet end where the operator ended the command.
func unlessInterrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return exitError{code: exitInterrupted}
	}
	return err
}
