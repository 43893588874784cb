package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// mbPerCPU is the memory at which a function has the equivalent of one vCPU (Lambda
	// guide, "Configure Lambda function memory").
	mbPerCPU = 1769
	// quotaPeriod of the kernel's bandwidth control, in µs. Lambda's own is not
	// published.
	quotaPeriod = 20_000
)

// errNoControl: this machine lets us limit nobody's CPU.
var errNoControl = errors.New("no cgroup of the cpu controller can be made here")

// share limits processes to the CPU that Lambda gives a function of some memory,
// by a cgroup of version 1 or 2.
type share struct{ dir string }

func newShare(mb int) (*share, error) {
	quota := quotaPeriod * mb / mbPerCPU
	name := fmt.Sprintf("elbridge-bench-%d-%d", os.Getpid(), mb)
	for _, v := range []struct {
		root     string
		settings map[string]string
	}{
		{"/sys/fs/cgroup/cpu", map[string]string{"cpu.cfs_period_us": fmt.Sprint(quotaPeriod), "cpu.cfs_quota_us": fmt.Sprint(quota)}},
		{"/sys/fs/cgroup", map[string]string{"cpu.max": fmt.Sprintf("%d %d", quota, quotaPeriod)}},
	} {
		s := &share{filepath.Join(v.root, name)}
		if os.Mkdir(s.dir, 0o755) != nil {
			continue
		}
		var errs []error
		for file, text := range v.settings {
			errs = append(errs, write(filepath.Join(s.dir, file), text))
		}
		if errors.Join(errs...) == nil {
			return s, nil
		}
		s.remove()
	}
	return nil, errNoControl
}

// write writes a control file, which must be there: one that isn't is none.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// place puts a process into the group. What it did before is not limited: its
// first milliseconds.
func (s *share) place(pid int) error {
	return write(filepath.Join(s.dir, "cgroup.procs"), fmt.Sprint(pid))
}

// remove removes the group, once its processes are gone.
func (s *share) remove() { _ = os.Remove(s.dir) }
