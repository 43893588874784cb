package binding_test

import (
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
)

const event = `{"version":"0","id":"e-1","detail-type":"T","source":"s","account":"1","time":"2026-01-02T03:04:05Z",` +
	`"region":"r","resources":["pod/1","node/2"],"detail":{"name":"web","n":1.50,"ok":true,"nil":null,` +
	`"quote":"a\"b","list":[{"k":"x"},{"k":"y"}],"a-b":{"c/d":"deep"},"dot.key":"never"}}`

var ingestion = time.Date(2026, 1, 2, 3, 4, 6, 700, time.FixedZone("", 3600))

func TestRender_Template(t *testing.T) {
	tests := map[string]struct {
		template, path string // <v> is the path
		want           string
	}{
		"string":                     {`{"x":<v>}`, "$.detail.name", `{"x":"web"}`},
		"number as spelled":          {`{"x":<v>}`, "$.detail.n", `{"x":1.50}`},
		"boolean":                    {`{"x":<v>}`, "$.detail.ok", `{"x":true}`},
		"null":                       {`{"x":<v>}`, "$.detail.nil", `{"x":null}`},
		"object":                     {`{"x":<v>}`, "$.detail.a-b", `{"x":{"c/d":"deep"}}`},
		"array":                      {`<v>`, "$.resources", `["pod/1","node/2"]`},
		"the event":                  {`<v>`, "$", event},
		"index":                      {`{"x":<v>}`, "$.resources[1]", `{"x":"node/2"}`},
		"index and key":              {`{"x":<v>}`, "$.detail.list[1].k", `{"x":"y"}`},
		"slash and hyphen":           {`{"x":<v>}`, "$.detail.a-b.c/d", `{"x":"deep"}`},
		"all elements":               {`{"x":<v>}`, "$.detail.list[*].k", `{"x":["x","y"]}`},
		"all members":                {`{"x":<v>}`, "$.detail.a-b.*", `{"x":["deep"]}`},
		"missing":                    {`{"x":<v>}`, "$.detail.gone", `{"x":""}`},
		"index out of range":         {`{"x":<v>}`, "$.resources[2]", `{"x":""}`},
		"key of a string":            {`{"x":<v>}`, "$.detail.name.x", `{"x":""}`},
		"a key with a dot":           {`{"x":<v>}`, "$.detail.dot.key", `{"x":""}`},
		"bracket notation":           {`{"x":<v>}`, "$.detail['name']", `{"x":""}`},
		"no path at all":             {`{"x":<v>}`, "detail.name", `{"x":""}`},
		"in a string":                {`"pod <v> is up"`, "$.detail.name", `"pod web is up"`},
		"in a string, missing":       {`"pod <v> is up"`, "$.detail.gone", `"pod  is up"`},
		"in a string, number":        {`"n <v>"`, "$.detail.n", `"n 1.50"`},
		"in a string, not escaped":   {`"q <v>"`, "$.detail.quote", `"q a"b"`},
		"in a string, object":        {`"o <v>"`, "$.detail.a-b", `"o {c/d:deep}"`},
		"escaped quotes":             {`"the \"<v>\" pod"`, "$.detail.name", `"the \"web\" pod"`},
		"out of a string again":      {`{"a":"\\","x":<v>,"b":"<v>"}`, "$.detail.name", `{"a":"\\","x":"web","b":"web"}`},
		"twice":                      {`[<v>,<v>]`, "$.detail.name", `["web","web"]`},
		"brackets that are no place": {`{"x":"a < b > c","y":<v>}`, "$.detail.name", `{"x":"a < b > c","y":"web"}`},
		"rule":                       {`{"a":<aws.events.rule-arn>,"n":"<aws.events.rule-name>"}`, "$", `{"a":"` + ruleARN + `","n":"web"}`},
		"ingestion time":             {`<aws.events.event.ingestion-time>`, "$", `"2026-01-02T02:04:06Z"`},
		"the event, whole":           {`<aws.events.event.json>`, "$", event},
		"the event, no detail": {`<aws.events.event>`, "$",
			`{"id":"e-1","account":"1","detailType":"T","time":"2026-01-02T03:04:05Z","source":"s","region":"r","resources":["pod/1","node/2"],"version":"0"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := binding.Render(web, target(tt.template, "v="+tt.path), []byte(event), ingestion)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRender_OtherInputs(t *testing.T) {
	tests := map[string]struct {
		target binding.Target
		want   string
	}{
		"nothing given":         {binding.Target{}, event},
		"static":                {binding.Target{Input: `{"a": "<x>"}`}, `{"a": "<x>"}`},
		"path to an object":     {binding.Target{InputPath: "$.detail.a-b"}, `{"c/d":"deep"}`},
		"path to a string":      {binding.Target{InputPath: "$.detail.name"}, `"web"`},
		"path to nothing":       {binding.Target{InputPath: "$.gone"}, `null`},
		"path to the event":     {binding.Target{InputPath: "$"}, event},
		"event without members": {target(`<aws.events.event>`), `{}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := event
			if strings.HasPrefix(name, "event without") {
				in = `{}`
			}
			got, err := binding.Render(web, tt.target, []byte(in), ingestion)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestRender_Refused(t *testing.T) {
	long := strings.Repeat("x", 9000)
	tests := map[string]struct {
		target binding.Target
		want   string
	}{
		"two inputs":          {binding.Target{ID: "t", Input: "{}", InputPath: "$"}, "target t: only one of Input, InputPath and InputTransformer"},
		"input not JSON":      {binding.Target{Input: "{"}, "Input is not valid JSON"},
		"long input":          {binding.Target{Input: `"` + long + `"`}, "Input has more than 8192"},
		"long path":           {binding.Target{InputPath: "$." + long}, "InputPath has more than 256"},
		"no template":         {target(""), "InputTemplate has 1 to 8192 characters, not 0"},
		"long template":       {target(long), "InputTemplate has 1 to 8192 characters, not 9000"},
		"unknown placeholder": {target("<a>"), "InputTemplate contains invalid placeholder a"},
		"reserved name":       {target("1", "AWSx=$"), `"AWSx" is no name of a variable`},
		"name":                {target("1", "a.b=$"), `"a.b" is no name of a variable`},
		"empty path":          {target("1", "a="), `the path of "a" has 1 to 256 characters`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := binding.Render(web, tt.target, []byte(event), ingestion)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := binding.Render(web, target("1"), []byte("{"), ingestion); err == nil {
		t.Error("an event that is not JSON was rendered")
	}
}
