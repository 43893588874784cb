package cluster

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// oracle is what translate has to make of a pod, said with Kubernetes' own types.
func oracle(p *corev1.Pod) Inspection {
	out := &podevent.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), ResourceVersion: p.ResourceVersion,
		Labels: p.Labels, Annotations: p.Annotations,
		ServiceAccount: p.Spec.ServiceAccountName, NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork,
		HostIP: p.Status.HostIP, Phase: string(p.Status.Phase),
		Terminating: p.DeletionTimestamp != nil, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
	}
	if o := metav1.GetControllerOf(p); o != nil {
		out.Owner = &podevent.Owner{Kind: o.Kind, Name: o.Name}
	}
	for _, ip := range p.Status.PodIPs {
		out.PodIPs = append(out.PodIPs, ip.IP)
	}
	if len(out.PodIPs) == 0 && p.Status.PodIP != "" {
		out.PodIPs = []string{p.Status.PodIP}
	}
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			out.Ready = c.Status == corev1.ConditionTrue
		case corev1.ContainersReady:
			out.ContainersReady = c.Status == corev1.ConditionTrue
		}
	}
	for _, c := range p.Spec.Containers {
		out.Ports = append(out.Ports, oraclePorts(c)...)
	}
	for _, c := range p.Spec.InitContainers { // sidecars
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out.Ports = append(out.Ports, oraclePorts(c)...)
		}
	}
	i := Inspection{Pod: out, TerminationGracePeriod: -1}
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		i.TerminationGracePeriod = time.Duration(*s) * time.Second
	}
	return i
}

func oraclePorts(c corev1.Container) []podevent.Port {
	var out []podevent.Port
	for _, p := range c.Ports {
		out = append(out, podevent.Port{Name: p.Name, ContainerPort: p.ContainerPort, HostPort: p.HostPort,
			Protocol: strings.ToUpper(string(p.Protocol))})
	}
	return out
}

// drawPod draws a pod with everything that is read of it, and much that is not.
func drawPod(t *rapid.T) *corev1.Pod {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "web-0", "10.64.1.7", "fd00::7"}), rapid.String())
	maybe := func(name string) bool { return rapid.Bool().Draw(t, name) }
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.ResourceVersion = text.Draw(t, "name"), text.Draw(t, "namespace"), text.Draw(t, "resourceVersion")
	p.UID, p.GenerateName, p.Generation = "uid", text.Draw(t, "generateName"), rapid.Int64().Draw(t, "generation")
	p.Labels = drawMap(t, text, "labels")
	p.Annotations = drawMap(t, text, "annotations")
	p.Finalizers = rapid.SliceOfN(text, 0, 2).Draw(t, "finalizers")
	if maybe("deleted") {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "deletionTimestamp"), 0)}
	}
	if maybe("grace") {
		p.DeletionGracePeriodSeconds = new(rapid.Int64().Draw(t, "deletionGracePeriodSeconds"))
	}
	if maybe("period") {
		p.Spec.TerminationGracePeriodSeconds = new(rapid.Int64().Draw(t, "terminationGracePeriodSeconds"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "owners") {
		o := metav1.OwnerReference{APIVersion: "apps/v1", Kind: text.Draw(t, "owner kind"), Name: text.Draw(t, "owner name"), UID: "o"}
		if maybe("owner says") {
			o.Controller, o.BlockOwnerDeletion = new(maybe("controller")), new(true)
		}
		p.OwnerReferences = append(p.OwnerReferences, o)
	}
	p.Spec.ServiceAccountName, p.Spec.NodeName, p.Spec.HostNetwork = text.Draw(t, "serviceAccountName"), text.Draw(t, "nodeName"), maybe("hostNetwork")
	p.Spec.DeprecatedServiceAccount, p.Spec.Hostname = "not-this", text.Draw(t, "hostname")
	p.Spec.Containers = drawContainers(t, text, "containers")
	p.Spec.InitContainers = drawContainers(t, text, "initContainers")
	p.Status.Phase = corev1.PodPhase(text.Draw(t, "phase"))
	p.Status.HostIP, p.Status.PodIP = text.Draw(t, "hostIP"), text.Draw(t, "podIP")
	for _, ip := range rapid.SliceOfN(text, 0, 3).Draw(t, "podIPs") {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	for range rapid.IntRange(0, 4).Draw(t, "conditions") {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Reason: text.Draw(t, "reason"), LastTransitionTime: metav1.Unix(1, 0),
			Type:   rapid.SampledFrom([]corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled, ""}).Draw(t, "condition"),
			Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown, "true", ""}).Draw(t, "is")})
	}
	if maybe("noise") {
		addNoise(p)
	}
	return p
}

func drawMap(t *rapid.T, text *rapid.Generator[string], name string) map[string]string {
	m := rapid.MapOfN(text, text, 0, 4).Draw(t, name)
	if len(m) == 0 {
		return nil
	}
	return m
}

func drawContainers(t *rapid.T, text *rapid.Generator[string], name string) []corev1.Container {
	var out []corev1.Container
	for i := range rapid.IntRange(0, 3).Draw(t, name) {
		c := corev1.Container{Name: fmt.Sprint(name, i), Image: text.Draw(t, "image"), Env: []corev1.EnvVar{{Name: "A", Value: text.Draw(t, "variable")}}}
		if rapid.Bool().Draw(t, "says when to restart") {
			c.RestartPolicy = new(rapid.SampledFrom([]corev1.ContainerRestartPolicy{corev1.ContainerRestartPolicyAlways, "OnFailure", "always", ""}).Draw(t, "restartPolicy"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "ports") {
			c.Ports = append(c.Ports, corev1.ContainerPort{Name: text.Draw(t, "port name"), HostPort: rapid.Int32().Draw(t, "hostPort"), HostIP: text.Draw(t, "port hostIP"),
				ContainerPort: rapid.Int32().Draw(t, "containerPort"), Protocol: corev1.Protocol(rapid.SampledFrom([]string{"TCP", "UDP", "tcp", "Sctp", ""}).Draw(t, "protocol"))})
		}
		out = append(out, c)
	}
	return out
}

// addNoise adds what most of a pod consists of, and nothing that is read of it.
func addNoise(p *corev1.Pod) {
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", Time: &metav1.Time{},
		FieldsV1: metav1.NewFieldsV1(`{"f:status":{".":{}` + strings.Repeat(`,"f:conditions":{".":{}}`, 180) + `}}`)}}
	p.Spec.NodeSelector = map[string]string{"app": "not-a-label"}
	p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Ports: []corev1.ContainerPort{{ContainerPort: 1}}}}}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}, PeriodSeconds: 10}
		c.ReadinessProbe = c.LivenessProbe
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}
		for v := range 6 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", v), Value: strings.Repeat("value ", 10)})
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, ImageID: strings.Repeat("d", 130),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
}
