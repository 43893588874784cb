// Command local runs elbridge on one machine, on loopback and without root: a
// real Kubernetes control plane, nodes that run pods, a local AWS, the webhook and
// the functions.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.LogToStderr(false) // client-go's own lines; what matters of them comes as errors
	klog.SetOutput(io.Discard)
	root := &cobra.Command{
		Use: "local", Short: "Run elbridge on this machine", SilenceUsage: true, SilenceErrors: true,
		Long: "Run elbridge on this machine: a real Kubernetes control plane, nodes that run pods, a local AWS, the webhook, registrar and resync.",
	}
	root.AddCommand(runCommand(), upCommand(), downCommand(), smokeCommand(), benchCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1) //nolint:gocritic // the process is over, and its signals with it
	}
}
