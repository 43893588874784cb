package docs_test

import (
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// prefixes are what IAM calls the services of the SDK.
var prefixes = map[string]string{
	"eventbridge": "events", "elasticloadbalancingv2": "elasticloadbalancing", "sqs": "sqs", "eks": "eks", "sts": "sts", "cloudwatchlogs": "logs",
}

// byOthers are actions that no interface of ours shows: the SDK assumes roles, and
// Lambda itself reads the registrar's queue and writes logs.
var byOthers = []string{"sts:AssumeRole", "sqs:GetQueueAttributes", "logs:CreateLogStream", "logs:PutLogEvents", "kms:Decrypt", "kms:GenerateDataKey"}

// calls returns the actions that the interfaces in a folder call: every client of
// the SDK stands behind one.
func calls(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, f := range sources(t, dir) {
		service := map[string]string{} // by the name in the file
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(p, "github.com/aws/aws-sdk-go-v2/service/") || strings.HasSuffix(p, "/types") {
				continue
			}
			name := path.Base(p)
			if i.Name != nil {
				name = i.Name.Name
			}
			service[name] = path.Base(p)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.StarExpr)
			if !ok {
				return true
			}
			in, ok := s.X.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := in.X.(*ast.Ident)
			if action, isInput := strings.CutSuffix(in.Sel.Name, "Input"); ok && isInput && service[pkg.Name] != "" {
				prefix := prefixes[service[pkg.Name]]
				if prefix == "" {
					t.Errorf("%s: what does IAM call the service %s?", dir, service[pkg.Name])
				}
				found[prefix+":"+action] = true
			}
			return true
		})
	}
	return found
}

// TestPermissions: every call of AWS stands in permissions.md, in the table of
// those who make it, and nothing else does.
func TestPermissions(t *testing.T) {
	functions, tool, divided := strings.Cut(read(t, "permissions.md"), "\n## The tool\n")
	if !divided {
		t.Fatal("permissions.md has no section of the tool")
	}
	action := regexp.MustCompile("`([a-z]+:[A-Z][A-Za-z]+)`")
	told := func(text string) map[string]bool {
		out := map[string]bool{}
		for _, m := range action.FindAllStringSubmatch(text, -1) {
			out[m[1]] = true
		}
		return out
	}
	known := map[string]bool{}
	for _, a := range byOthers {
		known[a] = true
	}
	edges := map[string]bool{}
	for _, dir := range []string{"bus", "queue", "targetgroup", "cluster"} {
		made := calls(t, "../pkg/"+dir)
		if len(made) == 0 {
			t.Errorf("pkg/%s calls nothing: it is not read as meant", dir)
		}
		for a := range made {
			edges[a], known[a] = true, true
		}
	}
	own := calls(t, "../cmd/elbridge")
	for a := range calls(t, "../pkg/audit") {
		own[a] = true
	}
	for a := range own {
		known[a] = true
		if !told(tool)[a] {
			t.Errorf("elbridge calls %s, which the tool's section does not name", a)
		}
	}
	const onlyTool = "elasticloadbalancing:DescribeTargetGroupAttributes" // facts are for people
	for a := range edges {
		if a != onlyTool && !told(functions)[a] {
			t.Errorf("an edge calls %s, which the functions' section does not name", a)
		}
	}
	for a := range told(functions + tool) {
		if !known[a] {
			t.Errorf("permissions.md names %s, which nobody calls", a)
		}
	}
	for _, a := range []string{onlyTool, "elasticloadbalancing:AddTags", "events:TagResource", "logs:FilterLogEvents"} {
		if told(functions)[a] || !told(tool)[a] {
			t.Errorf("%s is the tool's alone", a)
		}
	}
}
