package eventpattern

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated is what a function allocates, in bytes, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func repeat(n int, item func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	return b.String()
}

// hugeEvents are as bad as an event can be, in several ways.
func hugeEvents() map[string]string {
	const mb = 1 << 20
	return map[string]string{
		"10 MB, one string":     `{"a":"` + strings.Repeat("x", 10*mb) + `"}`,
		"10 MB, escapes":        `{"a":"` + strings.Repeat(`\n`, 5*mb) + `"}`,
		"10 MB, keys":           `{` + repeat(600_000, func(i int) string { return fmt.Sprintf(`"key%d":"v%d"`, i, i) }) + `}`,
		"100,000 keys":          `{` + repeat(100_000, func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i) }) + `}`,
		"100,000 keys, nested":  `{` + repeat(100_000, func(i int) string { return fmt.Sprintf(`"k%d":{"a":[{"b":1}]}`, i) }) + `}`,
		"1000 levels":           strings.Repeat(`{"a":`, 1001) + `1` + strings.Repeat("}", 1001),
		"1000 levels, arrays":   `{"a":` + strings.Repeat(`[`, 1000) + `1` + strings.Repeat("]", 1000) + `}`,
		"1000 levels, wide":     strings.Repeat(`{"b":1,"c":[1,2,3],"a":`, 1000) + `1` + strings.Repeat("}", 1000),
		"200,000 scalars":       `{"a":[` + strings.Repeat("1,", 200_000) + `1]}`,
		"300,000 empty ones":    `{"a":[` + strings.Repeat("[],", 300_000) + `[]]}`,
		"100,000 nested":        `{"a":[` + strings.Repeat("[1],", 100_000) + `1]}`,
		"long numbers":          `{"a":[` + strings.Repeat(strings.Repeat("9", 1000)+",", 5000) + `1e999999999999999999999]}`,
		"key of a megabyte":     `{"` + strings.Repeat("k", mb) + `":{` + repeat(50_000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}}`,
		"a key again and again": `{` + strings.Repeat(`"a":[{"a":1}],`, 50_000) + `"a":1}`,
	}
}

// Events cost memory in proportion to their size, whatever is in them. An array of
// one-digit numbers is the worst: two bytes become a field.
func TestParseEvent_Memory(t *testing.T) {
	set := NewSet([]*Pattern{mustCompile(t, `{"a":["y",{"prefix":{"equals-ignore-case":"Y"}}],"k7":[{"exists":true}]}`)})
	for name, event := range hugeEvents() {
		t.Run(name, func(t *testing.T) {
			text := []byte(event)
			most := 200*uint64(len(text)) + 1<<20
			if got := allocated(func() {
				if _, err := ParseEvent(text); err != nil {
					t.Error(err)
				}
			}); got > most {
				t.Errorf("ParseEvent of %d bytes allocates %d", len(text), got)
			}
			if got := allocated(func() {
				if hits, err := set.Match(text); err != nil || len(hits) > 0 {
					t.Error(hits, err)
				}
			}); got > most {
				t.Errorf("Match of %d bytes allocates %d", len(text), got)
			}
		})
	}
}

func mustCompile(t testing.TB, text string) *Pattern {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Beyond any event that a service delivers there is an end.
func TestParseEvent_TooManyItems(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some hundred megabytes")
	}
	for name, event := range map[string]string{
		"keys":     `{` + strings.Repeat(`"a":1,`, MaxEventItems/2) + `"a":1}`,
		"elements": `{"a":[` + strings.Repeat("[1],", MaxEventItems/2) + `1]}`,
	} {
		if _, err := ParseEvent([]byte(event)); err == nil || !strings.Contains(err.Error(), "more than 2097152 keys and values") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	// What no pattern looks at counts for nothing.
	s := NewSet([]*Pattern{mustCompile(t, `{"b":[1]}`)})
	if hits, err := s.Match([]byte(`{"a":[` + strings.Repeat("1,", MaxEventItems) + `1],"b":1}`)); err != nil || len(hits) != 1 {
		t.Errorf("%v, %v", hits, err)
	}
}

// Patterns within the limits cost bounded memory, parsed and in a set.
func TestParse_Memory(t *testing.T) {
	or := func(n int, path string) string {
		return `"$or":[` + repeat(n, func(i int) string { return fmt.Sprintf(`{"%s%d":["x"]}`, path, i) }) + `]`
	}
	fill := func(pattern, item string) string {
		var b strings.Builder
		b.WriteString(`{` + pattern)
		for i := 0; b.Len() < MaxPatternLength-40; i++ {
			fmt.Fprintf(&b, item, i)
		}
		return strings.TrimSuffix(b.String(), ",") + `}`
	}
	for name, text := range map[string]string{
		"1000 combinations, many fields after":  fill(`"x":{`+or(10, "a")+`},"y":{`+or(10, "a")+`},"z":{`+or(10, "a")+`},`, `"f%d":["x"],`),
		"1000 combinations, many fields before": `{` + repeat(250, func(i int) string { return fmt.Sprintf(`"f%d":["x"]`, i) }) + `,"x":{` + or(10, "a") + `},"y":{` + or(10, "a") + `},"z":{` + or(10, "a") + `}}`,
		"deep $or":                              strings.Repeat(`{"$or":[{"a":[1]},`, 200) + `{"b":[1]}` + strings.Repeat("]}", 200),
		"nested deeply":                         strings.Repeat(`{"a":`, 680) + `[1]` + strings.Repeat("}", 680),
		"many prefixes":                         fill(``, `"f%[1]d":[{"prefix":"%[1]d"}],`),
		"one field, many values":                fill(`"a":[1`, `,%d`)[:4000] + `]}`,
		"stars":                                 `{"a":[{"wildcard":"` + strings.Repeat("*x", MaxWildcards) + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var p *Pattern
			if got := allocated(func() {
				var err error
				if p, err = Parse([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}); got > 64<<20 {
				t.Errorf("Parse allocates %d bytes", got)
			}
			if got := allocated(func() { NewSet([]*Pattern{p}) }); got > 64<<20 {
				t.Errorf("NewSet allocates %d bytes", got)
			}
			if got := allocated(func() { p.Selection() }); got > 16<<20 {
				t.Errorf("Selection allocates %d bytes", got)
			}
		})
	}
}

// The search for array elements ends after a number of steps, whatever the event.
func TestSearch_Steps(t *testing.T) {
	p := mustCompile(t, `{`+repeat(9, func(i int) string { return fmt.Sprintf(`"m%d":{"a":[1]}`, i) })+`,"z":{"a":[1],"b":[{"exists":false}]}}`)
	e, err := ParseEvent([]byte(`{` + repeat(9, func(i int) string {
		return fmt.Sprintf(`"m%d":[%s]`, i, repeat(50, func(int) string { return `{"a":1}` }))
	}) + `,"z":[{"a":1,"b":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := searcher{event: e, conditions: p.branches[0].conditions, chosen: map[int32]int32{}, steps: maxSearchSteps}
	if s.from(0) {
		t.Error("found")
	}
	if s.steps > 0 || s.steps < -100 {
		t.Errorf("%d steps left", s.steps)
	}
}
