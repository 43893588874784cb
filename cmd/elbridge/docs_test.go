package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/rulefile"
)

const docQueue = "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar"

func bindingsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/bindings.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```")

// TestDocs_Examples: each example of docs/bindings.md is a binding, or several.
func TestDocs_Examples(t *testing.T) {
	seen := map[string]int{}
	for _, m := range fence.FindAllStringSubmatch(bindingsPage(t), -1) {
		language, text := m[1], m[2]
		seen[language]++
		t.Run(fmt.Sprint(language, seen[language]), func(t *testing.T) {
			var in lint.Input
			switch language {
			case "json", "yaml":
				f, err := rulefile.Parse(language, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				in = lint.Input{Rules: f.Rules, Groups: f.Groups}
			case "hcl":
				in.Rules = []lint.Rule{docRule(heredoc(t, text, "event_pattern"), resolved(heredoc(t, text, "input_template")))}
			case "sh":
				in.Rules = []lint.Rule{shellRule(t, text)}
			case "go":
				in.Rules = []lint.Rule{docRule(docPattern, goTemplate(t, text))}
			default:
				t.Fatalf("no test reads %s", language)
			}
			r := lint.Run(in)
			if r.Bindings == 0 {
				t.Errorf("no binding in it")
			}
			for _, f := range r.Findings {
				if f.Severity != lint.Info {
					t.Errorf("%+v", f)
				}
			}
		})
	}
	for _, language := range []string{"json", "yaml", "hcl", "sh", "go"} {
		if seen[language] == 0 {
			t.Errorf("no example in %s", language)
		}
	}
}

const docPattern = `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["prod"],"namespace":["ingress"]}}`

func docRule(pattern, template string) lint.Rule {
	return lint.Rule{
		Rule:    binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/ingress", Name: "ingress", Bus: "elbridge", State: "ENABLED", Pattern: pattern},
		Targets: []binding.Target{{ID: "registrar", ARN: docQueue, Transformer: &binding.Transformer{Template: template}}},
	}
}

func heredoc(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)` + name + `\s*= <<-EOT\n(.*?)EOT`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no heredoc %s", name)
	}
	return m[1]
}

// resolved puts an ARN where Terraform would.
func resolved(s string) string {
	return regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllLiteralString(s, groupARN)
}

func shellRule(t *testing.T, text string) lint.Rule {
	t.Helper()
	quoted := regexp.MustCompile(`(?s)'([^']*)'`).FindAllStringSubmatch(text, -1)
	if len(quoted) != 2 {
		t.Fatalf("%d quoted words, want the pattern and the targets", len(quoted))
	}
	f, err := rulefile.Parse("sh", []byte(`{"Rules":[{"Name":"ingress","EventBusName":"elbridge","EventPattern":`+quoted[0][1]+`,"Targets":`+quoted[1][1]+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return f.Rules[0]
}

// goTemplate joins the raw strings of the template, with an ARN after the first.
func goTemplate(t *testing.T, text string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "example.go", "package p\nfunc _() {\n"+text+"}", 0)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, "`") {
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, s)
		}
		return true
	})
	if len(parts) < 2 {
		t.Fatalf("raw strings %q, want the template's parts", parts)
	}
	return parts[0] + groupARN + strings.Join(parts[1:], "")
}

var (
	constantRow = regexp.MustCompile("(?m)^\\| (?:`[a-zA-Z`, ]+`)? ?\\|[^|]*\\| `(\".*?)` \\|")
	constantKey = regexp.MustCompile(`"([a-zA-Z]+)":`)
	checkRow    = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (error|warning|info) \\| (.*) \\|$")
)

// TestDocs_Constants: each constant has an example, and each example is one.
func TestDocs_Constants(t *testing.T) {
	documented := map[string]bool{}
	for _, m := range constantRow.FindAllStringSubmatch(bindingsPage(t), -1) {
		example := m[1]
		for _, k := range constantKey.FindAllStringSubmatch(example, -1) {
			documented[k[1]] = true
		}
		if !strings.Contains(example, "targetGroup") {
			example = `"targetGroup":{"name":"web"},` + example
		}
		if _, err := binding.ParseConstants([]byte("{" + example + "}")); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	_, err := binding.ParseConstants([]byte(`{"targetGroup":{"name":"web"},"nosuch":1}`))
	_, known, ok := strings.Cut(err.Error(), "known are ")
	if !ok {
		t.Fatalf("the error tells no constants: %v", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(known, ")"), ", ") {
		if !documented[name] {
			t.Errorf("constant %s has no example", name)
		}
	}
}

func TestDocs_Checks(t *testing.T) {
	documented := map[string]string{}
	for _, m := range checkRow.FindAllStringSubmatch(bindingsPage(t), -1) {
		documented[m[1]] = m[2] + " " + m[3]
	}
	for _, m := range lint.Checks() {
		if got, want := documented[string(m.Check)], fmt.Sprintf("%s %s", m.Severity, m.Meaning); got != want {
			t.Errorf("check %s is documented as %q, want %q", m.Check, got, want)
		}
		delete(documented, string(m.Check))
	}
	for name := range documented {
		t.Errorf("there is no check %s", name)
	}
}

var shellBlock = regexp.MustCompile("(?ms)^```\n(.*?)^```")

// TestDocs_Commands: each command line of docs/operations.md is one that the tool
// understands, and each of its commands that operators need has one.
func TestDocs_Commands(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			words := shellWords(line)
			if words[0] != "elbridge" {
				t.Errorf("%s: no command of the tool", line)
				continue
			}
			name, err := understood(words[1:])
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			seen[name] = true
		}
	}
	for _, name := range []string{"adopt", "bindings", "drift", "explain", "freeze", "history", "lint", "plan", "report", "resync", "status", "unfreeze", "wait"} {
		if !seen[name] {
			t.Errorf("no example of %s", name)
		}
	}
}

// Every example of --help is understood too.
func TestHelp_Examples(t *testing.T) {
	for _, cmd := range leaves(root()) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			line, _, _ = strings.Cut(line, " > ")
			words := shellWords(line)
			if len(words) == 0 || words[0] != "elbridge" {
				continue
			}
			if _, err := understood(words[1:]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// leaves are the commands that do something.
func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var out []*cobra.Command
	for _, c := range cmd.Commands() {
		out = append(out, leaves(c)...)
	}
	return out
}

// understood finds the command of a command line, and checks its flags and
// arguments as cobra does before it runs.
func understood(args []string) (string, error) {
	cmd, rest, err := root().Find(args)
	if err != nil {
		return "", err
	}
	cmd.InheritedFlags() // merges them
	if err := cmd.ParseFlags(rest); err != nil {
		return "", err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return "", err
	}
	return cmd.Name(), errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
}

// shellWords splits a line at spaces, with double and single quotes.
func shellWords(line string) []string {
	var words []string
	for _, m := range regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`).FindAllString(line, -1) {
		words = append(words, strings.NewReplacer(`"`, "", `'`, "").Replace(m))
	}
	return words
}

// Every command says how it ends.
func TestHelp_ExitCodes(t *testing.T) {
	for _, cmd := range leaves(root()) {
		if !strings.Contains(cmd.Long, "Exit codes: 0 ") {
			t.Errorf("%s says nothing of its exit codes", cmd.CommandPath())
		}
	}
	for _, line := range []string{"observe reprot", "pattern tset", "reprot"} { // a mistyped command is an error in scripts too
		cmd := root()
		cmd.SetArgs(strings.Fields(line))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil {
			t.Errorf("elbridge %s is no error", line)
		}
	}
}
