package main

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/local/stack"
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

func TestNarratorTellsOfResync(t *testing.T) {
	const line = `{"msg":"target changed","verb":"register","result":"done","target":"10.64.1.7:8080","pod":"a/web","cause":"drift","reason":"missing",` +
		`"rule":"arn:aws:events:eu-west-1:111122223333:rule/elbridge/web"}`
	const held = `{"msg":"removal held","target":"10.64.1.8:8080","pod":"a/old","why":"no witness","rule":"rule/elbridge/web"}`
	var out strings.Builder
	n := newNarrator(&out)
	n.line(functions.Line{Function: stack.Resync, Text: []byte(line)})
	n.line(functions.Line{Function: stack.Resync, Text: []byte(held)})
	for _, want := range []string{
		"→ resync → rule web → registered 10.64.1.7:8080 (a/web), found by comparing: missing\n",
		"→ resync → rule web → removal of 10.64.1.8:8080 (a/old) held: no witness\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("told %q, want %q in it", out.String(), want)
		}
	}
}

func TestNarratorTellsOfEvents(t *testing.T) {
	for name, c := range map[string]struct{ detailType, detail, want string }{
		"a pod's address":          {"Pod State Change", `{"namespace":"a","name":"web","podIP":"10.64.1.7","reason":"IPAssigned"}`, "pod a/web got 10.64.1.7 → event on the bus\n"},
		"a pod's end":              {"Pod State Change", `{"namespace":"a","name":"web","reason":"Deleted"}`, "pod a/web: deleted → event on the bus\n"},
		"a new rule":               {"Binding Changed", `{"schema":1,"rule":"rule/elbridge/web","changes":["added"],"effects":[{"gain":3}]}`, "resync: rule web changed (added); its group gains 3, loses 0, holds 0\n"},
		"a round that was asked":   {"Resync Completed", `{"schema":1,"round":2,"trigger":"request","groups":4}`, "resync: round 2 (request) compared 4 groups: 0 differences, 0 repaired, 0 held, 0 failed\n"},
		"a round that found":       {"Resync Completed", `{"schema":1,"round":7,"trigger":"schedule","groups":4,"found":2,"repaired":1,"held":1}`, "resync: round 7 (schedule) compared 4 groups: 2 differences, 1 repaired, 1 held, 0 failed\n"},
		"a round like all others":  {"Resync Completed", `{"schema":1,"round":8,"trigger":"schedule","groups":4}`, ""},
		"an event of another form": {"Binding Changed", `{"schema":2}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			newNarrator(&out).event(c.detailType, []byte(c.detail))
			if got := out.String(); !strings.HasSuffix(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("told %q, want it to end with %q", got, c.want)
			}
		})
	}
}
