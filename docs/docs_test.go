// Package docs_test keeps the documents true: what tests name is explained here,
// what the documents name exists.
package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lines and cells that say which tests prove what")

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	invariant = regexp.MustCompile(`(?m)^- \*\*(I\d+) `)
	pitfall   = regexp.MustCompile(`(?m)^\| (P\d{3}) \|`)
)

// ids returns what re finds in a document, each id once.
func ids(t *testing.T, path string, re *regexp.Regexp) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, m := range re.FindAllStringSubmatch(read(t, path), -1) {
		if found[m[1]] {
			t.Errorf("%s explains %s twice", path, m[1])
		}
		found[m[1]] = true
	}
	return found
}

// TestIDs: an id that a test names is explained.
func TestIDs(t *testing.T) {
	explained := ids(t, "design.md", invariant)
	for id := range ids(t, "pitfalls.md", pitfall) {
		explained[id] = true
	}
	if len(explained) < 100 {
		t.Fatalf("%d ids are explained: the documents are not read as meant", len(explained))
	}
	for _, p := range tests(t) {
		for id := range p.ids {
			if !explained[id] {
				t.Errorf("%s names %s, which neither design.md nor pitfalls.md explains", p, id)
			}
		}
	}
}

var (
	proofLine = regexp.MustCompile(`(?m)^  \*(?:Proved by\* .*|No test names it yet\.\*)$`)
	testName  = regexp.MustCompile("`([\\w/]+\\.(?:Test|Fuzz|Example|Benchmark)\\w*)`")
	smokeStep = regexp.MustCompile(`“([^”]+)”`)
)

// TestProofs: a test that a document names exists and names the id in question.
// With -update the documents say what the tests do.
func TestProofs(t *testing.T) {
	all := tests(t)
	if *update {
		rewrite(t, "design.md", func(text string) string { return withProofs(text, all) })
		rewrite(t, "pitfalls.md", func(text string) string { return withStates(text, all) })
	}
	known := map[string]proof{}
	for _, p := range all {
		known[p.String()] = p
	}
	for path, sections := range map[string]map[string]string{
		"design.md":   byInvariant(read(t, "design.md")),
		"pitfalls.md": byPitfall(read(t, "pitfalls.md")),
	} {
		for id, section := range sections {
			for _, m := range testName.FindAllStringSubmatch(section, -1) {
				if p, exists := known[m[1]]; !exists {
					t.Errorf("%s, %s: there is no test %s", path, id, m[1])
				} else if !p.ids[id] {
					t.Errorf("%s, %s: test %s does not name it", path, id, m[1])
				}
			}
		}
	}
	steps := read(t, "../local/smoke/story.go")
	for id, section := range byInvariant(read(t, "design.md")) {
		_, smoke, _ := strings.Cut(section, "  Smoke:")
		for _, m := range smokeStep.FindAllStringSubmatch(smoke, -1) {
			if !strings.Contains(steps, `{Name: "`+m[1]+`", `) {
				t.Errorf("design.md, %s: the smoke script has no step %q", id, m[1])
			}
		}
	}
}

// byInvariant cuts the contract into its invariants.
func byInvariant(text string) map[string]string {
	out := map[string]string{}
	at := invariant.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if next := strings.Index(text[m[0]:end], "\n#"); next >= 0 {
			end = m[0] + next
		}
		out[text[m[2]:m[3]]] = text[m[0]:end]
	}
	return out
}

// byPitfall cuts the tables into their rows.
func byPitfall(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if m := pitfall.FindStringSubmatch(line); m != nil {
			out[m[1]] = line
		}
	}
	return out
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(change(read(t, path))), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withProofs writes the line of each invariant: the tests of elbridge's own
// packages that name it.
func withProofs(text string, all []proof) string {
	for id, section := range byInvariant(text) {
		line := "  *No test names it yet.*"
		if own, _ := naming(all, id); len(own) > 0 {
			line = "  *Proved by* " + strings.Join(own, ", ") + "."
		}
		text = strings.Replace(text, section, proofLine.ReplaceAllLiteralString(section, line), 1)
	}
	return text
}

// withStates writes the tests into the state of each pitfall: before the first
// ";" of the last but one cell, or in place of "later" and "no test names it".
func withStates(text string, all []proof) string {
	for id, row := range byPitfall(text) {
		cells := strings.Split(row, " | ")
		state := &cells[len(cells)-2]
		own, local := naming(all, id)
		var parts []string
		if len(own) > 0 {
			parts = append(parts, "tested: "+strings.Join(own, ", "))
		}
		if len(local) > 0 {
			parts = append(parts, "shown by the local stack: "+strings.Join(local, ", "))
		}
		for part := range strings.SplitSeq(*state, "; ") {
			if !strings.HasPrefix(part, "tested:") && !strings.HasPrefix(part, "shown by") && (part != "no test names it" || len(own) == 0) {
				parts = append(parts, part)
			}
		}
		*state = strings.Join(parts, "; ")
		text = strings.Replace(text, row, strings.Join(cells, " | "), 1)
	}
	return text
}

// naming returns the tests that name an id, those of the local stack apart.
func naming(all []proof, id string) (own, local []string) {
	for _, p := range all {
		name := "`" + p.String() + "`"
		switch {
		case !p.ids[id], !testFunc.MatchString(p.name):
		case strings.HasPrefix(p.dir, "local/"):
			local = append(local, name)
		default:
			own = append(own, name)
		}
	}
	return own, local
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

// TestLinks: files that documents point to exist.
func TestLinks(t *testing.T) {
	for _, path := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", path, m[1], err)
			}
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	found := []string{}
	for _, pattern := range []string{"*.md", "adr/*.md", "../*.md", "../events/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	return found
}

// TestADRs: each record is numbered once and says what a record has to say.
func TestADRs(t *testing.T) {
	paths, err := filepath.Glob("adr/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no records: %v", err)
	}
	var numbers []string
	for _, path := range paths {
		number, _, _ := strings.Cut(filepath.Base(path), "-")
		if slices.Contains(numbers, number) {
			t.Errorf("%s: its number is taken", path)
		}
		numbers = append(numbers, number)
		text := read(t, path)
		if !strings.HasPrefix(text, "# "+number+" ") {
			t.Errorf("%s: want the title %q", path, "# "+number+" …")
		}
		for _, part := range []string{"Context", "Decision", "Given up", "How we would notice"} {
			if !strings.Contains(text, "\n## "+part) {
				t.Errorf("%s: no section %q", path, part)
			}
		}
	}
}
