package proc_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/proc"
)

const (
	bound          = 30 * time.Second // for what takes milliseconds
	parentVariable = "ELBRIDGE_PROC_TEST_PARENT"
	family         = 8 // children of the parent
)

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		parent()
	}
	os.Exit(m.Run())
}

// parent starts children that mind no signal but SIGKILL, prints their ids and
// waits to be killed.
func parent() {
	s := proc.New()
	for range family {
		cmd := exec.Command("/bin/sh", "-c", "trap '' HUP INT TERM; exec sleep 600")
		if err := s.Start(cmd, syscall.SIGKILL); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(cmd.Process.Pid)
	}
	select {}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewReader(out)
	var children []int
	for range family {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, pid)
	}
	for _, pid := range children {
		if group, err := syscall.Getpgid(pid); err != nil || group != pid {
			t.Errorf("process %d is in group %d, want its own: %v", pid, group, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		await(t, fmt.Sprintf("the end of process %d", pid), func() bool { return !runs(pid) })
	}
}

func TestStart(t *testing.T) {
	s := proc.New()
	defer s.Close()

	t.Run("children outlive the threads that ask for them", func(t *testing.T) {
		cmds := make([]*exec.Cmd, 16)
		pipes := make([]io.Closer, len(cmds))
		var wg sync.WaitGroup
		for i := range cmds {
			wg.Go(func() {
				runtime.LockOSThread() // never unlocked: its thread ends with the goroutine
				cmds[i] = exec.Command("/bin/cat")
				in, err := cmds[i].StdinPipe()
				if err == nil {
					err = s.Start(cmds[i], syscall.SIGKILL)
				}
				if err != nil {
					t.Error(err)
				}
				pipes[i] = in
			})
		}
		wg.Wait()
		for i, cmd := range cmds {
			if t.Failed() {
				return
			}
			if err := pipes[i].Close(); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("a child whose input ended: %v, want a good end", err)
			}
		}
	})

	t.Run("what can't be started is an error", func(t *testing.T) {
		if err := s.Start(exec.Command("/none"), syscall.SIGKILL); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error %v, want ErrNotExist", err)
		}
	})

	t.Run("after Close nothing is started", func(t *testing.T) {
		s.Close()
		s.Close() // harmless
		if err := s.Start(exec.Command("/bin/true"), syscall.SIGKILL); !errors.Is(err, proc.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
	})
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s has not come in %s", what, bound)
		}
	}
}

// runs is false for a process that has ended, whether or not anybody has asked
// for its exit code.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
