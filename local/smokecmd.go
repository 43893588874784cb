package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/local/node"
	"github.com/elbridge/elbridge/local/smoke"
	"github.com/elbridge/elbridge/local/stack"
)

func smokeCommand() *cobra.Command {
	var only, output string
	var keep bool
	cmd := &cobra.Command{
		Use: "smoke", Short: "Walk pods through their lives on a stack of its own, and check the target group after each step", Args: cobra.NoArgs,
		Example: "  local smoke\n  local smoke --only eviction",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: want text or json", output)
			}
			if err := smoke.Known(only); err != nil {
				return err
			}
			ctx := cmd.Context()
			dir, err := os.MkdirTemp("", "elbridge-smoke-")
			if err != nil {
				return err
			}
			logs, err := os.Create(filepath.Join(dir, "stack.log"))
			if err != nil {
				return err
			}
			defer func() { // what failed can be read up; what passed needs no logs
				_ = logs.Close()
				if err != nil || keep {
					_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "logs are in %s\n", dir)
				} else {
					err = os.RemoveAll(dir)
				}
			}()
			tell := newNarrator(cmd.ErrOrStderr())
			s, err := stack.Start(ctx, smokeConfig(dir, tell, logs), true)
			if err != nil {
				return err
			}
			defer s.Stop()
			progress := cmd.OutOrStdout()
			if output == "json" {
				progress = cmd.ErrOrStderr()
			}
			r := &smoke.Runner{S: s, Out: progress}
			results, err := r.Run(ctx, only)
			if output == "json" {
				err = errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(results))
			} else {
				passed := 0
				for _, res := range results {
					if res.Error == "" {
						passed++
					}
				}
				_, _ = fmt.Fprintf(progress, "%d passed, %d failed\n", passed, len(results)-passed)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&only, "only", "", "run only the first step and those whose names contain this")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the logs also if all is well")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// smokeConfig makes time pass faster where only waiting would be seen: health
// checks each half second, a node NotReady after 12 s without a lease, addresses
// and crashed containers back after a second. Nothing of elbridge's own is
// changed.
func smokeConfig(dir string, tell *narrator, logs *os.File) stack.Config {
	return stack.Config{
		Dir: dir, Binaries: binaries(), Say: tell.say, Progress: os.Stderr, CheckSpeedup: 10, GracePeriod: 12 * time.Second,
		Node: func(c *node.Config) {
			c.LeasePeriod, c.RestartBackoff, c.AddressCooldown = 3*time.Second, time.Second, time.Second
		},
		Log: slog.New(slog.NewTextHandler(logs, nil)), LogLevel: slog.LevelDebug,
	}
}
