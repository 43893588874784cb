package binding_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/podevent"
)

var observed = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)

// podEvent is a pod event as the bus delivers it.
func podEvent(t testing.TB) []byte {
	t.Helper()
	pod := podevent.Pod{
		Namespace: "ingress", Name: "web-1", UID: "u-1", ResourceVersion: "7", NodeName: "node-a",
		Labels: map[string]string{"app.kubernetes.io/name": "web", "weird": "a"},
		PodIPs: []string{"10.64.1.7"}, HostIP: "10.64.0.11", Phase: "Running",
	}
	e, err := podevent.FromPod("prod", &pod, nil, observed).Envelope("e-1", "111122223333", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := e.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseMessage(t *testing.T) {
	body, err := binding.Render(web, target(template), podEvent(t), observed)
	if err != nil {
		t.Fatal(err)
	}
	m, err := binding.ParseMessage(body)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(m.Binding); got != "arn port=9999" || m.Binding.Rule != ruleARN || !m.Binding.Enabled {
		t.Errorf("binding %s of %s", got, m.Binding.Rule)
	}
	if m.Rule != ruleARN || m.EventID != "e-1" || m.Account != "111122223333" || m.Region != "eu-west-1" ||
		m.Source != podevent.Source || m.DetailType != podevent.DetailTypePodStateChange || m.ReplayName != "" {
		t.Errorf("message %+v", m)
	}
	if !m.Time.Equal(observed.Truncate(time.Second)) {
		t.Errorf("time %v", m.Time)
	}
	if m.Detail.UID != "u-1" || m.Detail.PodIP != "10.64.1.7" || m.Detail.Labels["app.kubernetes.io/name"] != "web" {
		t.Errorf("detail %+v", m.Detail)
	}
	if string(m.Event) != string(podEvent(t)) {
		t.Errorf("event %s", m.Event)
	}
}

func TestParseMessage_Unusable(t *testing.T) {
	good, err := binding.Render(web, target(template), podEvent(t), observed)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("%s is not in %s", old, good)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	heartbeat := strings.Replace(string(podEvent(t)), "Pod State Change", "Webhook Heartbeat", 1)
	tests := map[string]struct {
		body string
		is   error
		want string // part of the message
	}{
		"empty":                       {``, binding.ErrMalformed, "$: not valid JSON"},
		"not JSON":                    {`{`, binding.ErrMalformed, "$: not valid JSON"},
		"not an object":               {`[1]`, binding.ErrMalformed, `$: [1]: want {"binding"`},
		"something else":              {`{"Records":[]}`, binding.ErrMalformed, "$.Records: unknown key"},
		"member misspelled":           {replace(`"binding"`, `"bindng"`), binding.ErrMalformed, "$.bindng: unknown key, did you mean binding"},
		"P089 other source":           {replace(`"source":"elbridge"`, `"source":"aws.ec2"`), binding.ErrForeign, `source "aws.ec2"`},
		"P089 other detail-type":      {replace(`Pod State Change`, `Webhook Heartbeat`), binding.ErrForeign, `detail-type "Webhook Heartbeat"`},
		"foreign beats bad constants": {strings.Replace(replace(`"source":"elbridge"`, `"source":"x"`), `"port":9999`, `"port":0`, 1), binding.ErrForeign, `source "x"`},
		"a foreign event alone":       {heartbeat, binding.ErrForeign, "Webhook Heartbeat"},
		"a pod event alone":           {string(podEvent(t)), binding.ErrMalformed, "no input transformer"},
		"bad constants":               {replace(`"port":9999`, `"port":0,"x":1`), binding.ErrMalformed, "$.binding.x: unknown constant"},
		"event in quotes":             {`{"binding":{},"rule":"` + ruleARN + `","event":"{}"}`, binding.ErrMalformed, `without quotes around it`},
		"event of wrong type":         {replace(`"id":"e-1"`, `"id":1`), binding.ErrMalformed, "$.event: json"},
		"no id":                       {replace(`"id":"e-1"`, `"id":""`), binding.ErrMalformed, "$.event.id: missing"},
		"no time":                     {replace(`"time":"2026-01-02T03:04:05Z"`, `"time":"now"`), binding.ErrMalformed, `$.event.time: "now"`},
		"rule is no ARN":              {replace(ruleARN, "web"), binding.ErrMalformed, `$.rule: "web" is no ARN`},
		"other schema version":        {replace(`"schema":1`, `"schema":2`), binding.ErrMalformed, "$.event.detail: "},
		"names no pod":                {replace(`"uid":"u-1"`, `"uid":""`), binding.ErrMalformed, "$.event.detail: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := binding.ParseMessage([]byte(tt.body))
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %v and %q in it", err, tt.is, tt.want)
			}
			for _, other := range []error{binding.ErrForeign, binding.ErrMalformed} {
				if !errors.Is(tt.is, other) && errors.Is(err, other) {
					t.Errorf("error %v is %v too", err, other)
				}
			}
		})
	}
}

func TestParseMessage_ReplayIsNamed(t *testing.T) {
	replayed := strings.Replace(string(podEvent(t)), `"version":"0"`, `"version":"0","replay-name":"yesterday"`, 1)
	body, err := binding.Render(web, target(template), []byte(replayed), observed)
	if err != nil {
		t.Fatal(err)
	}
	m, err := binding.ParseMessage(body)
	if err != nil || m.ReplayName != "yesterday" {
		t.Errorf("replay %q, %v", m.ReplayName, err)
	}
}
