package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources parses the files of a package, tests left out.
func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	var files []*ast.File
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// constants returns the string constants of a package whose names match.
func constants(t *testing.T, dir string, name *regexp.Regexp) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, f := range sources(t, dir) {
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, n := range v.Names {
					if i >= len(v.Values) || !name.MatchString(n.Name) {
						continue
					}
					if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						found[n.Name] = unquote(t, lit)
					}
				}
			}
		}
	}
	return found
}

func unquote(t *testing.T, lit *ast.BasicLit) string {
	t.Helper()
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var metricName = regexp.MustCompile("`((?:elbridge_[a-z_]+)|(?:[a-z_]+_(?:total|seconds|held|overdue|invalid|unbound|unread|flapping)))`")

// TestMetrics: metrics.md has every name that the code fixes, and no metric that
// it does not have.
func TestMetrics(t *testing.T) {
	text := read(t, "metrics.md")
	known := map[string]bool{}
	for dir, name := range map[string]string{
		"../pkg/telemetry": `.`,
		"../pkg/webhook":   `^(Metric|Env|result|cause|eviction)[A-Z]`,
		"../pkg/registrar": `^(Done|Moot|RuleGone|Refused|Expired|Foreign|Malformed|Invalid|Replayed|Spared|Unsettled|Unreachable|Unauthorized|Throttled|Quota|Held)$`,
		"../pkg/plan":      `^(LoadBalancer|OtherOwner|PodEnded|PodGone|Deselected|Emptied|Approved)$`,
		"../pkg/queue":     `^Attribute`,
		"../pkg/drift":     `^(Missing|DrainingWanted|Extra|WrongPort|UnhealthyUnclaimed|Emptied|WrongZone|ZoneOff|NoListener|GroupDeleted|Unbound|Flapping)$`,
	} {
		for name, value := range constants(t, dir, regexp.MustCompile(name)) {
			known[value] = true
			if !strings.Contains(text, "`"+value+"`") {
				t.Errorf("metrics.md lacks `%s`, constant %s of %s", value, name, dir[3:])
			}
		}
	}
	for _, dir := range []string{"../pkg/reconcile", "../pkg/registrar", "../pkg/resync", "../pkg/webhook"} {
		for _, key := range logKeys(t, dir) {
			known[key] = true
			if !strings.Contains(text, "`"+key+"`") {
				t.Errorf("metrics.md lacks the log key `%s` of %s", key, dir[3:])
			}
		}
	}
	for _, m := range metricName.FindAllStringSubmatch(text, -1) {
		if !known[m[1]] {
			t.Errorf("metrics.md has `%s`, which the code doesn't", m[1])
		}
	}
}

var (
	logMethod = regexp.MustCompile(`^(Debug|Info|Warn|Error)(Context)?$`)
	logAttr   = regexp.MustCompile(`^(String|Int|Float64|Bool|Duration|Any)$`)
)

// logKeys returns the keys of a package's log lines: those of slog's attributes,
// and every second argument after the message.
func logKeys(t *testing.T, dir string) []string {
	t.Helper()
	var keys []string
	for _, f := range sources(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			if !isCall {
				return true
			}
			sel, isSel := call.Fun.(*ast.SelectorExpr)
			if !isSel {
				return true
			}
			args := call.Args
			switch x, _ := sel.X.(*ast.Ident); {
			case x != nil && x.Name == "slog" && logAttr.MatchString(sel.Sel.Name):
				args = args[:1]
			case x != nil && x.Name == "http": // http.Error
				return true
			case logMethod.MatchString(sel.Sel.Name) && len(args) > 0:
				if strings.HasSuffix(sel.Sel.Name, "Context") {
					args = args[1:]
				}
				args = args[1:]
			default:
				return true
			}
			for i := 0; i < len(args); i += 2 {
				if lit, ok := args[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					keys = append(keys, unquote(t, lit))
				}
			}
			return true
		})
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
