package fleet

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// Command is the command that serves a fleet, until its standard input ends: so
// it never outlives who started it.
func Command() *cobra.Command {
	var spec Spec
	cmd := &cobra.Command{Use: "fleet", Short: "Serve an API server of very many pods, and an AWS to match, until standard input ends", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() { // ends with standard input, or with the process
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				cancel()
			}()
			return Serve(ctx, spec, cmd.OutOrStdout())
		}}
	cmd.Flags().IntVar(&spec.Pods, "pods", 100_000, "pods in the cluster")
	cmd.Flags().IntVar(&spec.Selected, "selected", 100_000, "pods that some binding selects")
	return cmd
}
