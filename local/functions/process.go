package functions

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// A spawner starts child processes that end when this process ends, however it
// ends. The kernel ties that promise to the thread that forked, so one thread
// forks them all and lives until close.
type spawner struct {
	starts chan start
	quit   chan struct{}
	gone   chan struct{}
}

type start struct {
	cmd *exec.Cmd
	err chan error
}

func newSpawner() *spawner {
	s := &spawner{starts: make(chan start), quit: make(chan struct{}), gone: make(chan struct{})}
	go s.loop()
	return s
}

func (s *spawner) loop() {
	defer close(s.gone)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for {
		select {
		case st := <-s.starts:
			st.err <- st.cmd.Start()
		case <-s.quit:
			return
		}
	}
}

// start starts cmd in a process group of its own. If this process dies the
// child gets SIGTERM: the emulator then kills its function, frozen or not.
func (s *spawner) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	st := start{cmd: cmd, err: make(chan error, 1)}
	select {
	case s.starts <- st:
		return <-st.err
	case <-s.gone:
		return errors.New("starting a process: the runner is closed")
	}
}

func (s *spawner) close() {
	close(s.quit)
	<-s.gone
}

// A process is a row of the process table, told from a later one with the same
// number by its start time.
type process struct {
	pid     int
	parent  int
	state   byte   // as in /proc/PID/stat: R, S, T, Z, ...
	started uint64 // clock ticks since boot
}

// readProcess reads one row; an error means there is no such process.
func readProcess(pid int) (process, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	// The second field is the program's name in brackets and may hold anything.
	_, rest, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	f := strings.Fields(string(rest))
	if !ok || len(f) < 20 {
		return process{}, fmt.Errorf("process %d: unexpected /proc stat %q", pid, stat)
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return process{}, fmt.Errorf("process %d: parent: %w", pid, err)
	}
	started, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("process %d: start time: %w", pid, err)
	}
	return process{pid: pid, parent: parent, state: f[0][0], started: started}, nil
}

// alive tells whether p still runs (a frozen process does).
func (p process) alive() bool {
	now, err := readProcess(p.pid)
	return err == nil && now.started == p.started && now.state != 'Z' && now.state != 'X'
}

// signal sends sig to the process group that p leads, if p is still itself.
func (p process) signal(sig syscall.Signal) error {
	if !p.alive() {
		return fmt.Errorf("process %d is gone", p.pid)
	}
	return syscall.Kill(-p.pid, sig)
}

// children lists the live child processes of pid.
func children(pid int) []process {
	var out []process
	for _, id := range childIDs(pid) {
		if p, err := readProcess(id); err == nil && p.parent == pid && p.state != 'Z' && p.state != 'X' {
			out = append(out, p)
		}
	}
	return out
}

// childIDs names at least the children of pid; on kernels that keep no list of
// them it names every process.
func childIDs(pid int) []int {
	var ids []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // that thread has ended
		}
		for f := range strings.FieldsSeq(string(text)) {
			if id, err := strconv.Atoi(f); err == nil {
				ids = append(ids, id)
			}
		}
	}
	if len(lists) > 0 {
		return ids
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if id, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
