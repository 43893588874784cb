// Command elbridge is the operator's tool.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		code := exitError{code: 1}
		if !errors.As(err, &code) {
			fmt.Fprintln(os.Stderr, "elbridge:", err)
		}
		os.Exit(code.code) //nolint:gocritic // the process is over, and its signals with it
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use: "elbridge", Short: "Operate elbridge: target groups in step with pods", Version: version,
		SilenceUsage: true, SilenceErrors: true,
		Long: "Operate elbridge: target groups in step with pods.\n\nAWS is reached as the AWS CLI does it: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL and the rest.\nExit codes: 0 done, 1 an error, which is told on stderr; commands that have others say so.",
	}
	s := &shared{}
	s.add(cmd)
	cmd.AddCommand(adoptCommand(s), lintCommand(s), bindingsCommand(s), explainCommand(s), renderCommand())
	cmd.AddCommand(patternCommand(), observeCommand(s), planCommand(s), statusCommand(s))
	cmd.AddCommand(freezeCommand(s), unfreezeCommand(s), waitCommand(s), resyncCommand(s), historyCommand(s), driftCommand(s))
	return cmd
}
