package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/local/bench"
	"github.com/elbridge/elbridge/local/bench/fleet"
	"github.com/elbridge/elbridge/local/stack"
)

func benchCommand() *cobra.Command {
	var dir string
	var only []string
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure; print a table and write JSON", Args: cobra.NoArgs,
		Example: "  local bench --results bench/results",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			tell := newNarrator(cmd.ErrOrStderr())
			report := bench.New(time.Now())
			self, err := os.Executable()
			if err != nil {
				return err
			}
			empty, function := filepath.Join(binaries(), "empty", "bootstrap"), filepath.Join(binaries(), "resync", "bootstrap")
			for _, section := range []struct {
				name string
				do   func() error
			}{
				{"review", func() error { return bench.Review(ctx, report, tell.say) }},
				{"lists", func() error { return bench.Lists(ctx, report, tell.say, self, "bench", "fleet") }},
				{"resync", func() error { return bench.Resync(ctx, report, tell.say, function, self, "bench", "fleet") }},
				{"resync-limited", func() error { return bench.ResyncLimited(ctx, report, tell.say, function, self, "bench", "fleet") }},
				{"stack", func() error {
					return onStack(ctx, tell, "", func(s *stack.Stack) error { return bench.Run(ctx, s, report, tell.say) })
				}},
				{"empty", func() error {
					return onStack(ctx, tell, empty, func(s *stack.Stack) error { return bench.RunEmpty(ctx, s, report, tell.say) })
				}},
			} {
				if len(only) > 0 && !slices.Contains(only, section.name) {
					continue
				}
				if err := section.do(); err != nil {
					return errors.Join(err, report.Table(out)) // what was measured by then took minutes
				}
			}
			if err := report.Table(out); err != nil {
				return err
			}
			path, err := report.Write(dir)
			if err == nil {
				_, err = fmt.Fprintln(out, "written to", path)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "results", "bench/results", "folder for the JSON")
	cmd.Flags().StringSliceVar(&only, "only", nil, "sections to measure (review, lists, resync, resync-limited, stack, empty); default: all")
	cmd.AddCommand(fleet.Command())
	return cmd
}

// onStack measures on a stack of its own, with another function if one is named.
func onStack(ctx context.Context, tell *narrator, bootstrap string, do func(*stack.Stack) error) error {
	dir, err := os.MkdirTemp("", "elbridge-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := stack.Start(ctx, stack.Config{Dir: dir, Binaries: binaries(), Bootstrap: bootstrap, Say: tell.say, Progress: os.Stderr,
		Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		return err
	}
	defer s.Stop() //nolint:contextcheck // also when ctx has ended
	return do(s)
}
