package main

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/functions"
)

func TestNarratorTellsOfATarget(t *testing.T) {
	const line = `{"msg":"target changed","verb":"deregister","result":"%s","target":"10.64.1.7:8080","pod":"a/web",` +
		`"rule":"arn:aws:events:eu-west-1:111122223333:rule/elbridge/web"%s}`
	for name, c := range map[string]struct{ result, more, want string }{
		"by the pod's own event": {"done", `,"duration_seconds":0.0831`, "→ rule web → deregistered 10.64.1.7:8080 (a/web), 83 ms after the webhook saw it\n"},
		"read along with others": {"done", "", "→ rule web → deregistered 10.64.1.7:8080 (a/web), seen beside another pod's event\n"},
		"only observed":          {"would-do", `,"duration_seconds":0.002`, "→ rule web → would be deregistered 10.64.1.7:8080 (a/web), 2 ms after the webhook saw it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			text := strings.Replace(strings.Replace(line, "%s", c.result, 1), "%s", c.more, 1)
			newNarrator(&out).line(functions.Line{Text: []byte(text)})
			if !strings.HasSuffix(out.String(), c.want) {
				t.Errorf("told %q, want it to end with %q", out.String(), c.want)
			}
		})
	}
}

func TestNarratorKeepsQuietAboutTheRest(t *testing.T) {
	for _, text := range []string{"START RequestId: 1", `{"msg":"message handled","result":"done"}`, `{"msg":7}`, ""} {
		var out strings.Builder
		newNarrator(&out).line(functions.Line{Text: []byte(text)})
		if out.Len() > 0 {
			t.Errorf("%q made it tell %q", text, out.String())
		}
	}
}
