package eventpattern_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

func TestParseEvent_Errors(t *testing.T) {
	tests := map[string]struct{ event, want string }{
		"empty":              {"", "the end of the text where the event's object belongs"},
		"an array":           {"[]", "an array where the event's object belongs"},
		"text after it":      {"{} x", "'x' after the event's object (at byte 3)"},
		"not UTF-8":          {"{\"a\":\"\xff\"}", "not valid UTF-8"},
		"no value":           {`{"a":}`, "a closing bracket where a value belongs"},
		"word":               {`{"a":nul}`, "'n' begins no JSON value"},
		"other word":         {`{"a":NaN}`, "'N' begins no JSON value"},
		"no digit":           {`{"a":-}`, "'}' where a digit belongs"},
		"no fraction":        {`{"a":1.}`, "after the decimal point"},
		"no exponent":        {`{"a":1e+}`, "in the exponent"},
		"no closing quote":   {`{"a":"x`, "the string has no closing quote"},
		"no closing quote 2": {`{"a":"x\`, "the string has no closing quote"},
		"no closing quote 3": {`{"a":"\n`, "the string has no closing quote"},
		"bad hex":            {`{"a":"\u00g0"}`, `'g' in \u, which needs four hex digits`},
		"control, escaped":   {"{\"a\":\"\\n\x01\"}", "control character 0x01"},
		"surrogate cut off":  {`{"a":"\ud83d\u00"}`, `in \u, which needs four hex digits`},
		"no comma":           {`{"a":1 "b":2}`, "where a comma or a closing brace belongs"},
		"too deep":           {strings.Repeat(`{"a":`, 1002) + "1" + strings.Repeat("}", 1002), "more than 1001 levels"},
		"too deep arrays":    {`{"a":` + strings.Repeat("[", 100_000), "more than 1001 levels"},
		"too large":          {`{"a":"` + strings.Repeat("x", 16<<20) + `"}`, "16777216 is the most"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := eventpattern.ParseEvent([]byte(tt.event))
			if err == nil || !strings.HasPrefix(err.Error(), "event: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// Large events take time and memory in proportion to their size.
func TestParseEvent_Large(t *testing.T) {
	many := func(n int, item func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item(i))
		}
		return b.String()
	}
	tests := map[string]struct {
		event, pattern string
		want           bool
	}{
		"10 MB string":                   {`{"a":"` + strings.Repeat("x", 10<<20) + `y"}`, `{"a":[{"wildcard":"*x*x*y"}]}`, true},
		"1000 levels":                    {strings.Repeat(`{"a":`, 1001) + `1` + strings.Repeat("}", 1001), `{"` + strings.Repeat("a.", 1000) + `a":[1]}`, true},
		"100,000 keys":                   {`{` + many(100_000, func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i) }) + `}`, `{"k99999":[99999],"k0":[{"numeric":["<",1]}]}`, true},
		"one key 100,000 times":          {`{` + many(100_000, func(i int) string { return fmt.Sprintf(`"k":%d`, i) }) + `}`, `{"k":[99999]}`, true},
		"a long key with many under it":  {`{"` + strings.Repeat("k", 1<<20) + `":{` + many(50_000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}}`, `{"k":[{"exists":true}]}`, false},
		"100,000 elements, the last one": {`{"m":[` + many(100_000, func(i int) string { return fmt.Sprintf(`{"a":1,"b":%d}`, i) }) + `]}`, `{"m":{"a":[1],"b":[99999]}}`, true},
		"100,000 elements, none":         {`{"m":[` + many(100_000, func(i int) string { return fmt.Sprintf(`{"a":%d,"b":%d}`, i%2, (i+1)%2) }) + `]}`, `{"m":{"a":[1],"b":[1]}}`, false},
		"arrays that multiply, none": {`{` + many(8, func(i int) string {
			return fmt.Sprintf(`"m%d":[%s]`, i, many(1000, func(j int) string { return `{"a":1,"b":1}` }))
		}) + `,"z":[{"a":1},{"b":1}]}`, `{` + many(8, func(i int) string { return fmt.Sprintf(`"m%d":{"a":[1],"b":[1]}`, i) }) + `,"z":{"a":[1],"b":[1]}}`, false},
		"absence against many, none": {`{"m":[` + many(2000, func(i int) string { return `{"a":1,"z":1}` }) + `]}`, `{"m":{"a":[1],"z":[{"exists":false}]}}`, false},
		"elements that all differ": {`{"m":[` + many(3000, func(i int) string { return fmt.Sprintf(`{"k%d":1,"k%d":1,"k%d":1}`, i%40, i*7%40, i*i%40) }) + `]}`,
			`{"m":{` + many(40, func(i int) string { return fmt.Sprintf(`"k%d":[1]`, i) }) + `}}`, false},
		"arrays under one key that all differ": {`{` + many(40, func(i int) string {
			return fmt.Sprintf(`"m":[%s]`, many(40, func(j int) string { return fmt.Sprintf(`{"k%d":1}`, (i+j)%40) }))
		}) + `}`, `{"m":{` + many(41, func(i int) string { return fmt.Sprintf(`"k%d":[1]`, i) }) + `}}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := eventpattern.ParseEvent([]byte(tt.event))
			if err != nil {
				t.Fatal(err)
			}
			p := mustParse(t, tt.pattern)
			if got := p.Matches(e); got != tt.want {
				t.Errorf("Matches says %v", got)
			}
			if got := eventpattern.NewSet([]*eventpattern.Pattern{p}).Matches(e); (len(got) == 1) != tt.want {
				t.Errorf("the set says %v", got)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	p := mustParse(t, `{"a":["x"]}`)
	if ok, err := p.Match([]byte(`{"a":"x"}`)); !ok || err != nil {
		t.Errorf("Match: %v, %v", ok, err)
	}
	if ok, err := p.Match([]byte(`{`)); ok || err == nil {
		t.Errorf("Match of no event: %v, %v", ok, err)
	}
}
