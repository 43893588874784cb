package container_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/node/internal/container"
)

// roleVariable makes the test binary play a part.
const roleVariable = "ELBRIDGE_CONTAINER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "parent":
		parent()
	default:
		child(role)
	}
}

// child says that it is there, then does as told: "exit 3", "wait", "deaf".
func child(role string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("ready", os.Getpid(), len(os.Environ()))
	if code, ok := strings.CutPrefix(role, "exit "); ok {
		n, _ := strconv.Atoi(code)
		os.Exit(n)
	}
	if role == "deaf" {
		signal.Ignore(syscall.SIGTERM)
		select {}
	}
	<-asked
	fmt.Println("asked")
}

// parent spawns a child and waits to be killed.
func parent() {
	s := container.NewSpawner(context.Background(), time.Now)
	p, err := s.Start(context.Background(), command(os.Getenv("LOG"), "deaf"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

func command(log, role string) container.Command {
	self, _ := os.Executable() // never fails on Linux
	return container.Command{Path: self, Env: []string{roleVariable + "=" + role}, Log: log}
}

func spawn(t *testing.T, role string) (*container.Process, string) {
	t.Helper()
	s := container.NewSpawner(t.Context(), time.Now)
	log := filepath.Join(t.TempDir(), "log")
	p, err := s.Start(t.Context(), command(log, role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); <-p.Done() })
	return p, log
}

func awaitLog(t *testing.T, log, text string) {
	t.Helper()
	for deadline := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		got, _ := os.ReadFile(log) // not there at first
		if strings.Contains(string(got), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("log is %q, want %q", got, text)
		}
	}
}

func TestProcessEnds(t *testing.T) {
	tests := map[string]struct {
		role string
		end  func(*container.Process)
		want container.Exit
	}{
		"well":            {"exit 0", func(*container.Process) {}, container.Exit{Reason: "Completed"}},
		"badly":           {"exit 3", func(*container.Process) {}, container.Exit{Code: 3, Reason: "Error"}},
		"asked":           {"wait", (*container.Process).Terminate, container.Exit{Reason: "Completed"}},
		"killed":          {"wait", (*container.Process).Kill, container.Exit{Code: 137, Reason: "Error"}},
		"asked, deaf":     {"deaf", func(p *container.Process) { p.Terminate(); p.Kill() }, container.Exit{Code: 137, Reason: "Error"}},
		"out of memory":   {"wait", func(p *container.Process) { p.Crash(container.Exit{Code: 137, Reason: "OOMKilled"}) }, container.Exit{Code: 137, Reason: "OOMKilled"}},
		"crashed at will": {"wait", func(p *container.Process) { p.Crash(container.Exit{Code: 9}) }, container.Exit{Code: 9, Reason: "Error"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, log := spawn(t, tt.role)
			awaitLog(t, log, "ready")
			tt.end(p)
			got := ended(t, p)
			got.At = time.Time{}
			if got != tt.want {
				t.Errorf("ended as %+v, want %+v", got, tt.want)
			}
			p.Kill()                                               // too late, and nobody else's harm
			awaitLog(t, log, fmt.Sprintf("ready %d 1\n", p.PID())) // one variable: nothing is inherited
		})
	}
}

func TestStartRefusesWhatIsNotThere(t *testing.T) {
	s := container.NewSpawner(t.Context(), time.Now)
	if _, err := s.Start(t.Context(), container.Command{Path: "/none", Log: filepath.Join(t.TempDir(), "log")}); err == nil {
		t.Error("a missing binary was started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = container.NewSpawner(ctx, time.Now)
	cancel()
	for deadline := time.Now().Add(bound); ; {
		p, err := s.Start(t.Context(), command(filepath.Join(t.TempDir(), "log"), "wait"))
		if err != nil {
			break
		}
		p.Kill()
		if time.Now().After(deadline) {
			t.Fatal("a spawner that has ended starts processes")
		}
	}
}

func TestProcessesDieWithTheAgent(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(self)
	agent.Env = []string{roleVariable + "=parent", "LOG=" + log}
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	awaitLog(t, log, "ready")
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(bound); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlives its agent", pid)
		}
	}
}

// alive says whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
