package picture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/resync/picture"
)

func spellScopes(sel []eventpattern.Selection) string {
	var out []string
	for _, s := range picture.Scopes(sel) {
		out = append(out, s.Namespace+"["+s.LabelSelector+"]")
	}
	return strings.Join(out, " ")
}

func TestScopes(t *testing.T) {
	many := func(n int, detail string) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(detail, i))
		}
		return out
	}
	long := strings.Repeat("x", 60)
	tests := map[string]struct {
		patterns []string
		want     string
	}{
		"none":                                 {nil, ""},
		"every pod":                            {[]string{`{"cluster":["prod"]}`}, "[]"},
		"one label":                            {[]string{`{"labels":{"app":["web"]}}`}, "[app=web]"},
		"the same label of two":                {[]string{`{"labels":{"app":["web"]}}`, `{"labels":{"app":["api","web"],"tier":["x"]}}`}, "[app in (api,web)]"},
		"other labels":                         {[]string{`{"labels":{"app":["web"]}}`, `{"labels":{"tier":["x"]}}`}, "[]"},
		"a label that only one restricts":      {[]string{`{"labels":{"app":["web"],"tier":["x"]}}`, `{"labels":{"tier":["y"]}}`}, "[tier in (x,y)]"},
		"a label by prefix":                    {[]string{`{"labels":{"app":["web"]}}`, `{"labels":{"app":[{"prefix":"a"}]}}`}, "[]"},
		"a label that may be absent":           {[]string{`{"labels":{"app":["web",{"exists":false}]}}`}, "[]"},
		"namespaces":                           {[]string{`{"namespace":["b"],"labels":{"app":["web"]}}`, `{"namespace":["a","b"],"labels":{"app":["api"]}}`}, "a[app=api] b[app in (api,web)]"},
		"labels of one namespace's alone":      {[]string{`{"namespace":["a"],"labels":{"app":["web"]}}`, `{"namespace":["b"]}`}, "a[app=web] b[]"},
		"one without a namespace":              {[]string{`{"namespace":["a"],"labels":{"app":["web"]}}`, `{"labels":{"app":["api"]}}`}, "[app in (api,web)]"},
		"as many namespaces as have a stream":  {many(8, `{"namespace":["n%d"]}`), "n0[] n1[] n2[] n3[] n4[] n5[] n6[] n7[]"},
		"more namespaces":                      {many(9, `{"namespace":["n%d"]}`), "[]"},
		"a selector of any length is too long": {many(40, `{"labels":{"app":["`+long+`%d"],"tier":["x"]}}`), "[tier=x]"},
		"either of two labels":                 {[]string{`{"$or":[{"labels":{"app":["web"]}},{"labels":{"tier":["x"]}}]}`}, "[]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var sel []eventpattern.Selection
			for _, p := range tt.patterns {
				sel = append(sel, parse(t, p).Selection())
			}
			if got := spellScopes(sel); got != tt.want {
				t.Errorf("scopes %s, want %s", got, tt.want)
			}
		})
	}
}

// drawMember draws an entry of a pattern for a field.
func drawMember(t *rapid.T, key string, values []string) string {
	value := func() string { return fmt.Sprintf("%q", rapid.SampledFrom(values).Draw(t, "value")) }
	test := rapid.SampledFrom([]string{"%s", "%s", "%s,%s", `{"prefix":%s}`, `{"anything-but":[%s]}`, `{"exists":false}`, `%s,{"exists":false}`, `{"equals-ignore-case":%s}`}).Draw(t, "test")
	for strings.Contains(test, "%s") {
		test = strings.Replace(test, "%s", value(), 1)
	}
	return fmt.Sprintf("%q:[%s]", key, test)
}

// drawDetail draws what a pattern says of namespace and labels, or of either.
func drawDetail(t *rapid.T, depth int) string {
	var members, labels []string
	if rapid.IntRange(0, 2).Draw(t, "namespace") > 0 {
		members = append(members, drawMember(t, "namespace", []string{"a", "b", "c"}))
	}
	for _, key := range []string{"app", "tier"} {
		if rapid.Bool().Draw(t, key) {
			labels = append(labels, drawMember(t, key, []string{"x", "y", "", "X"}))
		}
	}
	if len(labels) > 0 {
		members = append(members, `"labels":{`+strings.Join(labels, ",")+`}`)
	}
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "or") == 0 {
		members = append(members, `"$or":[`+drawDetail(t, 0)+","+drawDetail(t, 0)+"]")
	}
	if len(members) == 0 {
		members = []string{`"cluster":["prod"]`}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func drawLabels(t *rapid.T) map[string]string {
	out := map[string]string{}
	for _, key := range []string{"app", "tier"} {
		if v := rapid.SampledFrom([]string{"-", "x", "y", "", "X", "z"}).Draw(t, "label"); v != "-" {
			out[key] = v
		}
	}
	return out
}

// Whatever a pattern selects is in exactly one scope.
func TestScopesLeaveNothingOut_I8(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var patterns []*eventpattern.Pattern
		var sel []eventpattern.Selection
		for range rapid.IntRange(1, 4).Draw(rt, "patterns") {
			p, err := eventpattern.Parse([]byte(`{"detail":` + drawDetail(rt, 1) + `}`))
			if err != nil {
				rt.Fatal(err)
			}
			patterns, sel = append(patterns, p), append(sel, p.Selection())
		}
		scopes := picture.Scopes(sel)
		for range 8 {
			p := podevent.Pod{Namespace: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "of"), Labels: drawLabels(rt)}
			ev := podevent.FromPod("prod", &p, nil, time.Unix(1e9, 0))
			e, err := podmatch.Event(&ev, podmatch.Envelope{})
			if err != nil {
				rt.Fatal(err)
			}
			in := 0
			for _, s := range scopes {
				if admits(s, &p) {
					in++
				}
			}
			for _, pattern := range patterns {
				if pattern.Matches(e) && in != 1 {
					rt.Fatalf("%s selects pod of %s with %v, which %d of the scopes %s admit; want one", pattern, p.Namespace, p.Labels, in, spellScopes(sel))
				}
			}
		}
	})
}
