package bindingfile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bindingfile"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/rulefile"
)

var update = flag.Bool("update", false, "write the golden files anew")

const queue = "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar"

func sample(t *testing.T) *bindingfile.File {
	t.Helper()
	data, err := os.ReadFile("testdata/bindings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := bindingfile.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bindings of rules, with what they select written out.
func bindings(t *testing.T, rules []lint.Rule) []binding.Binding {
	t.Helper()
	bs, err := lint.Bindings(rules, []string{queue})
	if err != nil {
		t.Fatal(err)
	}
	return bs
}

func rulesOf(f *bindingfile.File) []lint.Rule {
	var out []lint.Rule
	for _, r := range f.Rules() {
		out = append(out, lint.Rule{Rule: r.Rule, Targets: r.Targets})
	}
	return out
}

// same compares bindings, their patterns by what they say.
func same(t *testing.T, got, want []binding.Binding) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d bindings, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		var gp, wp any
		if err := json.Unmarshal([]byte(g.Pattern.String()), &gp); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(w.Pattern.String()), &wp); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(gp, wp) {
			t.Errorf("pattern %s, want %s", g.Pattern, w.Pattern)
		}
		g.Pattern, w.Pattern = nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Errorf("binding %+v, want %+v", g, w)
		}
	}
}

func TestParse(t *testing.T) {
	f := sample(t)
	bs := bindings(t, rulesOf(f))
	if len(bs) != 3 {
		t.Fatalf("%d bindings, want 3", len(bs))
	}
	if got, want := f.Bindings[0].Description, "Skipper, the ingress proxy: it's what the public load balancer sends to."; got != want {
		t.Errorf("the comment became %q, want %q", got, want)
	}
	if b := bs[0]; b.Port.Number != 9999 || !b.Enabled || b.MinTargets != 1 || b.MaxRemovalPercent != 20 {
		t.Errorf("binding %+v has not the file's port and the defaults", b)
	}
	if b := bs[1]; b.Enabled || b.Port.Name != "http" || b.RegisterWhen != binding.ContainersReady || !b.Empty || !b.KeepForeign || b.Group.Tags["stage"] != "1" || len(b.PodCIDRs) != 2 {
		t.Errorf("binding %+v does not say what the file says", b)
	}
	wantPattern := `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["prod"],"namespace":["ingress"],"labels":{"application":["skipper-ingress"]}}}`
	if f.Bindings[0].Pattern != wantPattern {
		t.Errorf("pattern %s, want %s", f.Bindings[0].Pattern, wantPattern)
	}
}

var golden = map[bindingfile.Format]string{
	bindingfile.CloudFormation: "testdata/cloudformation.json",
	bindingfile.TerraformJSON:  "testdata/terraform.tf.json",
	bindingfile.AWSCLI:         "testdata/aws-cli.sh",
}

func TestRender_Golden(t *testing.T) {
	for format, path := range golden {
		t.Run(string(format), func(t *testing.T) {
			got, err := bindingfile.Render(sample(t), format)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("rendered\n%s\nwant, as in %s\n%s", got, path, want)
			}
		})
	}
	if _, err := bindingfile.Render(sample(t), "yaml"); err == nil {
		t.Error("a format that there is none of was rendered")
	}
}

// readBack reads the bindings of rendered rules.
func readBack(t *testing.T, format bindingfile.Format, text []byte) []binding.Binding {
	t.Helper()
	if format == bindingfile.AWSCLI {
		text = fromShell(t, text)
	}
	f, err := rulefile.Parse("rendered", text)
	if err != nil {
		t.Fatal(err)
	}
	return bindings(t, f.Rules)
}

// fromShell makes rules of the calls in a script, as a shell would read them.
func fromShell(t *testing.T, script []byte) []byte {
	t.Helper()
	var rules []map[string]any
	for _, call := range strings.Split(string(script), "\naws events ")[1:] {
		_, input, _ := strings.Cut(call, "--cli-input-json '")
		var text strings.Builder
		for {
			part, rest, _ := strings.Cut(input, "'")
			text.WriteString(part)
			if !strings.HasPrefix(rest, `\''`) {
				break
			}
			text.WriteByte('\'')
			input = strings.TrimPrefix(rest, `\''`)
		}
		var o map[string]any
		if err := json.Unmarshal([]byte(text.String()), &o); err != nil {
			t.Fatalf("%s: %v", text.String(), err)
		}
		if strings.HasPrefix(call, "put-rule") {
			rules = append(rules, o)
			continue
		}
		rules[len(rules)-1]["Targets"] = o["Targets"]
	}
	out, err := json.Marshal(map[string]any{"Rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRender_ReadBackGivesTheSameBindings(t *testing.T) {
	want := bindings(t, rulesOf(sample(t)))
	for format := range golden {
		t.Run(string(format), func(t *testing.T) {
			text, err := bindingfile.Render(sample(t), format)
			if err != nil {
				t.Fatal(err)
			}
			sameByName(t, readBack(t, format, text), want)
			if format == bindingfile.AWSCLI {
				return
			}
			// As json.Marshal, CDK and Terraform's jsonencode write it: < as \u003c.
			var v any
			if err := json.Unmarshal(text, &v); err != nil {
				t.Fatal(err)
			}
			escaped, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(escaped, []byte(`\u003caws.events.rule-arn\u003e`)) {
				t.Fatal("the test escapes nothing")
			}
			sameByName(t, readBack(t, format, escaped), want)
		})
	}
}

// sameByName compares in the order of want.
func sameByName(t *testing.T, got, want []binding.Binding) {
	t.Helper()
	by := map[string]binding.Binding{}
	for _, b := range got {
		by[b.Rule] = b
	}
	var ordered []binding.Binding
	for _, w := range want {
		b, ok := by[w.Rule]
		if !ok {
			t.Fatalf("no rule %s among %d", w.Rule, len(got))
		}
		ordered = append(ordered, b)
	}
	same(t, ordered, want)
}

func TestRender_NamesStayApart(t *testing.T) {
	text := head + "  - {name: a.b, pods: {namespace: a}, targetGroup: {name: a}}\n  - {name: a-b, pods: {namespace: a}, targetGroup: {name: b}}\n  - {name: a_b, pods: {namespace: a}, targetGroup: {name: c}}\n"
	f, err := bindingfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for format := range golden {
		out, err := bindingfile.Render(f, format)
		if err != nil {
			t.Fatal(err)
		}
		if bs := readBack(t, format, out); len(bs) != 3 {
			t.Errorf("%s: %d bindings, want 3", format, len(bs))
		}
	}
}
