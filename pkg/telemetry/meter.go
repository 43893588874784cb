package telemetry

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxValues is how many values of one metric an EMF line may carry.
const maxValues = 100

// Meter collects what one invocation counts and writes it as embedded metric
// format, one line a dimension set. It is safe for concurrent use.
type Meter struct {
	out    io.Writer
	now    func() time.Time
	common map[string]string // root members of every line, not dimensions

	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	dims   map[string]string
	counts map[string]float64
	values map[string][]float64
}

// NewMeter returns a meter that writes to out. common is put on every line for
// the log's sake, and is no dimension.
func NewMeter(out io.Writer, now func() time.Time, common map[string]string) *Meter {
	return &Meter{out: out, now: now, common: common, lines: map[string]*line{}}
}

// Count adds n to a counter. dims are name, value, name, value, …
func (m *Meter) Count(metric string, n float64, dims ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line(dims).counts[metric] += n
}

// Observe records a value, in the unit of the metric's name. Values past the
// format's limit of one line are left out; the counters tell how many there were.
func (m *Meter) Observe(metric string, v float64, dims ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.line(dims)
	if len(l.values[metric]) < maxValues {
		l.values[metric] = append(l.values[metric], v)
	}
}

func (m *Meter) line(dims []string) *line {
	id := strings.Join(dims, "\x00")
	l := m.lines[id]
	if l == nil {
		l = &line{dims: map[string]string{}, counts: map[string]float64{}, values: map[string][]float64{}}
		for i := 0; i+1 < len(dims); i += 2 {
			l.dims[dims[i]] = dims[i+1]
		}
		m.lines[id] = l
	}
	return l
}

type emfMetric struct {
	Name string
	Unit string
}

// Flush writes what was collected and begins anew.
func (m *Meter) Flush() {
	m.mu.Lock()
	lines := m.lines
	m.lines = map[string]*line{}
	m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(lines)) {
		m.write(lines[id])
	}
}

func (m *Meter) write(l *line) {
	doc := map[string]any{}
	for k, v := range m.common {
		doc[k] = v
	}
	names := slices.Sorted(maps.Keys(l.dims))
	for k, v := range l.dims {
		doc[k] = v
	}
	var metrics []emfMetric
	for _, name := range slices.Sorted(maps.Keys(l.counts)) {
		metrics = append(metrics, emfMetric{name, "Count"})
		doc[name] = l.counts[name]
	}
	for _, name := range slices.Sorted(maps.Keys(l.values)) {
		unit := "None"
		if strings.HasSuffix(name, "_seconds") {
			unit = "Seconds"
		}
		metrics = append(metrics, emfMetric{name, unit})
		doc[name] = l.values[name]
	}
	if names == nil {
		names = []string{}
	}
	doc["_aws"] = map[string]any{
		"Timestamp":         m.now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{"Namespace": Namespace, "Dimensions": [][]string{names}, "Metrics": metrics}},
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return // numbers and strings always marshal
	}
	_, _ = m.out.Write(append(text, '\n')) // a lost metric must not fail the work it counts
}
