package functions

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

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
