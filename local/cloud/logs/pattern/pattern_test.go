package pattern_test

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/cloud/logs/pattern"
)

// doc is the document of the user guide's examples, and more.
const doc = `{"eventType":"UpdateTrail","detail-type":"Targets Changed","sourceIPAddress":"111.111.111.111","arrayKey":["value","another value"],
	"objectList":[{"name":"a","id":1},{"name":"b","id":2}],"SomeObject":null,"ThisFlag":true,"latency":512.5,"errorCode":400,
	"coordinates":[[0,1,2],[4,5,6]],"quote":"say \"no\" \\ once","star":"Ev*ent","detail":{"id":"10.0.0.5"}}`

func TestMatch(t *testing.T) {
	tests := map[string]bool{
		"":                                      true,
		"UpdateTrail":                           true,
		"updatetrail":                           false,
		"Update":                                true,
		`"Targets Changed"`:                     true,
		`UpdateTrail "10.0.0.5"`:                true,
		`UpdateTrail "10.0.0.6"`:                false,
		`UpdateTrail -"Targets Changed"`:        false,
		`UpdateTrail - "Removal Held"`:          true,
		`?nothing ?UpdateTrail`:                 true,
		`?nothing ?never`:                       false,
		`?nothing UpdateTrail`:                  true, // beside others ? is ignored
		`{ $.eventType = "UpdateTrail" }`:       true,
		`{$.eventType=UpdateTrail}`:             true,
		`{ $.eventType = "updateTrail" }`:       false,
		`{ $.detail-type = "Targets Changed" }`: true,
		`{ $.sourceIPAddress != 123.123.* }`:    true,
		`{ $.sourceIPAddress = "111.*" }`:       true,
		`{ $.eventType = *Trail }`:              true,
		`{ $.eventType = "*dateTr*" }`:          true,
		`{ $.eventType = "*" }`:                 true,
		`{ $.missing = "*" }`:                   false,
		`{ $.eventType = "Upd*Trail" }`:         false, // amid it a * is a *
		`{ $.star = "Ev*ent" }`:                 true,
		`{ $.arrayKey[0] = "value" }`:           true,
		`{ $.arrayKey[7] = "value" }`:           false,
		`{ $.objectList[1].id = 2 }`:            true,
		`{ $.objectList[1].id = "2" }`:          true,
		`{ $.coordinates[1][0] = 4 }`:           true,
		`{ $.SomeObject IS NULL }`:              true,
		`{ $.Other IS NULL }`:                   false,
		`{ $.Other NOT EXISTS }`:                true,
		`{ $.SomeObject NOT EXISTS }`:           false,
		`{ $.ThisFlag IS TRUE }`:                true,
		`{ $.ThisFlag IS FALSE }`:               false,
		`{ $.latency >= 500 }`:                  true,
		`{ $.latency < 10e1 }`:                  false,
		`{ $.errorCode = 400.0 }`:               true,
		`{ $.errorCode != 500 }`:                true,
		`{ $.arrayKey = 1 }`:                    false, // not a value
		`{ $.arrayKey != 1 }`:                   false,
		`{ $.missing != 1 }`:                    false,
		`{ $.quote = "say \"no\" \\ once" }`:    true,
		`{ $.eventType = UpdateTrail && $.errorCode = 1 || $.ThisFlag IS TRUE }`:   true, // && before ||
		`{ $.eventType = UpdateTrail && ($.errorCode = 1 || $.ThisFlag IS FALSE)}`: false,
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			p, err := pattern.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Match(doc); got != want {
				t.Errorf("matches: %v", got)
			}
		})
	}
	p, err := pattern.Parse(`{ $.eventType = "UpdateTrail" }`)
	if err != nil || p.Match("UpdateTrail, in no JSON") {
		t.Errorf("a JSON pattern matches text, error %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"10.0.0.5", `"open`, "{ $.a = }", "{ $.a }", "{ a = b }", "{ $ = b }", `{ $.a = "b }`, `{ $.a = "b" } x`,
		"{ ($.a = b }", "{ $.a[x] = b }", "{ $.a[-1] = b }", "{ $.a > b }", "{ $.a = b && }", "[a, b]", "%a%", "-", "{", "{}", strings.Repeat("a", 1025)} {
		if _, err := pattern.Parse(text); err == nil {
			t.Errorf("%.40s: no error", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a -b ?c", `{ $.a[0].b = "x*" && ($.c != 1 || $.d IS NULL) }`, `"\"`, "{ $.a NOT EXISTS"} {
		f.Add(s, doc)
	}
	f.Fuzz(func(_ *testing.T, text, message string) {
		if p, err := pattern.Parse(text); err == nil {
			p.Match(message)
		}
	})
}
