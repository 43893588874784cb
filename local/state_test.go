package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// holdEnv makes the test binary claim a state and wait, as a second process.
const holdEnv = "ELBRIDGE_TEST_HOLD_STATE"

func TestMain(m *testing.M) {
	path := os.Getenv(holdEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := claimState(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test lets go
}

// hold starts a process that claims the state; its first line says how that went.
func hold(t *testing.T, path string) (cmd *exec.Cmd, line string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line)
}

func TestBackgroundIsWhoHoldsTheState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stack", "state.json")
	wantPID := func(what string, want int) {
		t.Helper()
		if pid, err := background(path); err != nil || pid != want {
			t.Fatalf("%s: process %d, error %v: want process %d", what, pid, err, want)
		}
	}
	wantPID("nothing ever ran", 0)
	holder, line := hold(t, path)
	if line != "held" {
		t.Fatal(line)
	}
	wantPID("it runs", holder.Process.Pid)
	if _, line := hold(t, path); !strings.Contains(line, "another process") {
		t.Errorf("a second one could claim it too: %s", line)
	}
	wantPID("a second one was refused", holder.Process.Pid)
	err := holder.Process.Kill()
	if err != nil {
		t.Fatal(err)
	}
	for pid := -1; pid != 0 && t.Context().Err() == nil; time.Sleep(time.Millisecond) { // a zombie, as nobody waits for it
		if pid, err = background(path); err != nil {
			t.Fatal(err)
		}
	}
}

// After a restart of the machine the process id in a state is anybody's.
func TestDownSparesAProcessThatOnlyHasTheNumber(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path, err := statePath()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "other")
	other, _ := hold(t, elsewhere)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"pid":%d}`, other.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := down(t.Context(), &said); err != nil || said.String() != "nothing is running\n" {
		t.Fatalf("down said %q and returned %v", said.String(), err)
	}
	if pid, err := background(elsewhere); err != nil || pid != other.Process.Pid {
		t.Errorf("the other process is gone: %d, %v", pid, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the stale state is still there: %v", err)
	}
}

func TestReadStateNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v: want one that names %s", err, path)
	}
}
