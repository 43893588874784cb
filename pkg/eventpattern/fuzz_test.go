package eventpattern

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// No text makes the parser panic; what it refuses it explains; what it accepts
// it accepts again.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text))
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Reason == "" || syntax.Offset < 0 || syntax.Offset > len(text) {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if again, err := Parse([]byte(p.String())); err != nil || len(again.branches) != len(p.branches) {
			t.Fatalf("the second time: %v", err)
		}
		p.Selection()
		if _, err := readTree(text); err != nil {
			t.Fatalf("accepted, but encoding/json says %v", err)
		}
	})
}

// Whatever pattern and event, the matcher, a set and the oracle agree.
func FuzzMatches(f *testing.F) {
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
		got := p.Matches(e)
		if set := NewSet([]*Pattern{nil, p, p}).Matches(e); (len(set) == 2) != got {
			t.Fatalf("the set says %v, the pattern %v", set, got)
		}
		if set, err := NewSet([]*Pattern{p}).Match([]byte(event)); (len(set) == 1) != got || err != nil {
			t.Fatalf("the set, reading the event itself, says %v, %v, the pattern %v", set, err, got)
		}
		want, err := oracle(pattern, event)
		if errors.Is(err, errTooSlow) {
			return
		}
		if err != nil {
			t.Fatalf("accepted, but the oracle says %v", err)
		}
		if got != want {
			t.Fatalf("pattern %s\nevent   %s\nMatches says %v, the oracle %v", pattern, event, got, want)
		}
	})
}

// ParseEvent takes what encoding/json takes, and nothing else, but for its own
// limits and texts that are no objects or not UTF-8.
func FuzzParseEvent(f *testing.F) {
	for _, s := range seeds {
		f.Add(s[1])
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := ParseEvent([]byte(text))
		tree, jsonErr := readTree(text)
		valid := jsonErr == nil && tree.kind == 'o' && utf8.ValidString(text) && !hasMore(text)
		if valid != (err == nil) && strings.Count(text, "[")+strings.Count(text, "{") < MaxEventDepth {
			t.Fatalf("ParseEvent says %v, encoding/json %v", err, jsonErr)
		}
	})
}

// hasMore reports whether text follows the first JSON value.
func hasMore(text string) bool { return !json.Valid([]byte(text)) }

// seeds are patterns and events.
var seeds = [][2]string{
	{`{"source":["elbridge"],"detail":{"labels":{"app.kubernetes.io/name":["web","api"]}}}`, `{"source":"elbridge","detail":{"labels":{"app.kubernetes.io/name":"web"}}}`},
	{`{"a":[null,true,1.0,{"prefix":"x"},{"suffix":{"equals-ignore-case":"ß"}}]}`, `{"a":[1e0,"SS",null]}`},
	{`{"a":[{"anything-but":["x"]},{"anything-but":{"wildcard":["a*\\*","b"]}}]}`, `{"a":"a\u0041","a":2}`},
	{`{"a":[{"numeric":[">",0,"<=",5.5e0]},{"cidr":"10.0.0.0/8"}]}`, `{"a":["10.1.2.3",-0,5.5]}`},
	{`{"m":{"a":[1],"b":[{"exists":false}],"c":[{"exists":true}]}}`, `{"m":[[{"a":1,"c":2}],{"a":1,"b":1}]}`},
	{`{"$or":[{"a":["x"]},{"$or":[{"b":["y"]},{"a.b":[2]}]}],"a":{"b":[3]}}`, `{"a":{"b":[3,2]},"b":"y"}`},
	{`{"a":[{"equals-ignore-case":"\ud83d\ude00İ"},{"exactly":"fd00::1"}]} x`, `{"":{"a":[]}}`},
	{`{"p":{"a":[1],"b":[2]},"q":{"a":[1],"b":[{"exists":false}]}}`, `{"p":[{"a":1},{"b":2},{"a":1,"b":2}],"q":[{"a":1,"b":1},{"a":1}]}`},
}
