// Package events_test holds the samples against the schemas, and the Go values
// against both.
package events_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// values says how each kind of event is read and written.
var values = map[string]struct {
	source, detailType string
	again              func(detail []byte) ([]byte, error)
}{
	"pod-state-change": {podevent.Source, podevent.DetailTypePodStateChange, func(detail []byte) ([]byte, error) {
		e, err := podevent.Decode(detail)
		if err != nil {
			return nil, err
		}
		return e.Encode()
	}},
	"webhook-started":   {podevent.Source, podevent.DetailTypeWebhookStarted, again[podevent.WebhookStarted]},
	"webhook-heartbeat": {podevent.Source, podevent.DetailTypeWebhookHeartbeat, again[podevent.WebhookHeartbeat]},
	"events-dropped":    {podevent.Source, podevent.DetailTypeEventsDropped, again[podevent.EventsDropped]},
	"targets-changed":   {targetevent.Source, targetevent.DetailTypeTargetsChanged, againTarget[targetevent.TargetsChanged]},
	"removal-held":      {targetevent.Source, targetevent.DetailTypeRemovalHeld, againTarget[targetevent.RemovalHeld]},
	"binding-invalid":   {targetevent.Source, targetevent.DetailTypeBindingInvalid, againTarget[targetevent.BindingInvalid]},
	"binding-changed":   {targetevent.Source, targetevent.DetailTypeBindingChanged, againTarget[targetevent.BindingChanged]},
	"resync-completed":  {targetevent.Source, targetevent.DetailTypeResyncCompleted, againTarget[targetevent.ResyncCompleted]},
}

func again[T any](detail []byte) ([]byte, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(detail))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func againTarget[T targetevent.TargetsChanged | targetevent.RemovalHeld | targetevent.BindingInvalid | targetevent.BindingChanged | targetevent.ResyncCompleted](detail []byte) ([]byte, error) {
	v, err := targetevent.Decode[T](detail)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func schema(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(kind + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func samples(t *testing.T, kind string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("samples/" + kind + ".*json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sample of %s: %v", kind, err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		if out[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestSamplesMeetTheirSchemaAndRoundTrip(t *testing.T) {
	for kind, v := range values {
		s := schema(t, kind)
		for file, text := range samples(t, kind) {
			t.Run(file, func(t *testing.T) {
				if err := s.Validate(parse(t, text)); err != nil {
					t.Error(err)
				}
				var e struct {
					Source     string          `json:"source"`
					DetailType string          `json:"detail-type"`
					Detail     json.RawMessage `json:"detail"`
				}
				if err := json.Unmarshal(text, &e); err != nil {
					t.Fatal(err)
				}
				if e.Source != v.source || e.DetailType != v.detailType {
					t.Errorf("%s %q, want %s %q", e.Source, e.DetailType, v.source, v.detailType)
				}
				detail, err := v.again(e.Detail)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(parse(t, detail), parse(t, e.Detail)) {
					t.Errorf("read and written again it is\n%s", detail)
				}
			})
		}
	}
}

func TestEverySampleAndSchemaIsTested(t *testing.T) {
	for pattern, suffix := range map[string]string{"*.schema.json": ".schema.json", "samples/*.json": ".json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			kind, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), suffix), ".")
			if _, ok := values[kind]; !ok {
				t.Errorf("%s is of no kind that is tested", f)
			}
		}
	}
}

func TestEveryReasonHasASample(t *testing.T) {
	missing := map[podevent.Reason]bool{
		podevent.IPAssigned: true, podevent.Ready: true, podevent.NotReady: true, podevent.Terminating: true,
		podevent.Evicted: true, podevent.Deleted: true, podevent.Finished: true, podevent.Relabelled: true,
	}
	for _, text := range samples(t, "pod-state-change") {
		var e struct{ Detail podevent.Event }
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		delete(missing, e.Detail.Reason)
	}
	if len(missing) > 0 {
		t.Errorf("no sample of %v", missing)
	}
}

// The schemas refuse what they should, and nothing that may be added later.
func TestSchemasRefuse(t *testing.T) {
	for kind := range values {
		s := schema(t, kind)
		for file, text := range samples(t, kind) {
			change := func(f func(event, detail map[string]any)) error {
				event, ok := parse(t, text).(map[string]any)
				detail, ok2 := event["detail"].(map[string]any)
				if !ok || !ok2 {
					t.Fatalf("%s is no event", file)
				}
				f(event, detail)
				return s.Validate(event)
			}
			if err := change(func(_, detail map[string]any) { detail["later"] = true }); err != nil {
				t.Errorf("%s with an added field: %s", file, err)
			}
			for what, f := range map[string]func(event, detail map[string]any){
				"another schema version": func(_, d map[string]any) { d["schema"] = 2 },
				"without a version":      func(_, d map[string]any) { delete(d, "schema") },
				"another detail-type":    func(e, _ map[string]any) { e["detail-type"] = "Pod" },
				"the source of another":  func(e, _ map[string]any) { e["source"] = "aws.ec2" },
				"without a detail":       func(e, _ map[string]any) { delete(e, "detail") },
				"a reason that is none": func(_, d map[string]any) {
					d["reason"], d["cause"], d["webhook"], d["trigger"] = "Bored", "x", "y", "z"
				},
				"a time without a second": func(_, d map[string]any) { d["at"], d["observedAt"] = "noon", "noon" },
			} {
				if change(f) == nil {
					t.Errorf("%s: %s is accepted", file, what)
				}
			}
		}
	}
}

// Each kind of change, action and trigger is one that a schema takes.
func TestSchemasTakeEveryWord(t *testing.T) {
	for kind, words := range map[string]struct {
		set  func(detail map[string]any, word string)
		list []string
	}{
		"binding-changed": {func(d map[string]any, w string) { d["changes"] = []any{w} }, []string{
			string(targetevent.RuleAdded), string(targetevent.RuleRemoved), string(targetevent.RuleEnabled), string(targetevent.RuleDisabled),
			string(targetevent.PatternChanged), string(targetevent.ConstantsChanged)}},
		"resync-completed": {func(d map[string]any, w string) { d["trigger"] = w }, []string{"schedule", "request", "webhook-started", "events-dropped", "hint-expired"}},
	} {
		s := schema(t, kind)
		for file, text := range samples(t, kind) {
			for _, word := range words.list {
				event, _ := parse(t, text).(map[string]any)
				detail, ok := event["detail"].(map[string]any)
				if !ok {
					t.Fatalf("%s is no event", file)
				}
				words.set(detail, word)
				if err := s.Validate(event); err != nil {
					t.Errorf("%s with %s: %v", file, word, err)
				}
			}
			event, _ := parse(t, text).(map[string]any)
			detail, _ := event["detail"].(map[string]any)
			words.set(detail, "bored")
			if s.Validate(event) == nil {
				t.Errorf("%s takes a word that is none", file)
			}
		}
	}
}
