package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/local/node"
	"github.com/elbridge/elbridge/local/smoke"
	"github.com/elbridge/elbridge/local/stack"
)

// allWays is the value of --way that stands for each way in turn.
const allWays = "all"

func smokeCommand() *cobra.Command {
	var only, output, way string
	var keep bool
	cmd := &cobra.Command{
		Use: "smoke", Short: "Walk pods through their lives on a stack of its own, and check the target group after each step", Args: cobra.NoArgs,
		Example: "  local smoke\n  local smoke --way resync\n  local smoke --only eviction",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %s: want text or json", output)
			}
			if err := smoke.Known(only); err != nil {
				return err
			}
			ways, err := waysOf(way)
			if err != nil {
				return err
			}
			progress := cmd.OutOrStdout()
			if output == "json" {
				progress = cmd.ErrOrStderr()
			}
			results := []smoke.Result{}
			var errs []error
			for _, w := range ways {
				some, err := smokeOnce(cmd.Context(), w, only, keep, progress, cmd.ErrOrStderr())
				results, errs = append(results, some...), append(errs, err)
				if cmd.Context().Err() != nil {
					break
				}
			}
			if output == "json" {
				errs = append(errs, json.NewEncoder(cmd.OutOrStdout()).Encode(results))
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringVar(&only, "only", "", "run only the first step and those whose names contain this")
	cmd.Flags().StringVar(&way, "way", allWays, "how target groups learn of pods: events, resync, both, or all of these in turn")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the logs also if all is well")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func waysOf(flag string) ([]stack.Way, error) {
	switch way := stack.Way(flag); {
	case flag == allWays:
		return stack.Ways(), nil
	case slices.Contains(stack.Ways(), way):
		return []stack.Way{way}, nil
	}
	return nil, fmt.Errorf("--way %s: want one of %v, or %s", flag, stack.Ways(), allWays)
}

// smokeOnce runs the story in one way, on a stack of its own.
func smokeOnce(ctx context.Context, way stack.Way, only string, keep bool, progress, stderr io.Writer) (results []smoke.Result, err error) {
	if way != stack.WayEvents && !stack.HasResync(binaries()) {
		return nil, fmt.Errorf("way %s: %w: `make build-local` makes it", way, stack.ErrNoResync)
	}
	_, _ = fmt.Fprintf(progress, "way %s\n", way)
	dir, err := os.MkdirTemp("", "elbridge-smoke-"+string(way)+"-")
	if err != nil {
		return nil, err
	}
	logs, err := os.Create(filepath.Join(dir, "stack.log"))
	if err != nil {
		return nil, err
	}
	defer func() { // what failed can be read up; what passed needs no logs
		_ = logs.Close()
		if err != nil || keep {
			_, _ = fmt.Fprintf(stderr, "logs are in %s\n", dir)
		} else {
			err = os.RemoveAll(dir)
		}
	}()
	tell := newNarrator(stderr)
	cfg := smokeConfig(dir, tell, logs)
	cfg.Way = way
	s, err := stack.Start(ctx, cfg, true)
	if err != nil {
		return nil, fmt.Errorf("way %s: %w", way, err)
	}
	defer s.Stop() //nolint:contextcheck // also when ctx has ended
	r := &smoke.Runner{S: s, Out: progress}
	results, err = r.Run(ctx, only)
	_, _ = fmt.Fprintln(progress, summary(way, results))
	return results, err
}

func summary(way stack.Way, results []smoke.Result) string {
	passed, failed, notRun := 0, 0, 0
	for _, res := range results {
		switch {
		case res.Error != "":
			failed++
		case res.NotRun != "":
			notRun++
		default:
			passed++
		}
	}
	text := fmt.Sprintf("way %s: %d passed, %d failed", way, passed, failed)
	if notRun > 0 {
		text += fmt.Sprintf(", %d not run, as said above", notRun)
	}
	return text
}

// smokeInterval is the time between resync's rounds.
const smokeInterval = 2 * time.Second

// smokeShare is resync's share of ELB's rates: with rounds so short its default
// would give ten groups a period of twice that.
const smokeShare = 0.5

// smokeConfig makes time pass faster where only waiting would be seen: health
// checks each half second, a node NotReady after 12 s without a lease, addresses
// and crashed containers back after a second, a round of resync each two
// seconds, and half of ELB's rates for it. Nothing else of elbridge's own is changed.
func smokeConfig(dir string, tell *narrator, logs *os.File) stack.Config {
	return stack.Config{
		Dir: dir, Binaries: binaries(), Say: tell.say, Progress: os.Stderr, CheckSpeedup: 10, GracePeriod: 12 * time.Second,
		ResyncInterval: smokeInterval, RateShare: smokeShare,
		Node: func(c *node.Config) {
			c.LeasePeriod, c.RestartBackoff, c.AddressCooldown = 3*time.Second, time.Second, time.Second
		},
		Log: slog.New(slog.NewTextHandler(logs, nil)), LogLevel: slog.LevelDebug,
	}
}
