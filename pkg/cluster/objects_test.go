package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"pgregory.net/rapid"
)

type fataler interface{ Fatal(...any) }

// encoded is an object as the API server writes it.
func encoded(t fataler, v runtime.Object) []byte {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	kinds, _, err := scheme.ObjectKinds(v)
	if err != nil {
		t.Fatal(err)
	}
	v.GetObjectKind().SetGroupVersionKind(kinds[0])
	b, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func enveloped(t fataler, kind string, raw []byte) []byte {
	b, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(magic), b...)
}

// eventFrame is an event of a stream as the API server writes it.
func eventFrame(t fataler, kind string, object []byte) []byte {
	b, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// listed is what a list brings.
func listed(body io.Reader) (pods []Inspection, says []about, err error) {
	err = newObjects().list(body, func(a about) error { says = append(says, a); return nil }, func(i Inspection) { pods = append(pods, i) })
	return pods, says, err
}

func drawList(t *rapid.T) *corev1.PodList {
	l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: rapid.String().Draw(t, "continue"), RemainingItemCount: new(int64(5))}}
	for range rapid.IntRange(0, 4).Draw(t, "pods") {
		l.Items = append(l.Items, *drawPod(t))
	}
	return l
}

// A list brings what Kubernetes' own code would have, be it in protobuf or JSON,
// whatever the sizes in which it comes.
func TestListIsKubernetes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawList(t)
		body := encoded(t, l)
		if rapid.Bool().Draw(t, "JSON") {
			var err error
			if body, err = json.Marshal(l); err != nil {
				t.Fatal(err)
			}
			l = &corev1.PodList{}
			if err := json.Unmarshal(body, l); err != nil { // JSON has its own idea of some strings
				t.Fatal(err)
			}
		}
		pods, says, err := listed(inPieces{bytes.NewReader(body), rapid.IntRange(1, 5000).Draw(t, "piece")})
		if err != nil || len(pods) != len(l.Items) || len(says) != 1 || says[0] != (about{l.ResourceVersion, l.Continue}) {
			t.Fatalf("%d pods, %+v, error %v; want %d", len(pods), says, err, len(l.Items))
		}
		for i := range pods {
			if err := same(pods[i], oracle(&l.Items[i])); err != nil {
				t.Error(err)
			}
		}
	})
}

// inPieces reads no more than so many bytes at once.
type inPieces struct {
	io.Reader
	size int
}

func (p inPieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }

// However a list is cut, it isn't taken for whole, and no pod of it is half one.
func TestCutLists_I8(t *testing.T) {
	whole := rapid.Custom(drawList).Filter(func(l *corev1.PodList) bool { return len(l.Items) > 2 }).Example(1)
	body := encoded(t, whole)
	raw, err := whole.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	end := bytes.Index(body, raw) + len(raw) // what follows says how it is encoded
	o := newObjects()
	for i := range end {
		var pods []Inspection
		err := o.list(bytes.NewReader(body[:i]), func(about) error { return nil }, func(i Inspection) { pods = append(pods, i) })
		if err == nil {
			t.Fatalf("%d of %d bytes are a list of %d pods", i, end, len(pods))
		}
		for n := range pods {
			if err := same(pods[n], oracle(&whole.Items[n])); err != nil {
				t.Fatalf("%d of %d bytes: %v", i, end, err)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	meta := []byte{byte(podListMetadata<<3 | 2), 4, byte(listMetaResourceVersion<<3 | 2), 2, '7', '7'}
	item := []byte{byte(podListItems<<3 | 2), 0}
	huge := append([]byte{byte(podListItems<<3 | 2)}, binary.AppendUvarint(nil, maxMessage+1)...)
	gone := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
	twice := append(enveloped(t, "PodList", meta), enveloped(t, "PodList", item)[len(magic):]...)
	tests := map[string]struct {
		body    []byte
		pods    int
		fault   string // part of the error; "": none
		expired bool
	}{
		"no pods":                          {body: enveloped(t, "PodList", meta)},
		"nothing is said of the list":      {body: enveloped(t, "PodList", item), pods: 1},
		"it ends with what is said of it":  {body: enveloped(t, "PodList", append(append([]byte{}, item...), meta...)), pods: 1},
		"unknown fields":                   {body: enveloped(t, "PodList", append([]byte{14 << 3, 1, 15<<3 | 2, 1, 'x', 15<<3 | 5, 1, 2, 3, 4, 15<<3 | 1, 1, 2, 3, 4, 5, 6, 7, 8}, item...)), pods: 1},
		"I8 nothing":                       {body: nil, fault: "without an object"},
		"I8 the magic alone":               {body: []byte(magic), fault: "envelope without an object"},
		"I8 no object":                     {body: []byte(magic + "\x0a\x0d\x0a\x02v1\x12\x07PodList"), fault: "envelope without an object"},
		"I8 another's":                     {body: []byte("<html>no such page</html>"), fault: "want an object in Kubernetes' protobuf"},
		"I8 a pod":                         {body: encoded(t, &corev1.Pod{}), fault: `kind "Pod": want PodList`},
		"I8 an object without a type":      {body: enveloped(t, "", meta), fault: `kind "": want PodList`},
		"I8 JSON of something else":        {body: []byte(`{"kind":"Table","apiVersion":"meta.k8s.io/v1"}`), fault: "Table"},
		"I8 JSON that is cut":              {body: []byte(`{"kind":"PodList","apiVersion":"v1","items":[`), fault: "unexpected end"},
		"I8 two lists":                     {body: twice, fault: "a second PodList"},
		"I8 a pod too large":               {body: enveloped(t, "PodList", append(append([]byte{}, item...), huge...)), pods: 1, fault: fmt.Sprint("want at most ", maxMessage)},
		"I8 a pod larger than the list":    {body: enveloped(t, "PodList", []byte{byte(podListItems<<3 | 2), 9, 1}), fault: io.ErrUnexpectedEOF.Error()},
		"I8 a list larger than the answer": {body: []byte(magic + "\x0a\x0d\x0a\x02v1\x12\x07PodList\x12\x7f\x12\x00"), pods: 1, fault: io.ErrUnexpectedEOF.Error()},
		"I8 pods that are numbers":         {body: enveloped(t, "PodList", []byte{byte(podListItems << 3), 1}), fault: "want wire type 2"},
		"I8 an object that is a number":    {body: []byte(magic + "\x0a\x0d\x0a\x02v1\x12\x07PodList\x10\x01"), fault: "want wire type 2"},
		"I8 a malformed pod":               {body: enveloped(t, "PodList", append(append([]byte{}, item...), byte(podListItems<<3|2), 2, byte(podMetadata<<3), 1)), pods: 1, fault: "a pod of it"},
		"I8 a Status":                      {body: encoded(t, gone), fault: "", expired: true},
		"I8 a Status in JSON":              {body: []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired"}`), expired: true},
		"I8 a Status of success":           {body: encoded(t, &metav1.Status{Status: metav1.StatusSuccess}), fault: "in place of an object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pods, _, err := listed(bytes.NewReader(tt.body))
			if len(pods) != tt.pods || (err != nil) != (tt.fault != "" || tt.expired) || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%d pods, error %v; want %d and %q", len(pods), err, tt.pods, tt.fault)
			}
			if apierrors.IsResourceExpired(err) != tt.expired {
				t.Errorf("error %v; want expired: %v", err, tt.expired)
			}
		})
	}
}

// A frame is whole, or it is the stream's fault; only between frames is its end.
func TestCutFrames_I8(t *testing.T) {
	whole := rapid.Custom(drawPod).Example(2)
	object := encoded(t, whole)
	frame := eventFrame(t, "ADDED", object)
	for i := range frame {
		_, p, err := newFrames(bytes.NewReader(frame[:i])).next()
		if p != nil || err == nil || (i == 0) != (err == io.EOF) { //nolint:errorlint // what is tested
			t.Fatalf("%d of %d bytes: pod %+v, error %v", i, len(frame), p, err)
		}
	}
	for i := range object { // a frame of its own length, with less in it
		_, p, err := newFrames(bytes.NewReader(eventFrame(t, "ADDED", object[:i]))).next()
		if err == nil && same(Inspection{Pod: p}, Inspection{Pod: oracle(whole).Pod}) != nil || err == io.EOF { //nolint:errorlint // what is tested
			t.Fatalf("an object of %d of %d bytes: pod %+v, error %v", i, len(object), p, err)
		}
	}
	f := newFrames(bytes.NewReader(append(append([]byte{}, frame...), frame...)))
	for range 2 {
		kind, p, err := f.next()
		if err != nil || kind != "ADDED" {
			t.Fatalf("%s, error %v", kind, err)
		}
		if err := same(Inspection{Pod: p}, Inspection{Pod: oracle(whole).Pod}); err != nil {
			t.Error(err)
		}
	}
	_, _, err := newFrames(bytes.NewReader([]byte{0xff, 0, 0, 0})).next()
	if err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("a frame of 4 GB: error %v", err)
	}
}

func FuzzAnswers(f *testing.F) {
	for i := range 10 {
		l := rapid.Custom(drawList).Example(i)
		f.Add(encoded(f, l))
	}
	pod := encoded(f, rapid.Custom(drawPod).Example(3))
	f.Add(eventFrame(f, "MODIFIED", pod))
	f.Add(pod)
	f.Add(encoded(f, &metav1.Status{Status: metav1.StatusFailure, Code: 410}))
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`))
	scheme, err := newScheme()
	if err != nil {
		f.Fatal(err)
	}
	theirs := protobuf.NewSerializer(scheme, scheme)
	f.Fuzz(func(t *testing.T, body []byte) {
		_, p, err := newFrames(bytes.NewReader(body)).next()
		if err == nil && p == nil || err != nil && p != nil {
			t.Errorf("an event with pod %+v, error %v", p, err)
		}
		pods, _, err := listed(bytes.NewReader(body))
		v, _, their := theirs.Decode(body, nil, nil)
		if err != nil || their != nil {
			return
		}
		l, ok := v.(*corev1.PodList)
		if !ok || len(l.Items) != len(pods) {
			t.Fatalf("%d pods, Kubernetes' code reads %T", len(pods), v)
		}
		for i := range pods {
			if err := same(pods[i], oracle(&l.Items[i])); err != nil {
				t.Error(err)
			}
		}
	})
}
