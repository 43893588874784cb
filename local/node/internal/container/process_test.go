package container_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/proc"
)

// roleVariable makes the test binary play a part.
const roleVariable = "ELBRIDGE_CONTAINER_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		child(role)
		return
	}
	os.Exit(m.Run())
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

func command(log, role string) container.Command {
	self, _ := os.Executable() // never fails on Linux
	return container.Command{Path: self, Env: []string{roleVariable + "=" + role}, Log: log}
}

func spawn(t *testing.T, role string) (*container.Process, string) {
	t.Helper()
	starter := proc.New()
	t.Cleanup(starter.Close)
	log := filepath.Join(t.TempDir(), "log")
	p, err := container.Start(starter, command(log, role), time.Now)
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
	starter := proc.New()
	defer starter.Close()
	c := container.Command{Path: "/none", Log: filepath.Join(t.TempDir(), "log")}
	if _, err := container.Start(starter, c, time.Now); err == nil {
		t.Error("a missing binary was started")
	}
	c.Log = filepath.Join(t.TempDir(), "none", "log")
	if _, err := container.Start(starter, c, time.Now); err == nil {
		t.Error("started without a log")
	}
}
