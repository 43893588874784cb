package environ_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/local/node/internal/environ"
	"github.com/elbridge/elbridge/local/node/internal/volume"
)

func TestExpand(t *testing.T) {
	var v environ.Variables
	v.Set("A", "1")
	v.Set("B", "$(A)")
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$(NONE)": "$(NONE)", "$$(A)": "$(A)", "$": "$", "$(": "$(",
		"$(A": "$(A", "a$b": "a$b", "$()": "$()", "$$$(A)": "$1", "100$": "100$", "$(B)": "$(A)", "$$": "$",
	} {
		if got := v.Expand(in); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"$(A)", "$$(A)", "$(", "$", "$(NONE)$$"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var v environ.Variables
		v.Set("A", "1")
		got := v.Expand(s)
		if !strings.Contains(s, "$") && got != s {
			t.Errorf("Expand(%q) = %q", s, got)
		}
		if escaped := strings.ReplaceAll(s, "$", "$$"); v.Expand(escaped) != s {
			t.Errorf("Expand(%q) = %q, want %q", escaped, v.Expand(escaped), s)
		}
	})
}

func TestRewrite(t *testing.T) {
	var r environ.Rewrite
	r.Path("/tls", "/state/tls")
	r.Path("/tls/inner/", "/state/inner")
	r.Path("/", "/nowhere")
	r.Address("10.64.1.7", "127.64.1.7")
	r.Address("fd00::107", "127.65.1.7")
	for in, want := range map[string]string{
		"/tls":                      "/state/tls",
		"/tls/tls.crt":              "/state/tls/tls.crt",
		"/tls/inner/x":              "/state/inner/x",
		"--cert=/tls/a,/tls/b":      "--cert=/state/tls/a,/state/tls/b",
		"file:///tls/x":             "file:///tls/x", // a path of another root
		"/tlsx":                     "/tlsx",
		"/other/tls/x":              "/other/tls/x",
		"10.64.1.7:8443":            "127.64.1.7:8443",
		"10.64.1.70":                "10.64.1.70",
		"110.64.1.7":                "110.64.1.7",
		"http://10.64.1.7/":         "http://127.64.1.7/",
		"[fd00::107]:8443":          "[127.65.1.7]:8443",
		"fd00::1070":                "fd00::1070",
		"10.64.1.7,10.64.1.7":       "127.64.1.7,127.64.1.7",
		"--x=/tls/a --y=10.64.1.7;": "--x=/state/tls/a --y=127.64.1.7;",
		"":                          "",
	} {
		if got := r.Apply(in); got != want {
			t.Errorf("Apply(%q) = %q, want %q", in, got, want)
		}
	}
}

var pod = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "web", UID: "uid-1",
		Labels: map[string]string{"app": "web", "b": "2"}, Annotations: map[string]string{"note": "x"},
	},
	Spec: v1.PodSpec{
		NodeName: "node-a", ServiceAccountName: "robot",
		Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Limits:   v1.ResourceList{"memory": resource.MustParse("20Mi"), "cpu": resource.MustParse("250m")},
			Requests: v1.ResourceList{"memory": resource.MustParse("10Mi")},
		}}},
	},
	Status: v1.PodStatus{
		PodIP: "10.64.1.7", PodIPs: []v1.PodIP{{IP: "10.64.1.7"}, {IP: "fd00::107"}}, HostIP: "10.64.0.11", HostIPs: []v1.HostIP{{IP: "10.64.0.11"}},
	},
}

func TestField(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.name": "web", "metadata.namespace": "ns", "metadata.uid": "uid-1", "metadata.labels['app']": "web", "metadata.labels['none']": "",
		"metadata.annotations['note']": "x", "metadata.labels": "app=\"web\"\nb=\"2\"", "spec.nodeName": "node-a", "spec.serviceAccountName": "robot",
		"status.podIP": "10.64.1.7", "status.podIPs": "10.64.1.7,fd00::107", "status.hostIP": "10.64.0.11", "status.hostIPs": "10.64.0.11",
	} {
		if got, err := environ.Field(pod, path); err != nil || got != want {
			t.Errorf("Field(%s) = %q, %v, want %q", path, got, err, want)
		}
	}
	if _, err := environ.Field(pod, "spec.hostname"); err == nil {
		t.Error("an unknown field has a value")
	}
}

func TestResource(t *testing.T) {
	node := v1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")}
	for name, want := range map[string]string{
		"limits.memory": "20971520", "limits.memory/1Mi": "20", "requests.memory/1Ki": "10240", "limits.cpu": "1", "limits.cpu/1m": "250",
		"limits.ephemeral-storage/1Mi": "1024", "requests.cpu": "0",
	} {
		field, divisor, _ := strings.Cut(name, "/")
		ref := &v1.ResourceFieldSelector{Resource: field}
		if divisor != "" {
			ref.Divisor = resource.MustParse(divisor)
		}
		if got, err := environ.Resource(pod, "c", ref, node); err != nil || got != want {
			t.Errorf("%s = %s, %v, want %s", name, got, err, want)
		}
	}
	if _, err := environ.Resource(pod, "none", &v1.ResourceFieldSelector{Resource: "limits.cpu"}, node); err == nil {
		t.Error("a container that does not exist has limits")
	}
}

// objects is a Source of secrets and config maps by name.
type objects map[string]map[string][]byte

func (o objects) get(name string) (map[string][]byte, error) {
	if data, ok := o[name]; ok {
		return data, nil
	}
	return nil, volume.ErrNotFound
}

func (o objects) Secret(_ context.Context, _, name string) (map[string][]byte, error) {
	return o.get(name)
}
func (o objects) ConfigMap(_ context.Context, _, name string) (map[string][]byte, error) {
	return o.get(name)
}
func (o objects) Token(context.Context, *v1.Pod, string, time.Duration) (string, time.Time, error) {
	return "token", time.Time{}, nil
}
func (o objects) Field(p *v1.Pod, _ string, ref *v1.ObjectFieldSelector, _ *v1.ResourceFieldSelector) (string, error) {
	return environ.Field(p, ref.FieldPath)
}

func TestBuild(t *testing.T) {
	src := objects{"s": {"key": []byte("secret")}, "m": {"K": []byte("map")}}
	yes := true
	secret := func(name, key string, optional *bool) *v1.EnvVarSource {
		return &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}
	}
	c := &v1.Container{
		EnvFrom: []v1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "m"}}}},
		Env: []v1.EnvVar{
			{Name: "NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "TWICE", Value: "$(NAME)-$(P_K)-$(BASE)"},
			{Name: "SECRET", ValueFrom: secret("s", "key", nil)},
			{Name: "NOT_THERE", ValueFrom: secret("none", "key", &yes)},
			{Name: "BASE", Value: "mine"},
		},
	}
	var v environ.Variables
	v.Set("BASE", "base")
	if err := v.Build(t.Context(), src, pod, c); err != nil {
		t.Fatal(err)
	}
	got := v.List(func(_, value string) string { return value })
	if want := []string{"BASE=mine", "P_K=map", "NAME=web", "TWICE=web-map-base", "SECRET=secret"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, bad := range map[string]*v1.EnvVarSource{"no such secret": secret("none", "key", nil), "no such key": secret("s", "none", nil), "no source": {}} {
		if err := v.Build(t.Context(), src, pod, &v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: bad}}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
