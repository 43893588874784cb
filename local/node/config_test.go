package node

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/local/node/internal/container"
)

func TestConfigNamesEveryFault(t *testing.T) {
	bad := Config{
		Listen: "0.0.0.0:1", StateDir: "relative", Images: map[string]Image{"x": {Path: "/none"}},
		Nodes: []Spec{{Name: "n", Zone: "z", Address: netip.MustParseAddr("192.0.2.1"), PodRange: netip.MustParsePrefix("10.64.1.0/24")}, {}},
	}
	err := bad.withDefaults().check()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no API server", `state folder "relative"`, `control API "0.0.0.0:1"`, `image x: "/none"`, `node "n": address 192.0.2.1`, `node ""`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s:\n%s", want, err)
		}
	}
	good := Config{Kubeconfig: "x", StateDir: "/state"}.withDefaults()
	if err := good.check(); err != nil {
		t.Error(err)
	}
	if good.AddressCooldown != 30*time.Second || len(good.Nodes) != 3 || good.Nodes[2].ProviderID != "aws:///eu-west-1c/i-0000000000000000c" {
		t.Errorf("defaults are %+v", good)
	}
}

func TestImageNames(t *testing.T) {
	a := &agent{cfg: Config{Images: map[string]Image{"elbridge.local/webhook": {Path: "/a"}, "host:5000/x": {Path: "/b"}, "y:exact": {Path: "/c"}}}}
	for name, want := range map[string]string{
		"elbridge.local/webhook": "/a", "elbridge.local/webhook:dev": "/a", "elbridge.local/webhook@sha256:00": "/a", "elbridge.local/webhook:1@sha256:00": "/a",
		"host:5000/x": "/b", "host:5000/x:2": "/b", "y:exact": "/c", "y": "", "nginx": "", "host:5000": "",
	} {
		if got, _ := a.image(name); got.Path != want {
			t.Errorf("image %s is %q, want %q", name, got.Path, want)
		}
	}
}

func TestSleepCommand(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"sleep|10": 10 * time.Second, "/bin/sleep|0.5": 500 * time.Millisecond, "sh|-c|sleep 3": 3 * time.Second, "/bin/sh|-c|/bin/sleep 3s": 3 * time.Second,
		"sleep|2m": 2 * time.Minute, "sleep|-1": -1, "nginx": -1, "": -1, "sh|-c|sleep 3; exit": -1, "sleep|x": -1, "asleep|1": -1,
	} {
		got, ok := sleepCommand(strings.Split(text, "|"))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q sleeps %s, want %s", text, got, want)
		}
	}
	if d, ok := sleepCommand([]string{"sleep", "infinity"}); !ok || d < 24*365*time.Hour {
		t.Errorf("infinity is %s", d)
	}
}

func TestAnnotationsSteerBuiltInServers(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		AnnotationStartDelay: "1s", AnnotationReadyAfter: "2s", AnnotationTermDelay: "3s", AnnotationExitAfter: "4s", AnnotationExitCode: "5", AnnotationIgnoreSIGTERM: "true",
	}}}
	want := behaviour{startDelay: time.Second, Behaviour: container.Behaviour{
		ReadyAfter: 2 * time.Second, TermDelay: 3 * time.Second, ExitAfter: 4 * time.Second, ExitCode: 5, IgnoreSIGTERM: true,
	}}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if got := behaviourOf(pod, logger); got != want || log.Len() > 0 {
		t.Errorf("got %+v, want %+v; log %s", got, want, log.String())
	}
	for name, bad := range map[string]string{AnnotationStartDelay: "soon", AnnotationReadyAfter: "-1s", AnnotationExitCode: "256"} {
		log.Reset()
		pod.Annotations = map[string]string{name: bad}
		if got := behaviourOf(pod, logger); got != (behaviour{}) || !strings.Contains(log.String(), name) {
			t.Errorf("%s=%s: %+v; log %s", name, bad, got, log.String())
		}
	}
}
