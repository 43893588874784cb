package eventpattern_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

func TestParse_Errors(t *testing.T) {
	tests := map[string]struct {
		pattern string
		want    string // path: operator: part of the reason
	}{
		"empty":                    {``, ": : the end of the text where the pattern's object belongs"},
		"an array":                 {`[]`, ": : an array where the pattern's object belongs"},
		"nothing in it":            {`{}`, ": : an empty object says nothing"},
		"nothing in a field":       {`{"detail":{}}`, "detail: : an empty object says nothing"},
		"no values":                {`{"a":{"b":[]}}`, "a.b: : an empty array matches nothing"},
		"a bare value":             {`{"a":"x"}`, `a: : a string where an array of values or an object of fields belongs: the values belong in an array`},
		"an operator as field":     {`{"a":{"exists":true}}`, `a.exists: : true where an array of values or an object of fields belongs: an operator belongs in an object in an array, as in [{"exists":…}]`},
		"array in array":           {`{"a":[["x"]]}`, "a: : an array where a string, a number"},
		"unknown operator":         {`{"a":[{"regex":"x"}]}`, `a: : unknown operator "regex": known are prefix, suffix`},
		"operator's case":          {`{"a":[{"Prefix":"x"}]}`, `unknown operator "Prefix", did you mean prefix`},
		"operator's spelling":      {`{"a":[{"anything_but":"x"}]}`, `unknown operator "anything_but", did you mean anything-but`},
		"no operator":              {`{"a":[{}]}`, "a: : an empty object where an operator belongs"},
		"two operators":            {`{"a":[{"prefix":"x","suffix":"y"}]}`, "a: prefix: a second key beside prefix"},
		"prefix of a number":       {`{"a":[{"prefix":1}]}`, "a: prefix: a number where a string or"},
		"prefix, other form":       {`{"a":[{"prefix":{"wildcard":"x"}}]}`, `a: prefix: unknown form "wildcard": known are equals-ignore-case`},
		"exists":                   {`{"a":[{"exists":"true"}]}`, "a: exists: a string where true or false belongs"},
		"cidr: no length":          {`{"a":[{"cidr":"10.0.0.1"}]}`, `a: cidr: "10.0.0.1" is no address block`},
		"cidr: single address":     {`{"a":[{"cidr":"10.0.0.1/32"}]}`, `a: cidr: prefix length "32": use 0 to 31`},
		"cidr: IPv6 length":        {`{"a":[{"cidr":"::/128"}]}`, `use 0 to 127`},
		"cidr: no address":         {`{"a":[{"cidr":"x/8"}]}`, `a: cidr: "x" is no IP address`},
		"numeric: operator":        {`{"a":[{"numeric":["!=",1]}]}`, `a: numeric: "!=" is no comparison: use one of = < <= > >=`},
		"numeric: text":            {`{"a":[{"numeric":["=","1"]}]}`, "a: numeric: a string where a number belongs"},
		"numeric: half":            {`{"a":[{"numeric":["="]}]}`, "a: numeric: no number after ="},
		"numeric: nothing":         {`{"a":[{"numeric":[]}]}`, "a: numeric: an empty array where a comparison belongs"},
		"numeric: number first":    {`{"a":[{"numeric":[1,"="]}]}`, "a: numeric: a number where a comparison belongs"},
		"numeric: upper first":     {`{"a":[{"numeric":["<",5,">",1]}]}`, "a: numeric: a second comparison after <"},
		"numeric: two lower":       {`{"a":[{"numeric":[">",1,">",5]}]}`, "a: numeric: > after a lower bound"},
		"numeric: empty range":     {`{"a":[{"numeric":[">",1,"<",1]}]}`, "a: numeric: an upper bound of 1 that is not above the lower one of 1"},
		"numeric: three":           {`{"a":[{"numeric":[">",1,"<",5,"<",7]}]}`, "a: numeric: more than a lower and an upper bound"},
		"numeric: too exact":       {`{"a":[{"numeric":["=",9007199254740993]}]}`, "a: numeric: 9007199254740993 is not the short decimal form of a double"},
		"wildcard: two stars":      {`{"a":[{"wildcard":"a**"}]}`, `a: wildcard: ** in "a**"`},
		"wildcard: backslash":      {`{"a":[{"wildcard":"a\\b"}]}`, `a: wildcard: a backslash in`},
		"anything-but: null":       {`{"a":[{"anything-but":null}]}`, "a: anything-but: null where a string, a number, a list"},
		"anything-but: mixed":      {`{"a":[{"anything-but":["x",1]}]}`, "a: anything-but: strings and numbers in one list"},
		"anything-but: none":       {`{"a":[{"anything-but":[]}]}`, "a: anything-but: an empty list excludes nothing"},
		"anything-but: form":       {`{"a":[{"anything-but":{"numeric":["=",1]}}]}`, `a: anything-but: unknown form "numeric"`},
		"anything-but: empty form": {`{"a":[{"anything-but":{"suffix":""}}]}`, "a: anything-but: an empty suffix would exclude every string"},
		"anything-but: no strings": {`{"a":[{"anything-but":{"wildcard":[]}}]}`, "a: anything-but: an empty list excludes nothing"},
		"$or: one":                 {`{"$or":[{"a":[1]}]}`, ": $or: an array of 1 where two or more objects belong"},
		"$or: no array":            {`{"d":{"$or":{"a":[1]}}}`, "d: $or: an object where an array of two or more objects belongs"},
		"$or: a string":            {`{"d":{"$or":["x",{"a":[1]}]}}`, "d: $or: a string where an object of fields belongs"},
		"$or: operator as field":   {`{"$or":[{"d":{"regex":["x"]}},{"a":[1]}]}`, `d.regex: : "regex" cannot be the name of a field inside $or`},
		"$or: fault within":        {`{"$or":[{"a":[1]},{"b":{"c":[{"prefix":2}]}}]}`, "b.c: prefix: a number where"},
		"$or: nothing in one":      {`{"a":[1],"$or":[{"b":[1]},{}]}`, ": $or: an empty object says nothing"},
		"not JSON":                 {`{"a":[1,]}`, "a: : a value belongs after the comma"},
		"control character":        {"{\"a\":[\"x\ny\"]}", "a: : control character 0x0a in a string"},
		"escape":                   {`{"a":["\x41"]}`, `a: : \x is no JSON escape`},
		"half an escape":           {`{"a":["\u12`, `a: : \u needs four hex digits`},
		"no colon":                 {`{"a"[1]}`, ": : '[' where a colon belongs"},
		"single quotes":            {`{'a':[1]}`, `'\'' where a key in double quotes belongs`},
		"cut off":                  {`{"a":[1`, "the end of the text where a comma or a closing bracket belongs"},
		"leading zero":             {`{"a":[01]}`, "must not begin with 0"},
		"not UTF-8":                {"{\"a\":[\"\xff\"]}", "not valid UTF-8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := eventpattern.Parse([]byte(tt.pattern))
			var e *eventpattern.SyntaxError
			if !errors.As(err, &e) {
				t.Fatalf("error %v is no SyntaxError", err)
			}
			got := e.Path + ": " + e.Operator + ": " + e.Reason
			if !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if !strings.HasPrefix(err.Error(), "event pattern: ") || !strings.HasSuffix(err.Error(), fmt.Sprintf("(at byte %d)", e.Offset)) {
				t.Errorf("message %q", err)
			}
		})
	}
}

// Patterns that would cost too much, or that the service would not take, are
// refused with the reason.
func TestParse_Limits(t *testing.T) {
	branches := func(n int) string {
		var b []string
		for i := range n {
			b = append(b, fmt.Sprintf(`{"f":["%d"]}`, i))
		}
		return `"$or":[` + strings.Join(b, ",") + `]`
	}
	tests := map[string]struct {
		pattern string
		want    string // "" is accepted
	}{
		"4096 characters":       {`{"a":["` + strings.Repeat("x", 4096-10) + `"]}`, ""},
		"4097 characters":       {`{"a":["` + strings.Repeat("x", 4097-10) + `"]}`, "the pattern has 4097 characters, 4096 is the most"},
		"characters, not bytes": {`{"a":["` + strings.Repeat("é", 4096-10) + `"]}`, ""},
		"outside the plane":     {`{"a":["` + strings.Repeat("😀", 2044) + `"]}`, "characters, 4096 is the most"},
		"1000 combinations":     {`{"a":{` + branches(10) + `},"b":{` + branches(10) + `},"c":{` + branches(10) + `}}`, ""},
		"1100 combinations":     {`{"a":{` + branches(10) + `},"b":{` + branches(10) + `},"c":{` + branches(11) + `}}`, "more than 1000 combinations"},
		"2^200 combinations":    {`{` + strings.TrimSuffix(strings.Repeat(`"$or":[{"a":[1]},{"b":[1]}],`, 140), ",") + `}`, "more than 1000 combinations"},
		"deep $or":              {strings.Repeat(`{"$or":[{"a":[1]},`, 200) + `{"b":[1]}` + strings.Repeat("]}", 200), ""},
		"128 stars":             {`{"a":[{"wildcard":"` + strings.Repeat("*x", 128) + `"}]}`, ""},
		"129 stars":             {`{"a":[{"wildcard":"` + strings.Repeat("*x", 100) + `"},{"anything-but":{"wildcard":"` + strings.Repeat("*x", 29) + `"}}]}`, "more than 128 * in the pattern"},
		"stars that are none":   {`{"a":[{"wildcard":"` + strings.Repeat(`\\*`, 500) + `"}]}`, ""},
		"deep":                  {strings.Repeat(`{"a":`, 680) + `[1]` + strings.Repeat("}", 680), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := eventpattern.Parse([]byte(tt.pattern))
			if tt.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}
