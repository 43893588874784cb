package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// runCommand runs elbridge with arguments and stdin.
func runCommand(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := root()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

const sampleEvent = "../../events/samples/pod-state-change.ready.json"

func TestPatternTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pattern.json")
	if err := os.WriteFile(file, []byte("\ufeff{\"source\":[\"elbridge\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		pattern, event, stdin string
		args                  []string
		code                  int
		want                  string // in what is said, or in the error
	}{
		"match":                {pattern: `{"source":["elbridge"]}`, event: sampleEvent, want: "match: source is \"elbridge\"\n\n    PATH    WANT          FOUND\nok  source  [\"elbridge\"]  \"elbridge\"\n"},
		"no match":             {pattern: `{"source":["elbridge"],"detail":{"cluster":["nowhere"]}}`, event: sampleEvent, code: 2, want: "\nno  detail.cluster  [\"nowhere\"]   \"prod\""},
		"absent":               {pattern: `{"detail":{"labels":{"nosuch":["x"]}}}`, event: sampleEvent, code: 2, want: "no match: detail.labels.nosuch is absent, want [\"x\"]\n"},
		"not in one element":   {pattern: `{"m":{"a":[1],"b":[2]}}`, event: `{"m":[{"a":1},{"b":2}]}`, code: 2, want: "\napart  m.b   [2]   m[1].b = 2\n"},
		"an object there":      {pattern: `{"detail":["x"]}`, event: sampleEvent, code: 2, want: "absent (an object stands there)"},
		"many values":          {pattern: `{"m":["x"]}`, event: `{"m":[1,2,3,4,5,6,7,8,9,10]}`, code: 2, want: "7, 8, 2 more\n"},
		"$or":                  {pattern: `{"source":["elbridge"],"detail":{"$or":[{"namespace":["no"]},{"cluster":["no"]}]}}`, event: sampleEvent, code: 2, want: "\ndetail.$or[1]\n"},
		"too many $or":         {pattern: `{"$or":[` + strings.Repeat(`{"a":[1]},`, 19) + `{"a":[1]}]}`, event: sampleEvent, code: 2, want: "\n4 more combinations of $or branches\n"},
		"pattern in a file":    {pattern: file, event: sampleEvent, want: "match: "},
		"pattern from stdin":   {pattern: "-", stdin: `{"source":["elbridge"]}`, event: sampleEvent, want: "match: "},
		"event from stdin":     {pattern: file, event: "-", stdin: `{"source":"elbridge"}`, want: "note: the event lacks id, account, time, region, resources, detail-type"},
		"text behind it":       {pattern: `{"source":["elbridge"]} x`, event: sampleEvent, want: "note: text follows the pattern's closing brace"},
		"longer than usual":    {pattern: `{"source":["elbridge","` + strings.Repeat("x", 2048) + `"]}`, event: sampleEvent, want: "unless the account's quota was raised"},
		"json":                 {pattern: file, event: `{"source":"<"}`, args: []string{"-o", "json"}, code: 2, want: `"reason": "no match: source is \"<\", want [\"elbridge\"]"`},
		"yaml":                 {pattern: file, event: sampleEvent, args: []string{"-o", "yaml"}, want: "\nreason: 'match: source is \"elbridge\"'\n"},
		"invalid pattern":      {pattern: `{"source":"elbridge"}`, event: sampleEvent, code: 1, want: "event pattern: source: a string where"},
		"invalid event":        {pattern: file, event: `{"source":`, code: 1, want: "event: "},
		"no object":            {pattern: `["x"]`, event: sampleEvent, code: 1, want: "an array where the pattern's object belongs"},
		"no such file":         {pattern: "nosuch.json", event: sampleEvent, code: 1, want: "-p: open nosuch.json: "},
		"nothing":              {pattern: " ", event: sampleEvent, code: 1, want: "-p is empty: want JSON, the name of a file"},
		"both from stdin":      {pattern: "-", event: "-", code: 1, want: "stdin holds one of the two"},
		"too long":             {pattern: "-", stdin: strings.Repeat(" ", 20_000), event: sampleEvent, code: 1, want: "-p: more than 16384 bytes"},
		"output of no kind":    {pattern: file, event: sampleEvent, args: []string{"-o", "xml"}, code: 1, want: "-o xml: want table, json or yaml"},
		"an argument too many": {pattern: file, event: sampleEvent, args: []string{"x"}, code: 1, want: "unknown command"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := runCommand(t, tt.stdin, append([]string{"pattern", "test", "-p", tt.pattern, "-e", tt.event}, tt.args...)...)
			code := 0
			if exit := (exitError{}); errors.As(err, &exit) {
				code = exit.code
			} else if err != nil {
				code, text = 1, text+err.Error()
			}
			if code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("exit code %d, want %d; said\n%s\nwant %q in it", code, tt.code, text, tt.want)
			}
		})
	}
}

// What -o json and -o yaml write says the same.
func TestPatternTest_Structured(t *testing.T) {
	args := []string{"pattern", "test", "-e", sampleEvent, "-p", `{"detail":{"cluster":["nowhere"],"ports":{"name":["http"]}}}`, "-o"}
	var got [2]patternResult
	for i, output := range []string{"json", "yaml"} {
		text, err := runCommand(t, "", append(args, output)...)
		if !errors.Is(err, errNoMatch) {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(text), &got[i]); err != nil {
			t.Fatalf("%s: %v", output, err)
		}
	}
	a, _ := json.Marshal(got[0])
	b, _ := json.Marshal(got[1])
	if !bytes.Equal(a, b) || got[0].Match || len(got[0].Attempts) != 1 || got[0].Attempts[0].Failed != 0 || len(got[0].Attempts[0].Findings) != 2 {
		t.Errorf("json says %s, yaml %s", a, b)
	}
}

func TestPatternTest_Completion(t *testing.T) {
	if text, err := runCommand(t, "", "__complete", "pattern", "test", "-o", ""); err != nil || !strings.HasPrefix(text, "table\njson\nyaml\n") {
		t.Errorf("completion says %q, %v", text, err)
	}
}
