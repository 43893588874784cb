package podevent_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/podevent"
)

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// roundTrip encodes and decodes an event and checks that it stays the same.
func roundTrip(t fataler, e podevent.Event) {
	t.Helper()
	detail, err := e.Encode()
	if err != nil {
		t.Fatalf("Encode: %s", err)
	}
	got, err := podevent.Decode(detail)
	if err != nil {
		t.Fatalf("Decode(%.300s): %s", detail, err)
	}
	again, err := got.Encode()
	if err != nil || string(again) != string(detail) {
		t.Fatalf("Encode(Decode(%.300s)) = %.300s, %v", detail, again, err)
	}
}

const least = `{"schema":1,"cluster":"c","namespace":"n","name":"p","uid":"u"}`

func TestDecode(t *testing.T) {
	tests := map[string]struct{ detail, want string }{ // want is what is in the error
		"least":                  {least, ""},
		"unknown fields":         {`{"schema":1,"cluster":"c","namespace":"n","name":"p","uid":"u","new":{"a":[1]},"reason":"Frozen"}`, ""},
		"later schema":           {`{"schema":2,"cluster":"c","namespace":"n","name":"p","uid":"u"}`, "detail.schema 2: want 1"},
		"no schema":              {`{"cluster":"c","namespace":"n","name":"p","uid":"u"}`, "detail.schema 0: want 1"},
		"names no pod":           {`{"schema":1,"cluster":"c"}`, "detail.uid is empty"},
		"no JSON":                {`pod`, "pod event: "},
		"nothing":                {``, "pod event: "},
		"null":                   {`null`, "detail.schema 0"},
		"a list":                 {`[]`, "pod event: "},
		"wrong type":             {`{"schema":1,"cluster":7}`, "pod event: "},
		"time that is none":      {`{"schema":1,"cluster":"c","namespace":"n","name":"p","uid":"u","observedAt":"noon"}`, "pod event: "},
		"an envelope by mistake": {`{"version":"0","detail":` + least + `}`, "detail.schema 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := podevent.Decode([]byte(tt.detail))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Decode(%s): %v, want %q", tt.detail, err, tt.want)
			}
		})
	}
}

func TestEncodeWritesTimesAndEmptyObjects(t *testing.T) {
	e := podevent.FromPod("prod", pod("ip=a"), nil, time.Date(2026, 11, 30, 13, 0, 0, 120e6, time.FixedZone("", 3600)))
	e.Labels = map[string]string{"a": "<&>"}
	detail, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"observedAt":"2026-11-30T12:00:00.120Z"`, `"annotations":{}`, `"labels":{"a":"<&>"}`, `"hostNetwork":false`} {
		if !strings.Contains(string(detail), want) {
			t.Errorf("no %s in %s", want, detail)
		}
	}
}

// Whatever the pod looks like, an entry stays below the limit, and what is cut is
// cut in order, and counted.
func TestEncode_FitsWhateverThePodLooksLike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 10, 600})
		value := rapid.SampledFrom([]string{"", "v", strings.Repeat("x", 63), strings.Repeat("\x01", 100), strings.Repeat("ü\"", 400)})
		many := func(name string) map[string]string {
			m, n, v := map[string]string{}, size.Draw(t, name), value.Draw(t, name)
			for i := range n {
				m[fmt.Sprintf("example.com/%s-%d", name, i)] = v
			}
			return m
		}
		p := pod("ip=a")
		p.Labels, p.Annotations = many("label"), many("annotation")
		for i := range size.Draw(t, "ports") {
			p.Ports = append(p.Ports, podevent.Port{Name: value.Draw(t, "name"), ContainerPort: int32(i), Protocol: "TCP"})
		}
		e := podevent.FromPod("prod", p, podevent.AllowList{"*"}, noon)
		e.Previous = &podevent.Previous{Labels: many("previous")}
		before := *e.Previous
		detail, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(detail) > podevent.MaxBytes {
			t.Fatalf("%d bytes, want at most %d", len(detail), podevent.MaxBytes)
		}
		if len(before.Labels) != len(e.Previous.Labels) {
			t.Fatal("the event itself was cut")
		}
		got, err := podevent.Decode(detail)
		if err != nil {
			t.Fatal(err)
		}
		cut := podevent.Cut{}
		if got.Cut != nil {
			cut = *got.Cut
		}
		previous := 0
		if got.Previous != nil {
			previous = len(got.Previous.Labels)
		}
		if cut.Annotations != len(e.Annotations)-len(got.Annotations) || cut.Ports != len(e.Ports)-len(got.Ports) ||
			cut.Labels != len(e.Labels)+len(e.Previous.Labels)-len(got.Labels)-previous {
			t.Fatalf("cut %+v, but %d of %d annotations, %d of %d ports, %d of %d labels are left", cut,
				len(got.Annotations), len(e.Annotations), len(got.Ports), len(e.Ports), len(got.Labels), len(e.Labels))
		}
		if cut.Ports > 0 && len(got.Annotations) > 0 || cut.Labels > 0 && len(got.Ports) > 0 || len(got.Labels) < len(e.Labels) && previous > 0 {
			t.Fatalf("cut %+v in the wrong order", cut)
		}
	})
}

func TestEncodeCutsAsLittleAsItCan(t *testing.T) {
	p := pod("ip=a app=x")
	p.Annotations = map[string]string{"large": strings.Repeat("x", podevent.MaxBytes), "small": "1"}
	detail, err := podevent.FromPod("prod", p, podevent.AllowList{"*"}, noon).Encode()
	if err != nil {
		t.Fatal(err)
	}
	e, err := podevent.Decode(detail)
	if err != nil || e.Annotations["small"] != "1" || e.Labels["app"] != "x" || e.Cut == nil || *e.Cut != (podevent.Cut{Annotations: 1}) {
		t.Errorf("left %v, cut %+v, %v: want the large annotation cut and nothing else", e.Annotations, e.Cut, err)
	}
}

func TestEncodeRefusesWhatIsNoPod(t *testing.T) {
	p := pod("ip=a")
	p.Name = strings.Repeat("x", podevent.MaxBytes)
	if _, err := podevent.FromPod("prod", p, nil, noon).Encode(); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("a name of %d bytes: %v", len(p.Name), err)
	}
}

func TestEnvelope(t *testing.T) {
	e := podevent.FromPod("prod", pod("ip=a app=x"), nil, noon)
	envelope, err := e.Envelope("e-1", "111122223333", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := envelope.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	detail, _ := got["detail"].(map[string]any)
	delete(got, "detail")
	want := map[string]any{
		"version": "0", "id": "e-1", "detail-type": "Pod State Change", "source": "elbridge", "account": "111122223333",
		"time": "2026-11-30T12:00:00Z", "region": "eu-west-1", "resources": []any{"pod/u", "node/prod/node-a"},
	}
	if !reflect.DeepEqual(got, want) || detail["uid"] != "u" {
		t.Errorf("envelope %s", text)
	}
	if b, err := (podevent.Envelope{Detail: json.RawMessage(`{}`)}).JSON(); err != nil || !strings.Contains(string(b), `"resources":[]`) {
		t.Errorf("envelope without resources: %s, %v", b, err)
	}
	if _, err := (podevent.Envelope{Detail: json.RawMessage(`{`)}).JSON(); err == nil {
		t.Error("an envelope around half a detail")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(least))
	for _, text := range []string{"ip=a ready app=x note=1", "ip=a,b terminating", "failed"} {
		detail, err := podevent.FromPod("prod", pod(text), podevent.AllowList{"*"}, noon).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(detail)
	}
	f.Fuzz(func(t *testing.T, detail []byte) {
		e, err := podevent.Decode(detail)
		if err != nil || e.ObservedAt.Year() > 9999 || e.ObservedAt.Year() < 0 {
			return
		}
		if _, err := e.Encode(); err == nil {
			roundTrip(t, e)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e := podevent.FromPod("prod", pod("ip=a ready app=x note=1"), podevent.AllowList{"*"}, noon)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleObserve() {
	before := &podevent.Pod{Namespace: "ingress", Name: "web-0", UID: "u-1", ResourceVersion: "340"}
	after := &podevent.Pod{Namespace: "ingress", Name: "web-0", UID: "u-1", ResourceVersion: "340", PodIPs: []string{"10.64.1.7"}}
	for _, e := range podevent.Observe(podevent.Change{Cluster: "prod", Operation: podevent.StatusUpdate, Old: before, New: after}) {
		fmt.Println(e.Reason, e.PodIP, "after version", e.ResourceVersion)
	}
	// Output: IPAssigned 10.64.1.7 after version 340
}
