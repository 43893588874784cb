package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/elbridge/elbridge/local/bench/usage"
)

// begun is the state of this process before the work.
type begun struct {
	at  time.Time
	cpu time.Duration
}

func begin() begun {
	cpu, err := ownCPU()
	if err != nil {
		return begun{at: time.Now()}
	}
	return begun{time.Now(), cpu}
}

func (b begun) cost() (usage.Cost, error) {
	cpu, err := ownCPU()
	if err != nil {
		return usage.Cost{}, err
	}
	c := usage.Cost{Wall: time.Since(b.at).Seconds(), CPU: (cpu - b.cpu).Seconds()}
	peak, err := usage.PeakRSS(os.Getpid())
	c.PeakRSS = peak
	return c, err
}

func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// profileTo writes a CPU profile to a file, if one is named.
func profileTo(path string) (end func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}
