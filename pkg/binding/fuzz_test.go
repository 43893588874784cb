package binding_test

import (
	"errors"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
)

// Whatever comes out of the queue is a message, foreign or malformed.
func FuzzParseMessage(f *testing.F) {
	body, err := binding.Render(web, target(template), podEvent(f), observed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add(podEvent(f))
	f.Add([]byte(`{"binding":{"targetGroup":{"tags":{"a":"b"}},"podCIDRs":["::/0"]},"rule":"x","event":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := binding.ParseMessage(body)
		if err != nil {
			if errors.Is(err, binding.ErrForeign) == errors.Is(err, binding.ErrMalformed) {
				t.Errorf("error %v is neither or both", err)
			}
			return
		}
		if m.Rule == "" || m.EventID == "" || m.Detail.UID == "" || m.Time.IsZero() {
			t.Errorf("message without its names: %+v", m)
		}
	})
}

// A template that is read as a binding makes messages that are read as the same
// binding, whatever the event.
func FuzzFromRule(f *testing.F) {
	f.Add(template, "$", "x")
	f.Add(`{"event":<v>,"rule":"<aws.events.rule-arn>","binding":{"targetGroup":{"name":"a"}}}`, "$", `"}{`)
	f.Add(`{"event":"<v>","rule":<aws.events.rule-arn>,"binding":{}}`, "$.detail[*].x", `\`)
	f.Fuzz(func(t *testing.T, template, path, label string) {
		target := target(template, "v="+path)
		bs, err := binding.FromRule(web, []binding.Target{target}, queue)
		if (len(bs) == 0) != (err != nil) {
			t.Fatalf("bindings %v and error %v", bs, err)
		}
		if err != nil {
			if len(binding.Faults(err)) == 0 {
				t.Errorf("error %v is no fault", err)
			}
			return
		}
		body, err := binding.Render(web, target, podEvent(t), time.Unix(3, 0))
		if err != nil {
			t.Fatal(err)
		}
		m, err := binding.ParseMessage(body)
		if err != nil || show(m.Binding) != show(bs[0]) {
			t.Errorf("message reads %s, %v; the rule reads %s", show(m.Binding), err, show(bs[0]))
		}
	})
}
