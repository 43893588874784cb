package telemetry_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/telemetry"
)

// TestFlush checks each line against the rules of the embedded metric format:
// one JSON object, every metric a root member, dimensions with string values.
func TestFlush(t *testing.T) {
	var out bytes.Buffer
	m := telemetry.NewMeter(&out, func() time.Time { return time.UnixMilli(1_700_000_000_123) }, map[string]string{"bus": "elbridge"})
	m.Count(telemetry.HintsTotal, 2, telemetry.DimResult, "done")
	m.Count(telemetry.HintsTotal, 1, telemetry.DimResult, "done")
	for range 150 {
		m.Observe(telemetry.EventToRegisterSeconds, 0.05)
	}
	m.Flush()
	m.Flush() // nothing is written twice
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want one for each of 2 dimension sets:\n%s", len(lines), out.String())
	}
	found := 0.0
	for _, text := range lines {
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		directive := doc["_aws"].(map[string]any)["CloudWatchMetrics"].([]any)[0].(map[string]any)
		if directive["Namespace"] != telemetry.Namespace || doc["bus"] != "elbridge" {
			t.Errorf("line %s: wrong namespace or no common field", text)
		}
		for _, d := range directive["Dimensions"].([]any)[0].([]any) {
			if _, ok := doc[d.(string)].(string); !ok {
				t.Errorf("dimension %v is no string member of the root", d)
			}
		}
		for _, metric := range directive["Metrics"].([]any) {
			switch v := doc[metric.(map[string]any)["Name"].(string)].(type) {
			case float64:
				found += v
			case []any:
				if len(v) > 100 {
					t.Errorf("%d values in one line, the format allows 100", len(v))
				}
			default:
				t.Errorf("metric %v is not at the root", metric)
			}
		}
	}
	if found != 3 {
		t.Errorf("counted %v hints, want 3", found)
	}
}
