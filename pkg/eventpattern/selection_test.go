package eventpattern_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/podevent"
)

func mustParse(t testing.TB, pattern string) *eventpattern.Pattern {
	t.Helper()
	p, err := eventpattern.Parse([]byte(pattern))
	if err != nil {
		t.Fatalf("Parse(%s): %v", pattern, err)
	}
	return p
}

func TestSelection(t *testing.T) {
	tests := map[string]struct {
		pattern string
		want    string // "clusters | namespaces | label selector"; - is any
	}{
		"all three":                {`{"detail":{"cluster":["b","a"],"namespace":["n"],"labels":{"app":["x"]}}}`, "[a b] | [n] | app=x"},
		"none":                     {`{"source":["elbridge"]}`, "- | - | "},
		"several values":           {`{"detail":{"labels":{"b":["y","x"],"a":["z"]}}}`, "- | - | a=z,b in (x,y)"},
		"dots in the key":          {`{"detail":{"labels":{"app.kubernetes.io/name":["x"]}}}`, "- | - | app.kubernetes.io/name=x"},
		"dots as nesting":          {`{"detail":{"labels":{"app":{"kubernetes":{"io/name":["x"]}}}}}`, "- | - | app.kubernetes.io/name=x"},
		"one joined path":          {`{"detail.labels.app.kubernetes.io/name":["x"],"detail.cluster":["a"]}`, "[a] | - | app.kubernetes.io/name=x"},
		"exactly":                  {`{"detail":{"labels":{"a":[{"exactly":"x"},"y"]}}}`, "- | - | a in (x,y)"},
		"empty value":              {`{"detail":{"labels":{"a":[""]}}}`, "- | - | a="},
		"empty value and another":  {`{"detail":{"labels":{"a":["","b"]}}}`, "- | - | a in (,b)"},
		"other operators":          {`{"detail":{"cluster":[{"prefix":"a"}],"namespace":["n",{"suffix":"x"}],"labels":{"a":[{"exists":true}],"b":["x"]}}}`, "- | - | b=x"},
		"or absent":                {`{"detail":{"labels":{"a":["x",{"exists":false}]}}}`, "- | - | "},
		"or null":                  {`{"detail":{"labels":{"a":["x",null]}}}`, "- | - | "},
		"address, many spellings":  {`{"detail":{"labels":{"a":["10.0.0.1"]}}}`, "- | - | "},
		"value that is no label's": {`{"detail":{"labels":{"a":["x y"],"b":["` + strings.Repeat("x", 64) + `"],"c":["-x"],"d":["é"]}}}`, "- | - | "},
		"key that is no label's":   {`{"detail":{"labels":{"":["x"],"a b":["x"],"/a":["x"],"a/":["x"],"a/b/c":["x"],"A.b/c":["x"],"a..b/c":["x"]}}}`, "- | - | "},
		"namespace that is none":   {`{"detail":{"namespace":["N"]}}`, "- | - | "},
		"labels of before":         {`{"detail":{"previous":{"labels":{"a":["x"]}}}}`, "- | - | "},
		"$or beside it":            {`{"detail":{"cluster":["a"],"$or":[{"labels":{"a":["x"]}},{"labels":{"b":["y"]}}]}}`, "[a] | - | "},
		"$or over one field":       {`{"detail":{"$or":[{"cluster":["a"],"labels":{"a":["x"]}},{"cluster":["b"],"labels":{"a":["y"],"b":["z"]}}]}}`, "[a b] | - | a in (x,y)"},
		"the last of two counts":   {`{"detail":{"labels":{"a.b":["x"]}},"detail.labels":{"a":{"b":["y"]}}}`, "- | - | a.b=y"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, tt.pattern).Selection()
			any := func(values []string) string {
				if values == nil {
					return "-"
				}
				return fmt.Sprint(values)
			}
			got := any(s.Clusters) + " | " + any(s.Namespaces) + " | " + s.LabelSelector()
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if _, err := labels.Parse(s.LabelSelector()); err != nil {
				t.Errorf("Kubernetes refuses the selector: %v", err)
			}
		})
	}
}

// A pod that a pattern matches is never lost by what is pushed into the LIST.
func TestSelection_NeverLosesAPod(t *testing.T) {
	keys := rapid.SampledFrom([]string{"app", "app.kubernetes.io/name", "app.kubernetes", "tier", "a.b"})
	values := rapid.SampledFrom([]string{"", "x", "y", "web-1", "10.0.0.1", "010.0.0.1", "10.0.0.2"})
	names := rapid.SampledFrom([]string{"a", "b", "10.0.0.1"})
	list := func(t *rapid.T, of *rapid.Generator[string]) string {
		quoted := func(s string) string { return `"` + s + `"` }
		alternative := rapid.OneOf(rapid.Map(of, quoted), rapid.Map(of, quoted), rapid.SampledFrom([]string{
			`{"exists":false}`, `{"prefix":"1"}`, `{"anything-but":"x"}`, `null`, `{"exactly":"x"}`,
		}))
		return "[" + strings.Join(rapid.SliceOfN(alternative, 1, 3).Draw(t, "values"), ",") + "]"
	}
	label := func(t *rapid.T) string {
		key := keys.Draw(t, "key")
		v := list(t, values)
		if first, rest, ok := strings.Cut(key, "."); ok && rapid.Bool().Draw(t, "nested") {
			return `"labels":{"` + first + `":{"` + rest + `":` + v + `}}`
		}
		return `"labels.` + key + `":` + v
	}
	field := func(t *rapid.T) string {
		switch rapid.IntRange(0, 3).Draw(t, "field") {
		case 0:
			return `"cluster":` + list(t, names)
		case 1:
			return `"namespace":` + list(t, names)
		}
		return label(t)
	}
	rapid.Check(t, func(t *rapid.T) {
		members := []string{field(t), field(t)}
		if rapid.Bool().Draw(t, "or") {
			members = append(members, `"$or":[{`+field(t)+`},{`+field(t)+`,`+field(t)+`}]`)
		}
		pattern := `{"detail":{` + strings.Join(members, ",") + `}}`
		p, err := eventpattern.Parse([]byte(pattern))
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		cluster := names.Draw(t, "cluster")
		pod := podevent.Pod{
			Namespace: names.Draw(t, "namespace"), Name: "p", UID: "u",
			Labels: rapid.MapOf(keys, values).Draw(t, "labels"),
			PodIPs: []string{"10.64.1.7"},
		}
		match, err := p.Match(eventOf(t, cluster, &pod))
		if err != nil {
			t.Fatal(err)
		}
		if match && !admits(t, p.Selection(), cluster, &pod) {
			t.Fatalf("pattern %s matches the pod %+v, but %+v leaves it out", pattern, pod, p.Selection())
		}
	})
}

// fatal is what testing.TB and rapid.T have in common here.
type fatal interface{ Fatal(args ...any) }

func eventOf(t fatal, cluster string, pod *podevent.Pod) []byte {
	e, err := podevent.FromPod(cluster, pod, nil, time.Unix(1e9, 0)).Envelope("id", "111122223333", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := e.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// admits reports whether a LIST with the selection returns the pod.
func admits(t fatal, s eventpattern.Selection, cluster string, pod *podevent.Pod) bool {
	selector, err := labels.Parse(s.LabelSelector())
	if err != nil {
		t.Fatal(err)
	}
	return (s.Clusters == nil || slices.Contains(s.Clusters, cluster)) &&
		(s.Namespaces == nil || slices.Contains(s.Namespaces, pod.Namespace)) &&
		selector.Matches(labels.Set(pod.Labels))
}
