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

const sound = `version: 1
queue: ` + docQueue + `
bindings:
  - name: web
    pods: {cluster: prod, namespace: web}
    targetGroup: {name: web}
`

// file writes text into a file of a fresh folder.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the tool and returns what it says and its exit code.
func run(t *testing.T, stdin string, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := root()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	exit := exitError{code: 1}
	switch {
	case err == nil:
		return out.String(), 0
	case !errors.As(err, &exit):
		return out.String() + err.Error(), 1
	}
	return out.String(), exit.code
}

func TestLint(t *testing.T) {
	good := file(t, "good.yaml", sound)
	risky := file(t, "risky.yaml", strings.Replace(sound, ", namespace: web", ", labels: {a: b}", 1))
	bad := file(t, "bad.yaml", sound+strings.Replace(strings.TrimPrefix(sound[strings.Index(sound, "  - "):], ""), "name: web\n", "name: web2\n", 1)+"    mode: observe\n")
	faulty := file(t, "faulty.yaml", sound+"    ports: 1\n")
	none := file(t, "none.yaml", "version: 1\nqueue: "+docQueue+"\nbindings: []\n")
	tests := map[string]struct {
		args []string
		want string
		code int
	}{
		"sound":                    {[]string{"-f", good}, "1 rule, 1 binding: 0 errors, 0 warnings, 0 notes", 0},
		"as template":              {[]string{"--template", good}, "1 rule", 0},
		"warning":                  {[]string{"-f", risky}, "unpinned-tenant", 0},
		"warning, strict":          {[]string{"-f", risky, "--strict"}, "unpinned-tenant", 2},
		"error":                    {[]string{"-f", bad}, "conflicting-constants", 2},
		"two files are one bus":    {[]string{"-f", good, "-f", good}, "duplicate-rule", 2},
		"can't be read":            {[]string{"-f", faulty}, "line 7: bindings[0].ports: unknown key, did you mean port", 1},
		"no such file":             {[]string{"-f", "nosuch"}, "no such file", 1},
		"old and new":              {[]string{good, good}, "0 errors", 0},
		"rule vanished":            {[]string{good, none}, "vanished-undrained", 2},
		"old alone":                {[]string{good}, "want OLD and NEW", 1},
		"old and new and file":     {[]string{"-f", good, good, good}, "not both", 1},
		"list":                     {[]string{"--list"}, "state-field", 0},
		"unknown format":           {[]string{"-o", "xml"}, "want one of table, json, yaml", 1},
		"two clusters at one time": {[]string{"--kubeconfig", "a", "--eks-cluster", "b"}, "kubeconfig", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, code := run(t, "", append([]string{"lint"}, tt.args...)...)
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit code %d, want %d; said\n%s\nwant %q in it", code, tt.code, out, tt.want)
			}
		})
	}
}

// The fields of -o json that CI reads.
func TestLint_JSON(t *testing.T) {
	stdin := strings.Replace(sound, ", namespace: web", ", labels: {a: b}", 1)
	for _, format := range []string{"json", "yaml"} {
		out, code := run(t, stdin, "lint", "-f", "-", "-o", format)
		raw, err := yaml.YAMLToJSON([]byte(out))
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Rules, Bindings, Errors, Warnings, Infos *int
			Findings                                 []struct{ Severity, Check, Rule, Target, Path, Group, Place, Message, Fix string }
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil || code != 0 {
			t.Fatalf("%s: %v, exit code %d", out, err, code)
		}
		if r.Rules == nil || r.Bindings == nil || r.Errors == nil || *r.Warnings != 1 || len(r.Findings) != 1 {
			t.Fatalf("said %s", out)
		}
		f := r.Findings[0]
		if f.Severity != "warning" || f.Check != "unpinned-tenant" || f.Rule != "web" || f.Target != "registrar" || f.Group != "web" || f.Place != "stdin:4" || f.Path == "" || f.Message == "" || f.Fix == "" {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestRender(t *testing.T) {
	good := file(t, "bindings.yaml", sound)
	for _, format := range []string{"cloudformation", "terraform-json", "aws-cli"} {
		out, code := run(t, "", "render", "-f", good, "-o", format)
		if code != 0 || !strings.Contains(out, "<aws.events.event.json>") {
			t.Errorf("%s: exit code %d, said %s", format, code, out)
		}
	}
	out, code := run(t, sound+"    mode: of\n", "render", "-f", "-")
	if code != 1 || !strings.Contains(out, `-:7:11: bindings[0].mode: "of"`) {
		t.Errorf("exit code %d, said %s", code, out)
	}
	if out, code := run(t, "", "render", "--schema"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("exit code %d, said %s", code, out)
	}
	if out, code := run(t, "", "render", "-o", "json"); code != 1 || !strings.Contains(out, "want one of cloudformation") {
		t.Errorf("exit code %d, said %s", code, out)
	}
}

// What is rendered passes the lint that a template of other origin has to pass.
func TestRender_IsSound(t *testing.T) {
	for _, format := range []string{"cloudformation", "terraform-json"} {
		text, _ := run(t, sound, "render", "-f", "-", "-o", format)
		if out, code := run(t, text, "lint", "-f", "-", "--strict"); code != 0 {
			t.Errorf("%s: %s", format, out)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, code := run(t, "", "completion", shell); code != 0 || !strings.Contains(out, "elbridge") {
			t.Errorf("%s: exit code %d", shell, code)
		}
	}
	if out, _ := run(t, "", "__complete", "lint", "-o", ""); !strings.Contains(out, "yaml") {
		t.Errorf("completes -o with %q", out)
	}
}
