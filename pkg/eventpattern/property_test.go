package eventpattern

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Small alphabets, so that patterns and events meet often.

var (
	keyGen    = rapid.SampledFrom([]string{"a", "b", "c", "a.b", "", "é", "😀", "\uffee"})
	stringGen = rapid.SampledFrom([]string{"", "x", "xy", "X", "yx", "é", "É", "ß", "SS", "10.0.0.1", "010.0.0.1", "10.0.0.9", "::1", "0:0::1", "::ffff:a00:1", "a*", `a\`, "1"})
	numberGen = rapid.SampledFrom([]string{"0", "-0", "1", "1.0", "1e0", "10e-1", "2", "-1.5", "1e400", "9007199254740993", "0.1", "1E-1", "5e-324", "123456789012345678901234567890"})
)

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func drawScalar(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "scalar") {
	case 0:
		return numberGen.Draw(t, "number")
	case 1:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
	}
	return quote(stringGen.Draw(t, "string"))
}

// drawEvent draws a value of an event.
func drawEvent(t *rapid.T, depth int, top bool) string {
	shape := rapid.IntRange(0, 5).Draw(t, "shape")
	switch {
	case top || depth > 0 && shape < 2:
		var members []string
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			members = append(members, quote(keyGen.Draw(t, "key"))+":"+drawEvent(t, depth-1, false))
		}
		return "{" + strings.Join(members, ",") + "}"
	case depth > 0 && shape < 4:
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, drawEvent(t, depth-1, false))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return drawScalar(t)
}

// drawAlternative draws an element of a pattern's array. Some are invalid.
func drawAlternative(t *rapid.T) string {
	s := func() string { return quote(stringGen.Draw(t, "operand")) }
	n := func() string { return numberGen.Draw(t, "number") }
	switch rapid.IntRange(0, 16).Draw(t, "operator") {
	case 0:
		return `{"prefix":` + s() + `}`
	case 1:
		return `{"suffix":` + s() + `}`
	case 2:
		return `{"prefix":{"equals-ignore-case":` + s() + `}}`
	case 3:
		return `{"suffix":{"equals-ignore-case":` + s() + `}}`
	case 4:
		return `{"equals-ignore-case":` + s() + `}`
	case 5:
		return `{"anything-but":[` + s() + `,` + s() + `]}`
	case 6:
		return `{"anything-but":` + n() + `}`
	case 7:
		form := rapid.SampledFrom([]string{"prefix", "suffix", "equals-ignore-case", "wildcard"}).Draw(t, "form")
		return `{"anything-but":{"` + form + `":[` + s() + `]}}`
	case 8:
		op := rapid.SampledFrom([]string{"=", "<", "<=", ">", ">="}).Draw(t, "comparison")
		return `{"numeric":["` + op + `",` + n() + `]}`
	case 9:
		return `{"numeric":[">=",` + n() + `,"<",` + n() + `]}`
	case 10:
		block := rapid.SampledFrom([]string{"10.0.0.0/8", "10.0.0.1/31", "::/0", "0.0.0.0/0", "::/96", "10.0.0.0/29"}).Draw(t, "block")
		return `{"cidr":"` + block + `"}`
	case 11, 12:
		return `{"exists":false}`
	case 13:
		return `{"exists":true}`
	case 14:
		w := rapid.SampledFrom([]string{"*", "x*", "*y", "*x*", "x*y*", `\\*`, `a\*`, "é*", "1*.0.*"}).Draw(t, "wildcard")
		return `{"wildcard":` + quote(w) + `}`
	case 15:
		return `{"exactly":` + s() + `}`
	}
	return drawScalar(t)
}

func drawPattern(t *rapid.T, depth int) string {
	var members []string
	for range rapid.IntRange(1, 3).Draw(t, "fields") {
		key := keyGen.Draw(t, "key")
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		switch {
		case depth > 0 && kind == 0:
			members = append(members, `"$or":[`+drawPattern(t, depth-1)+`,`+drawPattern(t, depth-1)+`]`)
		case depth > 0 && kind < 4:
			members = append(members, quote(key)+":"+drawPattern(t, depth-1))
		default:
			var values []string
			for range rapid.IntRange(1, 3).Draw(t, "values") {
				values = append(values, drawAlternative(t))
			}
			members = append(members, quote(key)+":["+strings.Join(values, ",")+"]")
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Pattern, set and oracle agree on everything.
func TestMatches_AgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var patterns []*Pattern
		for range rapid.IntRange(1, 4).Draw(t, "patterns") {
			text := drawPattern(t, 2)
			p, err := Parse([]byte(text))
			if err != nil {
				continue // an operand that does not fit its operator
			}
			patterns = append(patterns, p)
		}
		patterns = append(patterns, nil)
		set := NewSet(patterns)
		for range 3 {
			event := drawEvent(t, 4, true)
			e, err := ParseEvent([]byte(event))
			if err != nil {
				t.Fatalf("event %s: %v", event, err)
			}
			var want []int
			for i, p := range patterns {
				if p == nil {
					continue
				}
				match, err := oracle(p.String(), event)
				if err != nil {
					t.Fatalf("oracle: %v", err)
				}
				if got := p.Matches(e); got != match {
					t.Fatalf("pattern %s\nevent   %s\nMatches says %v, the oracle %v", p, event, got, match)
				}
				if match {
					want = append(want, i)
				}
			}
			if got := set.Matches(e); !slices.Equal(got, want) {
				t.Fatalf("set says %v, want %v, for event %s", got, want, event)
			}
			if got, err := set.Match([]byte(event)); !slices.Equal(got, want) || err != nil {
				t.Fatalf("set says %v, %v, want %v, for event %s", got, err, want, event)
			}
		}
	})
}
