package usage_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/bench/usage"
)

// The kernel's other account of the same process agrees.
func TestCPU(t *testing.T) {
	for n := 0; ; n++ { // until there is something to see
		got, err := usage.CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		want := time.Duration(u.Utime.Nano() + u.Stime.Nano())
		if got < 50*time.Millisecond {
			continue
		}
		if off := want - got; off < -20*time.Millisecond || off > 50*time.Millisecond+want/10 {
			t.Errorf("CPU %s after %d looks, getrusage says %s", got, n, want)
		}
		return
	}
}

func TestRSS(t *testing.T) {
	const size = 64 << 20
	before, err := usage.RSS(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
	peak, err := usage.PeakRSS(os.Getpid())
	if err != nil || peak < before+48 || b[4096] != 1 {
		t.Errorf("peak %.0f MiB, error %v; want some 64 MiB more than %.0f", peak, err, before)
	}
}

func TestNoSuchProcess(t *testing.T) {
	if _, err := usage.CPU(-1); err == nil {
		t.Error("a process that isn't there has CPU time")
	}
	if _, err := usage.RSS(-1); err == nil {
		t.Error("a process that isn't there has memory")
	}
}
