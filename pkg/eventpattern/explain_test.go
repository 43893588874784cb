package eventpattern

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func explain(t testing.TB, pattern, event string) (*Pattern, *Event, Explanation) {
	t.Helper()
	p, err := Parse([]byte(pattern))
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEvent([]byte(event))
	if err != nil {
		t.Fatal(err)
	}
	return p, e, p.Explain(e)
}

func TestExplain(t *testing.T) {
	tests := map[string]struct{ pattern, event, want string }{
		"match":                     {`{"source":["elbridge"],"d":{"n":[{"numeric":[">",1]}]}}`, `{"source":"elbridge","d":{"n":2.50}}`, `match: source is "elbridge", d.n is 2.50`},
		"match of absence":          {`{"a":["x"],"b":[{"exists":false}]}`, `{"a":"x"}`, `match: a is "x", b is absent`},
		"match, the value of many":  {`{"a":["x"]}`, `{"a":["w","x","y"]}`, `match: a is "x"`},
		"match in an element":       {`{"m":{"a":[1],"b":[{"exists":false}]}}`, `{"m":[{"a":2},{"a":1}]}`, `match: m.a is 1 (m[1].a), m.b is absent`},
		"match, absent elsewhere":   {`{"m":{"a":[1],"b":[{"exists":false}]}}`, `{"m":[{"b":2},{"a":1}]}`, `match: m.a is 1 (m[1].a), m.b is absent there`},
		"match of a branch":         {`{"d":{"$or":[{"a":["x"]},{"b":["y"]}]}}`, `{"d":{"b":"y"}}`, `match: d.$or[1], d.b is "y"`},
		"another value":             {`{"a":["x",{"prefix":"y"}]}`, `{"a":"z"}`, `no match: a is "z", want ["x",{"prefix":"y"}]`},
		"as the pattern spells it":  {`{"a": [ 3.0e2 , "\u0078" ]}`, `{"a":3e1}`, `no match: a is 3e1, want [3.0e2,"\u0078"]`},
		"on one line":               {"{\"a\\n\":[\n\"x\"\n]}", `{"a\n":"y\tz"}`, `no match: "a\u000a" is "y\u0009z", want ["x"]`},
		"absent":                    {`{"a":{"b":["x"]}}`, `{"a":{"c":"x"}}`, `no match: a.b is absent, want ["x"]`},
		"there":                     {`{"a":[{"exists":false}]}`, `{"a":null}`, `no match: a is null, want [{"exists":false}]`},
		"an object there":           {`{"a":[{"exists":true}]}`, `{"a":{"b":1}}`, `no match: a is absent (an object stands there, and only scalars count), want [{"exists":true}]`},
		"an empty object there":     {`{"a":[{"exists":true}]}`, `{"a":{}}`, `no match: a is absent, want [{"exists":true}]`},
		"many values":               {`{"a":["x"]}`, `{"a":[1,true,"y"]}`, `no match: a is 1 and true and "y", want ["x"]`},
		"very many values":          {`{"a":["x"]}`, `{"a":[1,2,3,4,5,6,7,8,9,10,11]}`, `no match: a is 1 and 2 and 3 and 4 and 5 and 6 and 7 and 8 and 3 more, want ["x"]`},
		"the pattern's order":       {`{"z":["x"],"a":["x"]}`, `{}`, `no match: z is absent, want ["x"]`},
		"the second one":            {`{"z":["x"],"y":["x"],"a":["x"]}`, `{"z":"x","a":"y","y":"w"}`, `no match: y is "w", want ["x"]`},
		"the last spelling counts":  {`{"a":{"b":["x"]},"c":["x"],"a.b":["y"]}`, `{"a":{"b":"x"},"c":"z"}`, `no match: c is "z", want ["x"]`},
		"characters":                {`{"a":["x"]}`, `{"a":"\"\\\n\u007fé😀"}`, "no match: a is \"\\\"\\\\\\u000a\\u007fé😀\", want [\"x\"]"},
		"in no one element":         {`{"p":{"name":["http"],"port":[80]}}`, `{"p":[{"name":"http","port":81},{"name":"x","port":80}]}`, `no match: no array element has p.port [80] (p[1].port) together with p.name ["http"] (p[0].name)`},
		"in no one, others between": {`{"p":{"name":["http"]},"q":["x"],"p.port":[80]}`, `{"q":"x","p":[[{"name":"http"}],[{"port":80}]]}`, `no match: no array element has p.port [80] (p[1][0].port) together with p.name ["http"] (p[0][0].name)`},
		"other arrays are no cause": {`{"q":{"x":[1]},"p":{"name":["http"],"port":[80]}}`, `{"q":[{"x":1}],"p":[{"name":"http"},{"port":80}]}`, `no match: no array element has p.port [80] (p[1].port) together with p.name ["http"] (p[0].name)`},
		"apart, before what fails":  {`{"p":{"a":[1],"b":[2]},"z":["x"]}`, `{"p":[{"a":1},{"b":2}],"z":"y"}`, `no match: no array element has p.b [2] (p[1].b) together with p.a [1] (p[0].a)`},
		"must be absent beside it":  {`{"p":{"a":[1],"b":[{"exists":false}]}}`, `{"p":[{"a":1,"b":2},{"c":3}]}`, `no match: p.b is 2 (p[0].b), want [{"exists":false}]`},
		"$or, the furthest first":   {`{"d":{"$or":[{"a":["x"]},{"b":["y"],"c":["z"]}]}}`, `{"d":{"b":"y","c":"w"}}`, `no match in any branch of $or, furthest came d.$or[1]: d.c is "w", want ["z"]; d.$or[0]: d.a is absent, want ["x"]`},
		"$or in $or":                {`{"$or":[{"a":["x"]},{"d":{"$or":[{"b":["y"]},{"c":["z"]}]}}]}`, `{"a":1,"d":{"c":2}}`, `no match in any branch of $or, furthest came $or[0]: a is 1, want ["x"]; $or[1], d.$or[0]: d.b is absent, want ["y"]; $or[1], d.$or[1]: d.c is 2, want ["z"]`},
		"before the $or":            {`{"s":["e"],"$or":[{"a":["x"]},{"b":["y"]}]}`, `{"s":"f"}`, `no match: s is "f", want ["e"]`},
		"more of them":              {`{"$or":[{"a":[1]},{"a":[2]},{"a":[3]},{"a":[4]},{"a":[5]},{"a":[6]}]}`, `{"a":0}`, `no match in any branch of $or, furthest came $or[0]: a is 0, want [1]; $or[1]: a is 0, want [2]; $or[2]: a is 0, want [3]; $or[3]: a is 0, want [4]; and 2 more`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, x := explain(t, tt.pattern, tt.event)
			if got := x.String(); got != tt.want {
				t.Errorf("pattern %s\nevent   %s\ngot  %s\nwant %s", tt.pattern, tt.event, got, tt.want)
			}
		})
	}
}

// Every explanation of a failure is one: the conditions before the failed one hold
// together, with it they do not, and what is said about each condition is true.
func checkExplanation(t interface{ Fatalf(string, ...any) }, p *Pattern, e *Event) {
	x := p.Explain(e)
	if x.Match != p.Matches(e) {
		t.Fatalf("pattern %s: Explain says %v, Matches %v", p, x.Match, !x.Match)
	}
	if len(x.Attempts) == 0 || len(x.Attempts) > MaxAttempts || !x.Match && len(x.Attempts)+x.Omitted != len(p.branches) {
		t.Fatalf("pattern %s: %d attempts, %d omitted", p, len(x.Attempts), x.Omitted)
	}
	if text := x.String(); strings.HasPrefix(text, "match: ") != x.Match || strings.HasPrefix(text, "no match") == x.Match {
		t.Fatalf("pattern %s: the text is %q", p, text)
	}
	for _, a := range x.Attempts {
		b := p.named(a)
		if b == nil {
			t.Fatalf("pattern %s has no branch %q", p, a.Branch)
		}
		tr := newTrial(b)
		if len(a.Findings) != len(tr.conditions) || (a.Failed < 0) != x.Match || a.Failed >= len(a.Findings) {
			t.Fatalf("pattern %s: %+v", p, a)
		}
		for i, c := range tr.conditions {
			f := a.Findings[i]
			if f.Path != c.path || f.Condition != compact(c.source) || i > 0 && c.offset <= tr.conditions[i-1].offset {
				t.Fatalf("pattern %s: finding %d is %+v", p, i, f)
			}
			if single := (&branch{conditions: []*condition{c}}); !x.Match && f.Holds != single.matches(e, nil) {
				t.Fatalf("pattern %s: finding %d is %+v", p, i, f)
			}
			if (len(f.Values) == 0) != (e.first(c.path, c.hash) == none) || len(f.Values) > MaxValues {
				t.Fatalf("pattern %s: finding %d is %+v", p, i, f)
			}
		}
		if !x.Match && (!tr.together(e, a.Failed) || tr.together(e, a.Failed+1)) {
			t.Fatalf("pattern %s: condition %d is not the first that fails", p, a.Failed)
		}
		if !x.Match && slices.ContainsFunc(a.Apart, func(i int) bool { return i >= a.Failed }) {
			t.Fatalf("pattern %s: %+v", p, a)
		}
	}
}

// named returns the branch that an attempt tells of.
func (p *Pattern) named(a Attempt) *branch {
	for i := range p.branches {
		if p.branches[i].choice.String() == a.Branch && len(p.branches[i].conditions) == len(a.Findings) {
			return &p.branches[i]
		}
	}
	return nil
}

func TestExplain_AgreesWithMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := Parse([]byte(drawPattern(t, 2)))
		if err != nil {
			return
		}
		for range 3 {
			e, err := ParseEvent([]byte(drawEvent(t, 4, true)))
			if err != nil {
				t.Fatal(err)
			}
			checkExplanation(t, p, e)
		}
	})
}

func FuzzExplain(f *testing.F) {
	for _, s := range seeds {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, event string) {
		if len(pattern) > 1000 || len(event) > 2000 {
			return
		}
		p, err := Parse([]byte(pattern))
		if err != nil {
			return
		}
		e, err := ParseEvent([]byte(event))
		if err != nil {
			return
		}
		checkExplanation(t, p, e)
	})
}

// An explanation is short, whatever the pattern and the event are.
func TestExplain_Bounded(t *testing.T) {
	or := func(field string) string {
		var b []string
		for i := range 10 {
			b = append(b, fmt.Sprintf(`{"%s%d":["%s"]}`, field, i, strings.Repeat("é", 20)))
		}
		return `{"$or":[` + strings.Join(b, ",") + `]}`
	}
	tests := map[string][2]string{
		"1000 combinations": {`{"a":` + or("a") + `,"b":` + or("b") + `,"c":` + or("c") + `}`, `{"a":{"a0":1}}`},
		"long value":        {`{"a":["x"]}`, `{"a":"` + strings.Repeat("é", 5<<20) + `"}`},
		"many values":       {`{"a":["x"]}`, `{"a":[` + strings.Repeat(`1,`, 100_000) + `1]}`},
		"many elements":     {`{"m":{"a":["x"],"b":["y"]}}`, `{"m":[` + strings.Repeat(`{"a":"x","b":"z"},{"b":"y"},`, 50_000) + `{"a":"x"}]}`},
		"long path":         {`{"m":{"a":["x"]}}`, `{"m":[[{"a":{"` + strings.Repeat("k", 1<<20) + `":1}}]]}`},
		"1000 levels":       {`{"a":["x"]}`, strings.Repeat(`{"a":[`, 500) + `"x"` + strings.Repeat(`]}`, 500)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, x := explain(t, tt[0], tt[1])
			raw, err := json.Marshal(x)
			if err != nil || len(raw) > 64<<10 || len(x.String()) > 4<<10 {
				t.Errorf("%d bytes as JSON, %d as text, error %v", len(raw), len(x.String()), err)
			}
		})
	}
}
