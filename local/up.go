package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	// upTimeout bounds the start in the background, a cold build of the control
	// plane included (about 10 CPU minutes on 2 cores).
	upTimeout = 30 * time.Minute
	// downTimeout bounds the end; after it the processes are killed.
	downTimeout = 45 * time.Second
	statePoll   = 200 * time.Millisecond
)

func upCommand() *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Start everything in the background", Args: cobra.NoArgs,
		Example: "  local up\n  eval \"$(local up)\"   # sets the variables for kubectl and aws",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Stop what up started", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), cmd.ErrOrStderr()) },
	}
}

// statePath is the file that says which stack runs in the background.
func statePath() (string, error) {
	dir, err := home()
	return filepath.Join(dir, "state.json"), err
}

// up starts `run` as a session of its own and waits until it says that it runs.
func up(ctx context.Context, out, progress io.Writer) error {
	path, err := statePath()
	if err != nil {
		return err
	}
	pid, err := background(path)
	if err != nil {
		return err
	}
	if pid != 0 {
		st, err := readState(path)
		if err != nil {
			return err
		}
		if st.PID != pid {
			return fmt.Errorf("process %d is just starting in the background: ask again in a moment", pid)
		}
		_, _ = fmt.Fprintf(progress, "already running (process %d)\n", pid)
		export(out, st)
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	logPath := filepath.Join(filepath.Dir(path), "up.log")
	logs, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer logs.Close() // the child has its own
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self, "run", "--state", path) //nolint:noctx // this very program; it lives on
	child.Stdout, child.Stderr = logs, logs
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(progress, "starting in the background; progress is in %s\n", logPath)
	ended := make(chan struct{})
	go func() { // ends with the child or with this program
		_ = child.Wait() // its log says why
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	tick := time.NewTicker(statePoll)
	defer tick.Stop()
	for {
		if st, err := readState(path); err == nil && st.PID != 0 {
			export(out, st)
			return nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return fmt.Errorf("it ended before it was ready; the end of %s:\n%s", logPath, tail(logPath))
		case <-ctx.Done():
			_ = child.Process.Signal(syscall.SIGTERM) // it stops by itself
			return ctx.Err()
		}
	}
}

func export(out io.Writer, st runState) {
	for _, name := range slices.Sorted(maps.Keys(st.Env)) {
		_, _ = fmt.Fprintf(out, "export %s=%s\n", name, st.Env[name])
	}
	_, _ = fmt.Fprintf(out, "# the load balancer answers at %s\n", st.URL)
}

// down ends the stack in the background and waits until it is gone.
func down(ctx context.Context, progress io.Writer) error {
	path, err := statePath()
	if err != nil {
		return err
	}
	pid, err := background(path)
	if err != nil {
		return err
	}
	if pid == 0 {
		_, _ = fmt.Fprintln(progress, "nothing is running")
		return os.RemoveAll(path)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping process %d: %w", pid, err)
	}
	deadline := time.Now().Add(downTimeout)
	for {
		now, err := background(path)
		if err != nil {
			return err
		}
		if now != pid {
			break
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // its children end with it
			return errors.Join(fmt.Errorf("process %d did not stop within %s and was killed", pid, downTimeout), os.RemoveAll(path))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(statePoll):
		}
	}
	_, _ = fmt.Fprintln(progress, "stopped")
	return os.RemoveAll(path)
}

// tailBytes of a log are shown with an error.
const tailBytes = 2000

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-tailBytes):])
}
