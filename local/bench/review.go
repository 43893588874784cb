package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Review runs the benchmark of the webhook's handler, in a process of its own:
// 50 reviews at a time, while PutEvents works and while it hangs.
func Review(ctx context.Context, r *Report, say func(string, ...any)) error {
	say("measuring admission reviews in process, 50 at a time")
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkReview$", "-benchtime", "2s", "./pkg/webhook").CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of the webhook: %w\n%s", err, out)
	}
	found := 0
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		name, rest, ok := strings.Cut(s.Text(), "\t")
		_, sub, named := strings.Cut(strings.TrimSpace(name), "/")
		if !ok || !named {
			continue
		}
		sub = cpuSuffix.ReplaceAllString(sub, "")
		for _, q := range []struct{ unit, name, goal string }{
			{"p50-answer", "answered, p50", ""}, {"p99-answer", "answered, p99", "< 2 ms"}, {"p99-handler", "answered and worked off, p99", ""},
		} {
			m := regexp.MustCompile(`([\d.e+]+) ` + q.unit + `-µs`).FindStringSubmatch(rest)
			if m == nil {
				continue
			}
			us, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return err
			}
			r.Add(Figure{Name: "admission review in process, " + sub + ": " + q.name, Value: us / 1000, Unit: "ms", Goal: q.goal})
			found++
		}
	}
	if found == 0 {
		return fmt.Errorf("the webhook's benchmark printed no percentiles:\n%s", out)
	}
	return nil
}

var cpuSuffix = regexp.MustCompile(`-\d+$`)
