// Package bench measures elbridge on a local stack, end to end: from a write to
// the API server to the call that reaches ELB. Every figure has its baseline in
// the same run: the same hops with a function that does nothing, or the same
// writes without the webhook.
package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"io"

	"github.com/elbridge/elbridge/local/stack"
)

// Figure is one measured figure.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Goal  string  `json:"goal,omitempty"`
	Peers string  `json:"peers,omitempty"` // what other controllers need, measured on such a machine
}

// Report is all figures of a run, with what it ran on.
type Report struct {
	At      time.Time `json:"at"`
	Machine string    `json:"machine"`
	Figures []Figure  `json:"figures"`
}

// New returns an empty report.
func New(at time.Time) *Report {
	return &Report{At: at.UTC(), Machine: fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())}
}

// Add puts figures into the report.
func (r *Report) Add(fs ...Figure) { r.Figures = append(r.Figures, fs...) }

// Table prints the report.
func (r *Report) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "figure\tmeasured\tgoal\tothers"); err != nil {
		return err
	}
	for _, f := range r.Figures {
		if _, err := fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\n", f.Name, number(f.Value), f.Unit, f.Goal, f.Peers); err != nil {
			return err
		}
	}
	return w.Flush()
}

func number(v float64) string {
	if v >= 100 || v == float64(int(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// Write writes the report as JSON into dir, named by its moment.
func (r *Report) Write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, r.At.Format("20060102T150405Z")+".json")
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
}

// percentile of durations, in milliseconds; q is between 0 and 1.
func percentile(ds []time.Duration, q float64) float64 {
	if len(ds) == 0 {
		return 0
	}
	s := slices.SortedFunc(slices.Values(ds), cmp.Compare)
	return float64(s[min(len(s)-1, int(q*float64(len(s))))].Microseconds()) / 1000
}

// latencies are two figures of a series.
func latencies(name string, ds []time.Duration, goal50, goal95, peers string) []Figure {
	return []Figure{
		{Name: name + ", p50", Value: percentile(ds, 0.5), Unit: "ms", Goal: goal50, Peers: peers},
		{Name: name + ", p95", Value: percentile(ds, 0.95), Unit: "ms", Goal: goal95},
	}
}

// Run measures on a stack with the registrar.
func Run(ctx context.Context, s *stack.Stack, r *Report, say func(string, ...any)) error {
	b := &bench{s: s, say: say}
	if err := b.setUp(ctx); err != nil {
		return err
	}
	defer b.end()
	for _, m := range []struct {
		what string
		do   func(context.Context, *Report) error
	}{
		{"lone pods, one a second", b.lone},
		{"lone pods, the bus delayed by 80 ms", b.delayed},
		{"graceful deletes", b.deletes},
		{"200 pods at once", b.many},
		{"what the webhook adds to a status patch", b.patches},
		{"memory of the webhook with 100 and 10,000 pods", b.memory},
	} {
		say("measuring %s", m.what)
		if err := m.do(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
	}
	return nil
}

// RunEmpty measures the same hops on a stack whose function does nothing.
func RunEmpty(ctx context.Context, s *stack.Stack, r *Report, say func(string, ...any)) error {
	b := &bench{s: s, say: say}
	if err := b.setUp(ctx); err != nil {
		return err
	}
	defer b.end()
	say("measuring the same hops with a function that does nothing")
	return b.empty(ctx, r)
}
