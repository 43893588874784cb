// Command echo is the function that the runner's tests invoke: its payload says
// what it shall do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type request struct {
	Do      string              // "", "error", "panic", "exit", "sleep", "env", "count", "print"
	Text    string              // for "error", "print", and the name for "env"
	Millis  time.Duration       // for "sleep"
	Records []events.SQSMessage // a batch: each body is "ok", "fail", "error" or "exit"
}

type response struct {
	PID       int    `json:"pid"`
	Count     int    `json:"count"`
	Beats     int    `json:"beats"` // of a goroutine that counts while the process runs
	RequestID string `json:"requestId"`
	Text      string `json:"text,omitempty"`
}

func main() {
	if os.Getenv("ECHO_INIT") == "exit" {
		fmt.Println("echo: told not to start")
		os.Exit(3)
	}
	beats, count := make(chan int), 0
	go func() { // ticks only while the process is not frozen
		n, tick := 0, time.NewTicker(5*time.Millisecond)
		for {
			select {
			case <-tick.C:
				n++
			case beats <- n:
			}
		}
	}()
	lambda.Start(func(ctx context.Context, in request) (any, error) {
		count++
		if in.Records != nil {
			return batch(in.Records)
		}
		lc, _ := lambdacontext.FromContext(ctx)
		out := response{PID: os.Getpid(), Count: count, Beats: <-beats, RequestID: lc.AwsRequestID}
		switch in.Do {
		case "error":
			return nil, errors.New(in.Text)
		case "panic":
			panic(in.Text)
		case "exit":
			os.Exit(7)
		case "sleep":
			time.Sleep(in.Millis * time.Millisecond)
		case "env":
			out.Text = os.Getenv(in.Text)
		case "print":
			fmt.Println(in.Text)
		}
		return out, nil
	})
}

func batch(records []events.SQSMessage) (events.SQSEventResponse, error) {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, r := range records {
		fmt.Println("handled", r.Body)
		switch r.Body {
		case "fail":
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		case "error":
			return out, errors.New("told to fail")
		case "exit":
			os.Exit(7)
		}
	}
	return out, nil
}
