package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/local/stack"
)

// defaultCloudPort is the port of the local AWS for people; another one is
// chosen where it is taken.
const defaultCloudPort = 4566

// home is where a stack for people keeps its data and says where it is.
func home() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory to keep the stack's data in: %w", err)
	}
	return filepath.Join(cache, "elbridge", "stack"), nil
}

func runCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "run", Short: "Start everything, show what happens, stay until Ctrl-C", Args: cobra.NoArgs,
		Example: "  local run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runStack(cmd.Context(), cmd.OutOrStdout(), state)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "file to write when everything runs (used by up)")
	_ = cmd.Flags().MarkHidden("state") // the flag exists
	return cmd
}

// runStack is the demonstration: a stack, three ingress pods, a rule, and words.
func runStack(ctx context.Context, out io.Writer, state string) error {
	dir, err := home()
	if err != nil {
		return err
	}
	if state != "" { // held until this process ends
		f, err := claimState(state)
		if err != nil {
			return err
		}
		defer f.Close()
	}
	tell := newNarrator(out)
	// Made by the first line, when the lock is ours: another stack may run.
	logs := &lazyFile{path: filepath.Join(dir, "stack.log")}
	defer logs.Close()
	s, err := stack.Start(ctx, stack.Config{
		Dir: filepath.Join(dir, "data"), Clean: true, Ports: []int{demoPodPort, demoPort}, Binaries: binaries(), CloudPort: freePort(defaultCloudPort), Say: tell.say, Progress: out,
		OnTarget: tell.target, OnLine: tell.line, Log: slog.New(slog.NewTextHandler(logs, nil)),
	}, false)
	if err != nil {
		return err
	}
	defer func() { //nolint:contextcheck // also when ctx has ended
		tell.say("stopping")
		s.Stop()
		tell.say("nothing is left running")
	}()
	go tell.follow(ctx, s) // ends with ctx
	url, err := deployDemo(ctx, s, tell)
	if err != nil {
		return err
	}
	printUse(tell, s, url)
	if state != "" {
		if err := writeState(state, s, url); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.Failed():
		return err
	}
}

// lazyFile is a file that is made by the first write to it.
type lazyFile struct {
	path string
	once sync.Once
	f    *os.File
	err  error
}

// Write implements io.Writer. slog's handlers call it one at a time.
func (l *lazyFile) Write(b []byte) (int, error) {
	l.once.Do(func() {
		if l.err = os.MkdirAll(filepath.Dir(l.path), 0o755); l.err == nil {
			l.f, l.err = os.Create(l.path)
		}
	})
	if l.err != nil {
		return 0, l.err
	}
	return l.f.Write(b)
}

// Close implements io.Closer.
func (l *lazyFile) Close() error {
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}

// binaries is the folder of this program: `make` builds them all into one.
func binaries() string {
	self, err := os.Executable()
	if err != nil {
		return "bin"
	}
	return filepath.Dir(self)
}

// freePort returns want if it is free, else 0, which chooses one.
func freePort(want int) int {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", want))
	if err != nil {
		return 0
	}
	_ = l.Close() // only looked
	return want
}

func printUse(tell *narrator, s *stack.Stack, url string) {
	tell.say("")
	tell.say("what happens to nodes and pods is decided at http://%s, what AWS does at %s/_local/ (docs/local.md)", s.NodeControl, s.AWS.Endpoint)
	tell.say("the load balancer answers at %s", url)
	tell.say("in another terminal:")
	env := s.Env()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		tell.say("  export %s=%s", name, env[name])
	}
	tell.say("  curl -s %s", url)
	tell.say("  kubectl -n ingress get pods -o wide")
	tell.say("  kubectl -n ingress scale deployment skipper --replicas=5")
	tell.say("  aws elbv2 describe-target-groups --query 'TargetGroups[].TargetGroupArn'")
	tell.say("  aws events list-rules --event-bus-name %s", stack.Bus)
	tell.say("  aws --endpoint-url $AWS_ENDPOINT_URL sqs list-queues    (aws-cli 1 ignores the variable for sqs)")
	tell.say("")
}
