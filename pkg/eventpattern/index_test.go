package eventpattern

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A large set, in which an index stands between event and patterns, finds what
// the patterns find one by one.
func TestSet_AgreesWithPatterns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{"a", "b", "a.b"}
		wide := rapid.Bool().Draw(t, "wide") // more paths than the event has values
		if wide {
			for i := range 30 {
				keys = append(keys, fmt.Sprintf("k%d", i))
			}
		}
		condition := func() string {
			var values []string
			for range rapid.IntRange(1, 2).Draw(t, "values") {
				values = append(values, drawAlternative(t))
			}
			return quote(rapid.SampledFrom(keys).Draw(t, "path")) + ":[" + strings.Join(values, ",") + "]"
		}
		var patterns []*Pattern
		for range rapid.IntRange(1, 40).Draw(t, "patterns") {
			var conditions []string
			for range rapid.IntRange(1, 3).Draw(t, "conditions") {
				conditions = append(conditions, condition())
			}
			if p, err := Parse([]byte("{" + strings.Join(conditions, ",") + "}")); err == nil {
				patterns = append(patterns, p)
			}
		}
		set := NewSet(patterns)
		for range 3 {
			var members []string
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				members = append(members, quote(rapid.SampledFrom(keys).Draw(t, "key"))+":"+drawEvent(t, 2, false))
			}
			event := "{" + strings.Join(members, ",") + "}"
			e, err := ParseEvent([]byte(event))
			if err != nil {
				t.Fatal(err)
			}
			var want []int
			for i, p := range patterns {
				if p.Matches(e) {
					want = append(want, i)
				}
			}
			if got := set.Matches(e); !slices.Equal(got, want) {
				t.Fatalf("event %s, patterns %v: the set says %v, the patterns %v", event, patterns, got, want)
			}
			if got, err := set.Match([]byte(event)); !slices.Equal(got, want) || err != nil {
				t.Fatalf("event %s, patterns %v: the set says %v, %v, the patterns %v", event, patterns, got, err, want)
			}
		}
	})
}

// Whatever a character's forms are, the index finds them under one key.
func TestAppendFolded_EveryForm(t *testing.T) {
	for r := rune(0); r <= 0xffff; r++ {
		if 0xd800 <= r && r <= 0xdfff {
			continue
		}
		text := foldText("x" + string(r))
		for _, form := range []string{upperForm(r), lowerForm(r)} {
			if got := string(appendFolded(nil, "X"+form)); got != text.key() || !text.equals("X"+form) {
				t.Errorf("%U: the key of %q is %q, that of the pattern %q", r, form, got, text.key())
			}
		}
	}
}

// How many branches are tried for an event does not grow with rules that have
// nothing to do with it, whatever operator tells them apart.
func TestSet_TriesFew(t *testing.T) {
	tests := map[string]struct{ condition, value string }{
		"exact":              {`"v%d"`, `"v7"`},
		"number":             {`%d`, `7`},
		"number, spelled":    {`1e40%d`, `1e407`},
		"address":            {`"10.0.0.%d"`, `"10.0.0.7"`},
		"prefix":             {`{"prefix":"v%d-"}`, `"v7-x"`},
		"suffix":             {`{"suffix":"-v%d"}`, `"x-v7"`},
		"prefix, any case":   {`{"prefix":{"equals-ignore-case":"V%d-"}}`, `"v7-X"`},
		"suffix, any case":   {`{"suffix":{"equals-ignore-case":"-V%d"}}`, `"X-v7"`},
		"equal, any case":    {`{"equals-ignore-case":"V%d"}`, `"v7"`},
		"wildcard, begin":    {`{"wildcard":"v%d-*-*"}`, `"v7-x-y"`},
		"wildcard, end":      {`{"wildcard":"v-*-%d"}`, `"v-x-7"`},
		"wildcard, no star":  {`{"wildcard":"v%d"}`, `"v7"`},
		"numeric, equal":     {`{"numeric":["=",%d]}`, `7`},
		"numeric, range":     {`{"numeric":[">=",%[1]d,"<",%[1]d.5]}`, `7`},
		"cidr":               {`{"cidr":"10.%d.0.0/16"}`, `"10.7.1.1"`},
		"cidr, IPv6":         {`{"cidr":"fd00:%d::/64"}`, `"fd00:7::1"`},
		"two alternatives":   {`{"prefix":"w%[1]d-"},{"numeric":["=",%[1]d]}`, `7`},
		"anything-but, text": {`{"anything-but":["v7","x%d"]}`, `"v7"`},
		"anything-but":       {`{"anything-but":[7,%d]}`, `7`},
		"beside another one": {`{"prefix":"v%d-"}],"z":[{"exists":false}`, `"v7-x"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var patterns []*Pattern
			for i := range 200 {
				p, err := Parse(fmt.Appendf(nil, `{"source":["e"],"a":[`+tt.condition+`]}`, i))
				if err != nil {
					t.Fatal(err)
				}
				patterns = append(patterns, p)
			}
			s := NewSet(patterns)
			e, err := ParseEvent([]byte(`{"source":"e","a":` + tt.value + `}`))
			if err != nil {
				t.Fatal(err)
			}
			m := s.memos.New().(*memo)
			s.match(e, m, nil)
			tried := 0
			for _, event := range m.branches {
				if event != 0 {
					tried++
				}
			}
			if tried > 2 {
				t.Errorf("%d of 200 rules were tried", tried)
			}
		})
	}
}
