package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// proof is a test and the ids that its name, comments and cases carry.
type proof struct {
	dir, name string
	ids       map[string]bool
}

func (p proof) String() string { return p.dir + "." + p.name }

var (
	testFunc = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)`)
	// anID stands alone, or between the underscores of a name.
	anID = regexp.MustCompile(`(?:^|[^A-Za-z0-9])(I\d{1,2}|P\d{3})(?:$|[^A-Za-z0-9])`)
	// firstID is one that a name begins with, as in TestP100TokensAreRenewed.
	firstID = regexp.MustCompile(`^(?:Test|Fuzz|Example|Benchmark)_?(I\d{1,2}|P\d{3})`)
)

// skipped folders hold no tests of this module.
var skipped = []string{".git", "bin", "testdata", "cdk.out", "docs"}

// tests returns all tests of the repository, sorted.
func tests(t *testing.T) []proof {
	t.Helper()
	var all []proof
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			found, err := testsOf(path)
			all = append(all, found...)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b proof) int { return strings.Compare(a.String(), b.String()) })
	return all
}

func testsOf(path string) ([]proof, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), ".."+string(filepath.Separator)))
	// What stands outside of tests, in helpers and tables, has to be explained
	// too, and proves nothing by itself.
	whole := proof{dir: dir, name: "(" + filepath.Base(path) + ")", ids: map[string]bool{}}
	whole.takeAll(file, file)
	all := []proof{whole}
	for _, decl := range file.Decls {
		f, isFunc := decl.(*ast.FuncDecl)
		if !isFunc || f.Recv != nil || !testFunc.MatchString(f.Name.Name) {
			continue
		}
		p := proof{dir: dir, name: f.Name.Name, ids: map[string]bool{}}
		p.take(f.Name.Name)
		if m := firstID.FindStringSubmatch(f.Name.Name); m != nil {
			p.ids[m[1]] = true
		}
		if f.Doc != nil {
			p.take(f.Doc.Text())
		}
		p.takeAll(file, f)
		all = append(all, p)
	}
	return all, nil
}

// takeAll notes the ids in the strings and comments of a part of a file.
func (p *proof) takeAll(file *ast.File, part ast.Node) {
	ast.Inspect(part, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			p.take(lit.Value)
		}
		return true
	})
	for _, c := range file.Comments {
		if c.Pos() >= part.Pos() && c.End() <= part.End() {
			p.take(c.Text())
		}
	}
}

// take notes the ids in a text. Those next to each other share a separator, so
// it goes on after each.
func (p *proof) take(text string) {
	text = strings.ReplaceAll(text, "_", " ")
	for {
		m := anID.FindStringSubmatchIndex(text)
		if m == nil {
			return
		}
		p.ids[text[m[2]:m[3]]] = true
		text = text[m[3]:]
	}
}
