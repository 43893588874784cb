package node

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/node/internal/podstatus"
	"github.com/elbridge/elbridge/local/node/internal/probe"
)

// Annotations on a pod that steer its built-in servers; the package comment tells
// what they do.
const (
	AnnotationStartDelay    = "elbridge.local/start-delay"
	AnnotationReadyAfter    = "elbridge.local/ready-after"
	AnnotationTermDelay     = "elbridge.local/term-delay"
	AnnotationIgnoreSIGTERM = "elbridge.local/ignore-sigterm"
	AnnotationExitAfter     = "elbridge.local/exit-after"
	AnnotationExitCode      = "elbridge.local/exit-code"
)

type behaviour struct {
	container.Behaviour
	startDelay time.Duration
}

// behaviourOf reads the annotations; one that can't be read is logged and counts
// as absent.
func behaviourOf(pod *v1.Pod, log *slog.Logger) behaviour {
	duration := func(name string) time.Duration {
		text, set := pod.Annotations[name]
		if !set {
			return 0
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			log.Warn("annotation ignored: want a duration such as 500ms", "annotation", name, "value", text)
			return 0
		}
		return d
	}
	b := behaviour{startDelay: duration(AnnotationStartDelay)}
	b.ReadyAfter, b.TermDelay, b.ExitAfter = duration(AnnotationReadyAfter), duration(AnnotationTermDelay), duration(AnnotationExitAfter)
	b.IgnoreSIGTERM = pod.Annotations[AnnotationIgnoreSIGTERM] == "true"
	if text, set := pod.Annotations[AnnotationExitCode]; set {
		code, err := strconv.Atoi(text)
		if err != nil || code < 0 || code > 255 {
			log.Warn("annotation ignored: want 0 to 255", "annotation", AnnotationExitCode, "value", text)
		} else {
			b.ExitCode = code
		}
	}
	return b
}

// atOnce is how long an init container without a process takes.
const atOnce = time.Nanosecond

// serverSpec describes the built-in server for one container of a pod.
func (w *worker) serverSpec(pod *v1.Pod, c *v1.Container) container.ServerSpec {
	now := w.current() // the address may be newer than pod
	spec := container.ServerSpec{
		Identity: container.Identity{
			Pod: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), Container: c.Name,
			Node: w.host.spec.Name, Zone: w.host.spec.Zone, Address: now.Status.PodIP,
		},
		Addresses: published(now),
		Ports:     portsOf(c),
	}
	isInit := slices.ContainsFunc(pod.Spec.InitContainers, func(i v1.Container) bool { return i.Name == c.Name })
	if isInit && !podstatus.IsSidecar(c) {
		spec.Behaviour.ExitAfter = atOnce
	} else {
		spec.Behaviour = behaviourOf(pod, w.log).Behaviour
	}
	if d, ok := sleepCommand(slices.Concat(c.Command, c.Args)); ok {
		spec.Behaviour.ExitAfter = max(d, atOnce)
	}
	if p := c.ReadinessProbe; p != nil && p.HTTPGet != nil {
		path, _, _ := strings.Cut(p.HTTPGet.Path, "?")
		spec.ReadyPaths = append(spec.ReadyPaths, path)
	}
	return spec
}

// portsOf lists what a built-in server listens on: what the container declares,
// and what its probes ask.
func portsOf(c *v1.Container) []container.Port {
	var all []container.Port
	add := func(number int, tls bool) {
		if number < 1 || number > 65535 {
			return
		}
		i := slices.IndexFunc(all, func(p container.Port) bool { return int(p.Number) == number })
		if i < 0 {
			all = append(all, container.Port{Number: uint16(number)})
			i = len(all) - 1
		}
		all[i].TLS = all[i].TLS || tls
	}
	for _, p := range c.Ports {
		if p.Protocol == "" || p.Protocol == v1.ProtocolTCP {
			add(int(p.ContainerPort), p.Name == "https")
		}
	}
	for _, p := range []*v1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
		switch {
		case p == nil:
		case p.HTTPGet != nil:
			add(probe.Port(p.HTTPGet.Port, c), p.HTTPGet.Scheme == v1.URISchemeHTTPS)
		case p.TCPSocket != nil:
			add(probe.Port(p.TCPSocket.Port, c), false)
		case p.GRPC != nil:
			add(int(p.GRPC.Port), false)
		}
	}
	return all
}
