package bindingfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bindingfile"
)

const head = "version: 1\nqueue: " + queue + "\nbindings:\n"

// entry is a binding on one line, with more members.
func entry(more string) string {
	return head + "  - {name: web, pods: {namespace: web}, targetGroup: {name: web}" + more + "}\n"
}

var faulty = map[string]struct {
	text   string
	want   []string // the errors, as parts of them
	schema bool     // the JSON Schema finds it too
}{
	"empty":                    {"", []string{"line 1: want a mapping"}, true},
	"not YAML":                 {"a: [", []string{"not valid YAML"}, false},
	"a list":                   {"- a", []string{"line 1: want a mapping"}, true},
	"nothing of it":            {"bus: a", []string{"line 1: version: missing", "queue: missing", "bindings: missing"}, true},
	"other version":            {strings.Replace(entry(""), "1", "2", 1), []string{"line 1: version: 2: want 1"}, true},
	"no queue":                 {"version: 1\nqueue: registrar\nbindings: []", []string{`line 2: queue: "registrar": want the ARN`}, true},
	"misspelled":               {"version: 1\nqueu: a\nqueue: " + queue + "\nbindings: []", []string{"line 2: queu: unknown key, did you mean queue"}, true},
	"bindings no list":         {"version: 1\nqueue: " + queue + "\nbindings: {}", []string{"line 3: bindings: a mapping: want a list"}, true},
	"no name":                  {head + "  - {pods: {namespace: a}, targetGroup: {name: a}}", []string{"line 4: bindings[0].name: missing"}, true},
	"bad name":                 {head + "  - {name: a b, pods: {namespace: a}, targetGroup: {name: a}}", []string{`line 4: bindings[0].name: "a b"`}, true},
	"a name twice":             {entry("") + strings.TrimPrefix(entry(""), head), []string{"line 5: bindings[1].name: web is the name of the binding at line 4 too"}, false},
	"a key twice":              {entry(", port: 1, port: 2"), []string{"port"}, false},
	"neither pods nor":         {head + "  - name: a\n    targetGroup: {name: a}", []string{"line 4: bindings[0]: want exactly one of pods and pattern"}, true},
	"both":                     {entry(`, pattern: '{"source":["elbridge"]}'`), []string{"want exactly one of pods and pattern"}, true},
	"every pod":                {head + "  - name: a\n    pods: {}\n    targetGroup: {name: a}", []string{"line 5: bindings[0].pods: it selects every pod"}, true},
	"state":                    {head + "  - name: a\n    pods:\n      ready: true\n    targetGroup: {name: a}", []string{"line 6: bindings[0].pods.ready: it is what a pod is doing, and the rule would not see it leave that state: use registerWhen: Ready"}, true},
	"no field":                 {head + "  - name: a\n    pods:\n      namespce: b\n    targetGroup: {name: a}", []string{"line 6: bindings[0].pods.namespce: unknown key, did you mean namespace"}, true},
	"number as label":          {head + "  - name: a\n    pods:\n      labels:\n        v: 1\n    targetGroup: {name: a}", []string{`line 7: bindings[0].pods.labels.v: 1: labels and annotations are strings: write "1" in quotes`}, true},
	"true as label":            {head + "  - name: a\n    pods: {labels: {v: true}}\n    targetGroup: {name: a}", []string{`write "true" in quotes`}, true},
	"empty list":               {head + "  - name: a\n    pods: {namespace: []}\n    targetGroup: {name: a}", []string{"line 5: bindings[0].pods.namespace: an empty list matches nothing"}, true},
	"operator":                 {head + "  - name: a\n    pods:\n      namespace: {prefx: b}\n    targetGroup: {name: a}", []string{"line 6: bindings[0]: event pattern: detail.namespace: unknown operator \"prefx\", did you mean prefix"}, true},
	"pattern":                  {head + "  - name: a\n    pattern: {source: elbridge}\n    targetGroup: {name: a}", []string{"line 5: bindings[0]: event pattern: source"}, false},
	"one of anyOf":             {head + "  - name: a\n    pods: {anyOf: [{namespace: a}]}\n    targetGroup: {name: a}", []string{"bindings[0].pods.anyOf: want a list of two or more"}, true},
	"no group":                 {head + "  - name: a\n    pods: {namespace: a}\n    port: 1", []string{"line 4: bindings[0].targetGroup: missing"}, true},
	"port":                     {head + "  - name: a\n    pods: {namespace: a}\n    targetGroup: {name: a}\n    port: 70000", []string{"line 7: bindings[0].port: 70000: want a number from 1 to 65535"}, true},
	"block":                    {head + "  - name: a\n    pods: {namespace: a}\n    targetGroup: {name: a}\n    podCIDRs:\n      - 10.0.0.0/8\n      - 10.1.2.3/8", []string{`line 9: bindings[0].podCIDRs[1]: "10.1.2.3/8" has bits set`}, false},
	"constant misspelled":      {entry(", registrWhen: Ready"), []string{"line 4: bindings[0].registrWhen: unknown key, did you mean registerWhen"}, true},
	"key misspelled":           {head + "  - name: a\n    pod: {namespace: a}\n    targetGroup: {name: a}", []string{"want exactly one of pods and pattern", "bindings[0].pod: unknown key, did you mean pods"}, true},
	"waits for itself":         {entry(", registerWhen: Ready, readinessGate: a/b"), []string{"line 4: bindings[0].readinessGate: with registerWhen Ready"}, false},
	"placeholder in a tag":     {strings.Replace(entry(""), "{name: web}}", "{tags: {a: <b>}}}", 1), []string{"line 4: bindings[0]: "}, false},
	"several at once":          {entry(", port: 0, mode: off"), []string{"bindings[0].port", "bindings[0].mode"}, true},
	"alias":                    {head + "  - &a {name: a, pods: {namespace: a}, targetGroup: {name: a}}\n  - *a", []string{"line 4: anchors and aliases are not read"}, false},
	"enabled no bool":          {entry(`, enabled: "yes"`), []string{"bindings[0].enabled: yes: want true or false"}, true},
	"description too long":     {entry(", description: " + strings.Repeat("x", 513)), []string{"bindings[0].description: 513 characters"}, true},
	"a group's name is an ARN": {strings.Replace(entry(""), "targetGroup: {name: web}", "targetGroup: web", 1), []string{`bindings[0].targetGroup: "web" is no ARN`}, true},
}

func TestParse_Faults(t *testing.T) {
	for name, tt := range faulty {
		t.Run(name, func(t *testing.T) {
			_, err := bindingfile.Parse([]byte(tt.text))
			got := bindingfile.Errors(err)
			if len(got) != len(tt.want) {
				t.Fatalf("errors %v, want %d", err, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i].Error(), want) {
					t.Errorf("error %q, want %q in it", got[i], want)
				}
			}
		})
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(bindingfile.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("bindings.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("bindings.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(s *jsonschema.Schema, text string) error {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// The schema refuses nothing that Parse takes, and finds what a schema can find.
func TestSchema(t *testing.T) {
	s := schema(t)
	if !json.Valid(bindingfile.Schema) {
		t.Fatal("the schema is not JSON")
	}
	f := sample(t)
	if len(f.Bindings) == 0 {
		t.Fatal("no sample")
	}
	for name, tt := range faulty {
		if !tt.schema {
			continue
		}
		if err := validate(s, tt.text); err == nil {
			t.Errorf("%s: the schema takes it", name)
		}
	}
	good := []string{entry(""), entry(", port: http"), entry(", podCIDRs: [10.0.0.0/8]"), entry(`, availabilityZone: eu-west-1a, description: "x"`), head + "  []\n"}
	for i, text := range good {
		if err := validate(s, text); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if _, err := bindingfile.Parse([]byte(text)); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range faulty {
		f.Add([]byte(tt.text))
	}
	f.Add([]byte(entry("")))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := bindingfile.Parse(data)
		if err != nil {
			if len(bindingfile.Errors(err)) == 0 {
				t.Fatalf("error %v tells no place", err)
			}
			return
		}
		for _, r := range file.Rules() {
			if bs, err := binding.FromRule(r.Rule, r.Targets, file.Queue); err != nil || len(bs) != 1 {
				t.Fatalf("rule %s is read as %d bindings (%v)", r.Name, len(bs), err)
			}
		}
		for _, format := range bindingfile.Formats {
			if _, err := bindingfile.Render(file, format); err != nil {
				t.Fatal(fmt.Errorf("%s: %w", format, err))
			}
		}
	})
}
