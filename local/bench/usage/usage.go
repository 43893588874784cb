// Package usage reads what a process has used of the machine.
package usage

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Cost is what a piece of work cost a process.
type Cost struct {
	Pods    int     `json:"pods"`
	Wall    float64 `json:"wallSeconds"`
	CPU     float64 `json:"cpuSeconds"` // user and system
	PeakRSS float64 `json:"peakRSSMiB"`
}

// tick is the unit of times in /proc: USER_HZ, 100 on all of Linux's platforms
// that Go runs on.
const tick = 10 * time.Millisecond

// CPU is the user and system time of a process, in steps of 10 ms.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may hold blanks; state is the field after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q: too few fields", pid, text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, err
}

var (
	peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	rssLine  = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
)

// PeakRSS is the most memory that a process had resident so far, in MiB. It is of
// its program alone, unlike ru_maxrss, which counts what forked it too.
func PeakRSS(pid int) (float64, error) { return status(pid, peakLine) }

// RSS is the memory that a process has resident, in MiB.
func RSS(pid int) (float64, error) { return status(pid, rssLine) }

func status(pid int, line *regexp.Regexp) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := line.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("/proc/%d/status: nothing matches %s", pid, line)
	}
	kib, err := strconv.ParseFloat(string(m[1]), 64)
	return kib / 1024, err
}
