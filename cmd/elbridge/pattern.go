package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// errNoMatch ends `elbridge pattern test` for a pattern that is valid and does
// not match. What there is to say has been said on stdout.
var errNoMatch = exitError{code: 2}

// exitError ends the program with an exit code and no further word.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// patternResult is the answer of `elbridge pattern test`.
type patternResult struct {
	eventpattern.Explanation
	Reason string   `json:"reason"`          // the explanation in one line
	Notes  []string `json:"notes,omitempty"` // where the service would not take what was tested
}

func patternCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "pattern", Short: "Try event patterns", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(patternTestCommand())
	return cmd
}

func patternTestCommand() *cobra.Command {
	var pattern, event, output string
	cmd := &cobra.Command{
		Use: "test -p PATTERN -e EVENT", Short: "Say whether a pattern matches an event, and why or why not", Args: cobra.NoArgs,
		Long: `Test reads a pattern and an event as EventBridge does, and says whether the pattern
matches and which condition decided. It asks nobody: no AWS account, no cluster.

Pattern and event are each JSON itself, the name of a file, or - for stdin (one of the two).

Exit codes: 0 the pattern matches, 1 an error, such as a pattern that EventBridge
would refuse, 2 the pattern does not match.`,
		Example: `  elbridge pattern test -p pattern.json -e event.json
  elbridge pattern test -p '{"detail":{"namespace":["shop"]}}' -e events/samples/pod-state-change.ready.json
  aws events describe-rule --name web --query EventPattern --output text | elbridge pattern test -p - -e event.json
  elbridge pattern test -p pattern.json -e event.json -o json | jq -r .reason`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pattern == "-" && event == "-" {
				return errors.New("-p - -e -: stdin holds one of the two, give the other as a file or as JSON")
			}
			p, err := operand("-p", pattern, cmd.InOrStdin(), eventpattern.MaxPatternLength*4)
			if err != nil {
				return err
			}
			e, err := operand("-e", event, cmd.InOrStdin(), eventpattern.MaxEventBytes)
			if err != nil {
				return err
			}
			r, err := testPattern(p, e)
			if err != nil {
				return err
			}
			if err := r.write(cmd.OutOrStdout(), output); err != nil {
				return err
			}
			if !r.Match {
				return errNoMatch
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&pattern, "pattern", "p", "", "the pattern: JSON, a file, or - for stdin")
	f.StringVarP(&event, "event", "e", "", "the whole event, envelope included: JSON, a file, or - for stdin")
	f.StringVarP(&output, "output", "o", "table", "table, json, yaml")
	for _, required := range []string{"pattern", "event"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // no such flag
		}
	}
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // no such flag
	}
	return cmd
}

// operand is the text that the value of a flag stands for, at most that many bytes.
func operand(flag, value string, stdin io.Reader, most int64) ([]byte, error) {
	switch trimmed := strings.TrimSpace(value); {
	case trimmed == "":
		return nil, fmt.Errorf("%s is empty: want JSON, the name of a file, or - for stdin", flag)
	case strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "["):
		return []byte(value), nil
	case value == "-":
		return readAll(flag, stdin, most)
	}
	file, err := os.Open(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (JSON itself begins with a brace)", flag, err)
	}
	defer file.Close()
	return readAll(flag, file, most)
}

func readAll(flag string, in io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%s: more than %d bytes", flag, most)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

func testPattern(pattern, event []byte) (patternResult, error) {
	p, err := eventpattern.Parse(pattern)
	if err != nil {
		return patternResult{}, err
	}
	e, err := eventpattern.ParseEvent(event)
	if err != nil {
		return patternResult{}, err
	}
	x := p.Explain(e)
	return patternResult{Explanation: x, Reason: x.String(), Notes: patternNotes(p, event)}, nil
}

// quotaOfPattern is the length of a pattern that EventBridge takes by default, in
// characters; the quota can be raised.
const quotaOfPattern = 2048

// patternNotes says where EventBridge's TestEventPattern, or PutRule, would not
// take what was tested.
func patternNotes(p *eventpattern.Pattern, event []byte) []string {
	var notes []string
	if n := len([]rune(p.String())); n > quotaOfPattern {
		notes = append(notes, fmt.Sprintf("the pattern has %d characters: EventBridge takes %d unless the account's quota was raised", n, quotaOfPattern))
	}
	if !json.Valid([]byte(p.String())) {
		notes = append(notes, "text follows the pattern's closing brace: EventBridge ignores it")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(event, &fields); err != nil {
		return append(notes, err.Error())
	}
	var missing []string
	for _, key := range []string{"id", "account", "source", "time", "region", "resources", "detail-type"} {
		if _, ok := fields[key]; !ok {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		notes = append(notes, "the event lacks "+strings.Join(missing, ", ")+": EventBridge's TestEventPattern asks for them")
	}
	return notes
}

func (r patternResult) write(out io.Writer, output string) error {
	switch output {
	case "table":
		return r.table(out)
	case "json":
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	case "yaml":
		text, err := yaml.Marshal(r)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	return fmt.Errorf("-o %s: want table, json or yaml", output)
}

// table writes the reason, and a line for each condition of each attempt.
func (r patternResult) table(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, r.Reason)
	for _, a := range r.Attempts {
		fmt.Fprintln(&b)
		if a.Branch != "" {
			fmt.Fprintf(&b, "%s\n", a.Branch)
		}
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\tPATH\tWANT\tFOUND")
		for i, f := range a.Findings {
			mark := "ok"
			switch {
			case i == a.Failed && len(a.Apart) > 0:
				mark = "apart"
			case i == a.Failed || !f.Holds:
				mark = "no"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, f.Path, f.Condition, found(f))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if r.Omitted > 0 {
		fmt.Fprintf(&b, "\n%d more combinations of $or branches\n", r.Omitted)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", note)
	}
	_, err := out.Write(b.Bytes())
	return err
}

// found is what stands at a path, in a cell of the table.
func found(f eventpattern.Finding) string {
	var texts []string
	for _, v := range f.Values {
		text := v.Text
		if v.Where != "" {
			text = v.Where + " = " + text
		}
		texts = append(texts, text)
	}
	switch {
	case f.Omitted > 0:
		texts = append(texts, fmt.Sprintf("%d more", f.Omitted))
	case f.Inner:
		return "absent (an object stands there)"
	case len(texts) == 0:
		return "absent"
	}
	return strings.Join(texts, ", ")
}
