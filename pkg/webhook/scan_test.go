package webhook

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook/webhooktest"
)

// slow decodes with encoding/json what decodeObject decodes with the scanner.
func slow(body []byte) (*podevent.Pod, error) {
	type port struct {
		Name          string
		ContainerPort int32
		HostPort      int32
		Protocol      *string
	}
	type container struct {
		Ports         []port
		RestartPolicy string
	}
	var in struct {
		Metadata struct {
			Name, Namespace, UID, ResourceVersion, DeletionTimestamp string
			Labels, Annotations                                      map[string]string
			DeletionGracePeriodSeconds                               *int64
			OwnerReferences                                          []struct {
				Kind, Name string
				Controller bool
			}
		}
		Spec struct {
			NodeName, ServiceAccountName string
			HostNetwork                  bool
			Containers, InitContainers   []container
		}
		Status struct {
			Phase, PodIP, HostIP string
			PodIPs               []struct{ IP string }
			Conditions           []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	p := &podevent.Pod{
		Namespace: in.Metadata.Namespace, Name: in.Metadata.Name, UID: in.Metadata.UID, ResourceVersion: in.Metadata.ResourceVersion,
		Labels: in.Metadata.Labels, Annotations: in.Metadata.Annotations, ServiceAccount: in.Spec.ServiceAccountName, NodeName: in.Spec.NodeName,
		HostNetwork: in.Spec.HostNetwork, HostIP: in.Status.HostIP, Phase: in.Status.Phase,
		Terminating: in.Metadata.DeletionTimestamp != "", DeletionGracePeriodSeconds: in.Metadata.DeletionGracePeriodSeconds,
	}
	for _, o := range in.Metadata.OwnerReferences {
		if o.Controller {
			p.Owner = &podevent.Owner{Kind: o.Kind, Name: o.Name}
		}
	}
	add := func(c container) {
		for _, port := range c.Ports {
			q := podevent.Port{Name: port.Name, ContainerPort: port.ContainerPort, HostPort: port.HostPort, Protocol: "TCP"}
			if port.Protocol != nil {
				q.Protocol = *port.Protocol
			}
			p.Ports = append(p.Ports, q)
		}
	}
	for _, c := range in.Spec.Containers {
		add(c)
	}
	for _, c := range in.Spec.InitContainers {
		if c.RestartPolicy == "Always" {
			add(c)
		}
	}
	for _, ip := range in.Status.PodIPs {
		if ip.IP != "" {
			p.PodIPs = append(p.PodIPs, ip.IP)
		}
	}
	if len(p.PodIPs) == 0 && in.Status.PodIP != "" {
		p.PodIPs = []string{in.Status.PodIP}
	}
	for _, c := range in.Status.Conditions {
		switch c.Type {
		case "Ready":
			p.Ready = c.Status == "True"
		case "ContainersReady":
			p.ContainersReady = c.Status == "True"
		}
	}
	return p, nil
}

var podTexts = []string{
	`{}`,
	`{"metadata":{"name":"a","labels":{"application":"x","a/b":"\"\\"},"annotations":{"n":"é😀"},"deletionTimestamp":"2026-11-30T10:00:00Z","deletionGracePeriodSeconds":0}}`,
	` { "metadata" : null , "spec" : { "hostNetwork" : true , "nodeName":"n" } , "status" : { } } `,
	`{"metadata":{"labels":null,"ownerReferences":[{"kind":"ReplicaSet","name":"r","controller":true},{"kind":"X","name":"y"}]}}`,
	`{"spec":{"containers":[{"name":"a"},{"ports":[{"containerPort":80,"hostPort":8080,"name":"http","protocol":"UDP"},{"containerPort":81}]}]}}`,
	`{"spec":{"containers":[{"ports":[{"containerPort":1}]}],"initContainers":[{"ports":[{"containerPort":2}]},{"ports":[{"containerPort":3}],"restartPolicy":"Always"}]}}`,
	`{"status":{"podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"},{"status":"False","type":"ContainersReady"},{}]}}`,
	`{"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"},{}],"hostIP":"10.0.0.9","phase":"Running"}}`,
	`{"x":[[[{"a":"]}"}]]],"y":-1.5e9,"z":[true,false,null],"metadata":{"managedFields":[{"fieldsV1":{"f:a\\":{}}}],"uid":"u"}}`,
}

func TestDecodePodAsEncodingJSONDoes(t *testing.T) {
	texts := podTexts
	for _, p := range []webhooktest.Pod{{}, {IPs: []string{"10.64.1.7", "fd00::107"}, Ready: true, Padding: 9000}, {Terminating: true, Annotations: map[string]string{"a": "b"}}} {
		b, err := json.Marshal(p.JSON())
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		want, err := slow([]byte(text))
		if err != nil {
			t.Fatalf("%s: %s", text, err)
		}
		got, err := DecodePod([]byte(text), podevent.AllowList{"*"})
		if err != nil {
			t.Errorf("DecodePod(%s): %s", text, err)
		} else if !reflect.DeepEqual(tidy(got), tidy(want)) {
			t.Errorf("DecodePod(%s) = %+v, want %+v", text, got, want)
		}
	}
}

// tidy makes empty and absent the same.
func tidy(p *podevent.Pod) podevent.Pod {
	q := *p
	if len(q.Labels) == 0 {
		q.Labels = nil
	}
	if len(q.Annotations) == 0 {
		q.Annotations = nil
	}
	if len(q.Ports) == 0 {
		q.Ports = nil
	}
	return q
}

func TestDecodePodRefuses(t *testing.T) {
	for _, text := range []string{
		``, `{`, `[]`, `null`, `7`, `{"metadata"}`, `{"metadata":}`, `{"metadata":{"name":7}}`, `{"metadata":{"labels":[]}}`, `{"a":}`, `{"a":,}`,
		`{"metadata":{"name":"a}}`, `{"metadata":{"name":"a\`, `{"metadata":{"name":"\x"}}`, `{"spec":{"hostNetwork":"yes"}}`, `{"status":{"podIPs":{}}}`,
		`{"x":[}`, `{"x":`, `{"x":` + strings.Repeat("[", 1_000_000), `{"spec":{"containers":[{"ports":[{"containerPort":1.5}]}]}}`,
	} {
		if p, err := DecodePod([]byte(text), nil); err == nil {
			t.Errorf("DecodePod(%.60s) = %+v, want an error", text, p)
		}
	}
}

func FuzzDecodePod(f *testing.F) {
	for _, text := range podTexts {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"metadata":{"name":"a\u0022"},"metadata":{"uid":"b"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodePod(body, podevent.AllowList{"*"})
		want, slowErr := slow(body)
		if slowErr != nil || hasFolded(body) {
			return // the scanner may take what encoding/json refuses; it just must not fall over
		}
		if err != nil {
			t.Skip() // such as a null where a string is due in a list
		}
		if !reflect.DeepEqual(tidy(got), tidy(want)) {
			t.Errorf("DecodePod(%q) = %+v, want %+v", body, got, want)
		}
	})
}

// hasFolded reports whether encoding/json may see members that the scanner does
// not, as it compares their names without case, or merges repeated ones.
func hasFolded(body []byte) bool {
	seen := map[string]bool{}
	folded := false
	s := &scanner{text: body}
	var walk func(path string)
	walk = func(path string) {
		switch s.peek() {
		case '{':
			s.object(func(key []byte) bool {
				at := path + "." + strings.ToLower(string(key))
				folded = folded || seen[at] || strings.ToLower(string(key)) != string(key) && !known[string(key)] || !ascii(key)
				seen[at] = true
				walk(at)
				return true
			})
		case '[':
			s.array(func() { walk(path + "[]" + string(rune('0'+len(seen)))) })
		default:
			s.skip()
		}
	}
	if strings.Count(string(body), "[")+strings.Count(string(body), "{") > 1000 {
		return true
	}
	walk("")
	return folded || s.err != nil || s.peek() != 0
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

var known = map[string]bool{
	"resourceVersion": true, "ownerReferences": true, "deletionTimestamp": true, "deletionGracePeriodSeconds": true, "nodeName": true,
	"hostNetwork": true, "serviceAccountName": true, "initContainers": true, "restartPolicy": true, "containerPort": true, "hostPort": true,
	"podIP": true, "podIPs": true, "hostIP": true,
}

func FuzzDecodeReview(f *testing.F) {
	grace := int64(30)
	pod := webhooktest.Pod{IPs: []string{"10.64.1.7"}}
	for _, r := range []webhooktest.Review{
		{Operation: "UPDATE pods/status", Old: &pod, New: &pod}, {Operation: "DELETE pods", Old: &pod, Grace: &grace},
		{Operation: "CREATE pods/eviction", EvictUID: "u", EvictDryRun: true},
	} {
		f.Add(r.JSON())
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decodeReview(body, nil)
		if err == nil && json.Valid(body) && r.uid != peekUID(body) && strings.Count(string(body), `"uid"`) == 1 && strings.Count(string(body), "request") == 1 {
			t.Errorf("peekUID = %q, want %q", peekUID(body), r.uid)
		}
	})
}
