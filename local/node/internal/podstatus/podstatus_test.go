package podstatus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/local/node/internal/podstatus"
)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// pod makes a pod from "name name? name~ name^": ? is an init container, ~ a
// sidecar; "policy=Never" and "gate=example.com/x:True" set what they say.
func pod(t *testing.T, text string) *v1.Pod {
	t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 7}, Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways}}
	for _, word := range strings.Fields(text) {
		key, value, set := strings.Cut(word, "=")
		name := strings.TrimRight(word, "?~")
		c := v1.Container{Name: name, Image: "image"}
		switch {
		case set && key == "policy":
			p.Spec.RestartPolicy = v1.RestartPolicy(value)
		case set && key == "gate":
			kind, status, _ := strings.Cut(value, ":")
			p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: v1.PodConditionType(kind)})
			if status != "" {
				p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodConditionType(kind), Status: v1.ConditionStatus(status)})
			}
		case strings.HasSuffix(word, "?"):
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		case strings.HasSuffix(word, "~"):
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

// runtime makes what a node knows from "ip sandbox finished evicted dropip" and
// "name=run", "name=ready", "name=exit3" or "name=wait3" (waits after exit 3).
func runtime(t *testing.T, text string) podstatus.Runtime {
	t.Helper()
	rt := podstatus.Runtime{NodeIPs: []string{"10.64.0.11"}, Started: noon, Containers: map[string]podstatus.Container{}}
	for _, word := range strings.Fields(text) {
		name, state, isContainer := strings.Cut(word, "=")
		switch {
		case word == "ip":
			rt.PodIPs = []string{"10.64.1.7", "fd00::107"}
		case word == "sandbox":
			rt.Sandbox = true
		case word == "finished":
			rt.Finished = true
		case word == "dropip":
			rt.DropIP = true
		case word == "evicted":
			rt.Evicted = &podstatus.Eviction{Reason: "Evicted", Message: "memory"}
		case isContainer:
			rt.Containers[name] = containerIn(t, state)
		default:
			t.Fatalf("runtime %q", word)
		}
	}
	return rt
}

func containerIn(t *testing.T, state string) podstatus.Container {
	t.Helper()
	c := podstatus.Container{ID: "elbridge://1"}
	var code int32
	switch {
	case state == "run", state == "ready":
		c.State.Running = &v1.ContainerStateRunning{}
		c.Started, c.Ready = true, state == "ready"
	case strings.HasPrefix(state, "exit"):
		_, _ = fmt.Sscanf(state, "exit%d", &code)
		c.State.Terminated = &v1.ContainerStateTerminated{ExitCode: code}
	case strings.HasPrefix(state, "wait"):
		_, _ = fmt.Sscanf(state, "wait%d", &code)
		c.State.Waiting = &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		c.Last.Terminated = &v1.ContainerStateTerminated{ExitCode: code}
	default:
		t.Fatalf("state %q", state)
	}
	return c
}

// brief is "phase[(reason)] [ip] condition condition:Reason ... | container=state ...":
// conditions that hold by name, others by their reason if they have one.
func brief(s v1.PodStatus) string {
	words := []string{string(s.Phase)}
	if s.Reason != "" {
		words[0] += "(" + s.Reason + ")"
	}
	if s.PodIP != "" {
		words = append(words, "ip")
	}
	short := map[v1.PodConditionType]string{
		v1.PodReadyToStartContainers: "net", v1.PodInitialized: "init", v1.PodReady: "ready",
		v1.ContainersReady: "containers", v1.PodScheduled: "", v1.DisruptionTarget: "disrupted",
	}
	for _, c := range s.Conditions {
		switch name := short[c.Type]; {
		case name == "":
		case c.Status == v1.ConditionTrue:
			words = append(words, name)
		case c.Reason != "":
			words = append(words, name+":"+c.Reason)
		}
	}
	words = append(words, "|")
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		state := "run"
		switch {
		case c.State.Waiting != nil:
			state = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			state = fmt.Sprintf("exit%d", c.State.Terminated.ExitCode)
		}
		if c.Ready {
			state += "!"
		}
		words = append(words, c.Name+"="+state)
	}
	return strings.Join(words, " ")
}

func TestOf(t *testing.T) {
	const notReady = "ready:ContainersNotReady containers:ContainersNotReady"
	tests := map[string]struct{ pod, runtime, want string }{
		"accepted":                    {"a", "", "Pending init " + notReady + " | a=ContainerCreating"},
		"has an address":              {"a", "ip sandbox", "Pending ip net init " + notReady + " | a=ContainerCreating"},
		"started":                     {"a", "ip sandbox a=run", "Running ip net init " + notReady + " | a=run"},
		"ready":                       {"a", "ip sandbox a=ready", "Running ip net init ready containers | a=run!"},
		"one of two is ready":         {"a b", "ip sandbox a=ready b=run", "Running ip net init " + notReady + " | a=run! b=run"},
		"one of two is created":       {"a b", "ip sandbox a=ready", "Pending ip net init " + notReady + " | a=run! b=ContainerCreating"},
		"dead, will be restarted":     {"a", "ip sandbox a=exit1", "Running ip net init " + notReady + " | a=exit1"},
		"backs off":                   {"a", "ip sandbox a=wait1", "Running ip net init " + notReady + " | a=CrashLoopBackOff"},
		"all dead but Always":         {"a b", "ip sandbox a=exit0 b=exit0", "Running ip net init " + notReady + " | a=exit0 b=exit0"},
		"OnFailure, failed":           {"a policy=OnFailure", "ip sandbox a=exit1", "Running ip net init " + notReady + " | a=exit1"},
		"OnFailure, done":             {"a policy=OnFailure", "ip sandbox a=exit0", "Succeeded ip net init ready:PodCompleted containers:PodCompleted | a=exit0"},
		"Never, failed":               {"a b policy=Never", "ip sandbox a=exit1 b=exit0", "Failed ip net init ready:PodFailed containers:PodFailed | a=exit1 b=exit0"},
		"Never, one still runs":       {"a b policy=Never", "ip sandbox a=exit1 b=ready", "Running ip net init " + notReady + " | a=exit1 b=run!"},
		"P046 finished keeps its IP":  {"a", "ip finished a=exit0", "Succeeded ip init ready:PodCompleted containers:PodCompleted | a=exit0"},
		"finished by a kill":          {"a", "ip finished a=exit137", "Failed ip init ready:PodFailed containers:PodFailed | a=exit137"},
		"finished while backing off":  {"a", "ip finished a=wait3", "Failed ip init ready:PodFailed containers:PodFailed | a=exit3"},
		"finished before it began":    {"a", "finished", "Failed init ready:PodFailed containers:PodFailed | a=exit137"},
		"eviction, containers run":    {"a", "ip sandbox evicted a=ready", "Running ip net init ready containers | a=run!"},
		"evicted":                     {"a", "ip finished evicted a=exit0", "Failed(Evicted) ip init ready:PodFailed containers:PodFailed disrupted | a=exit0"},
		"P047 evicted, address gone":  {"a", "ip dropip finished evicted a=exit0", "Failed(Evicted) init ready:PodFailed containers:PodFailed disrupted | a=exit0"},
		"init container to come":      {"i? a", "ip sandbox", "Pending ip net init:ContainersNotInitialized " + notReady + " | i=PodInitializing a=PodInitializing"},
		"init container runs":         {"i? a", "ip sandbox i=run", "Pending ip net init:ContainersNotInitialized " + notReady + " | i=run a=PodInitializing"},
		"init container done":         {"i? a", "ip sandbox i=exit0", "Pending ip net init " + notReady + " | i=exit0! a=ContainerCreating"},
		"init container failed":       {"i? a policy=Never", "ip finished i=exit1", "Failed ip init:ContainersNotInitialized ready:PodFailed containers:PodFailed | i=exit1 a=exit137"},
		"sidecar to come":             {"s~ a", "ip sandbox", "Pending ip net init:ContainersNotInitialized " + notReady + " | s=PodInitializing a=PodInitializing"},
		"sidecar counts":              {"s~ a", "ip sandbox s=run a=ready", "Running ip net init " + notReady + " | s=run a=run!"},
		"sidecar is ready":            {"s~ a", "ip sandbox s=ready a=ready", "Running ip net init ready containers | s=run! a=run!"},
		"sidecar restarts":            {"s~ a", "ip sandbox s=exit1 a=ready", "Running ip net init " + notReady + " | s=exit1 a=run!"},
		"gate absent":                 {"a gate=x/y", "ip sandbox a=ready", "Running ip net init ready:ReadinessGatesNotReady containers | a=run!"},
		"gate closed":                 {"a gate=x/y:False", "ip sandbox a=ready", "Running ip net init ready:ReadinessGatesNotReady containers | a=run!"},
		"gate open":                   {"a gate=x/y:True", "ip sandbox a=ready", "Running ip net init ready containers | a=run!"},
		"gate open, container is not": {"a gate=x/y:True", "ip sandbox a=run", "Running ip net init " + notReady + " | a=run"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := podstatus.Of(pod(t, tt.pod), v1.PodStatus{}, runtime(t, tt.runtime), noon)
			if got := brief(s); got != tt.want {
				t.Errorf("Of(%q, %q)\n got %s\nwant %s", tt.pod, tt.runtime, got, tt.want)
			}
			if s.ObservedGeneration != 7 || s.HostIP != "10.64.0.11" || len(s.HostIPs) != 1 || len(s.PodIPs) == 1 {
				t.Errorf("observed generation %d, host %s %v, pod %v", s.ObservedGeneration, s.HostIP, s.HostIPs, s.PodIPs)
			}
		})
	}
}

func TestTransitionTimesMoveWithTheStatusOnly(t *testing.T) {
	p := pod(t, "a")
	first := podstatus.Of(p, v1.PodStatus{}, runtime(t, "ip sandbox a=run"), noon)
	second := podstatus.Of(p, first, runtime(t, "ip sandbox a=ready"), noon.Add(time.Minute))
	for _, c := range second.Conditions {
		want := noon
		if c.Type == v1.PodReady || c.Type == v1.ContainersReady {
			want = noon.Add(time.Minute)
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s changed at %s, want %s", c.Type, c.LastTransitionTime, want)
		}
	}
	again := podstatus.Of(p, second, runtime(t, "ip sandbox a=ready"), noon.Add(time.Hour))
	if !podstatus.Equal(again, second) {
		t.Error("the same runtime gives another status")
	}
}

func TestPatch(t *testing.T) {
	s := podstatus.Of(pod(t, "a"), v1.PodStatus{}, runtime(t, "ip sandbox a=ready"), noon)
	raw, err := podstatus.Patch("uid-1", s)
	if err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Metadata map[string]string `json:"metadata"`
		Status   struct {
			PodIPs []map[string]string `json:"podIPs"`
			Phase  string              `json:"phase"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &patch); err != nil {
		t.Fatal(err)
	}
	if patch.Metadata["uid"] != "uid-1" || patch.Status.Phase != "Running" {
		t.Errorf("patch is %s", raw)
	}
	if len(patch.Status.PodIPs) != 3 || patch.Status.PodIPs[0]["$patch"] != "replace" {
		t.Errorf("addresses would be merged with the old ones: %v", patch.Status.PodIPs)
	}
}
