package cluster

import (
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// translation is a pod under way from Kubernetes' protobuf, core/v1.Pod, to
// elbridge's own value. It reads what elbridge knows of and passes over the rest,
// most of a pod: managed fields, variables, probes, volumes, statuses of
// containers. What it reads is malformed, or the pod is whole.
type translation struct {
	to       Inspection
	sidecars []podevent.Port // come after the containers'
	podIP    string
}

// translate is where Kubernetes' types end. The pod shares nothing with raw.
func translate(raw []byte) (Inspection, error) {
	t := translation{to: Inspection{Pod: &podevent.Pod{}, TerminationGracePeriod: -1}}
	m := read(raw)
	for m.next() {
		switch m.number {
		case podMetadata:
			m.check(t.metadata(m.inner()))
		case podSpec:
			m.check(t.spec(m.inner()))
		case podStatus:
			m.check(t.status(m.inner()))
		}
	}
	if m.err != nil {
		return Inspection{}, m.err
	}
	p := t.to.Pod
	p.Ports = append(p.Ports, t.sidecars...)
	if len(p.PodIPs) == 0 && t.podIP != "" {
		p.PodIPs = []string{t.podIP}
	}
	return t.to, nil
}

func (t *translation) metadata(m message) error {
	p := t.to.Pod
	for m.next() {
		switch m.number {
		case objectMetaName:
			p.Name = m.text()
		case objectMetaNamespace:
			p.Namespace = m.text()
		case objectMetaUID:
			p.UID = m.text()
		case objectMetaResourceVersion:
			p.ResourceVersion = m.text()
		case objectMetaDeletionTimestamp: // that it is there is the signal
			p.Terminating = m.is(protowire.BytesType)
		case objectMetaDeletionGracePeriodSeconds:
			p.DeletionGracePeriodSeconds = new(m.integer())
		case objectMetaLabels:
			m.check(add(&p.Labels, m.inner()))
		case objectMetaAnnotations:
			m.check(add(&p.Annotations, m.inner()))
		case objectMetaOwnerReferences:
			m.check(t.owner(m.inner()))
		}
	}
	return m.err
}

// add puts an entry into a map.
func add(to *map[string]string, m message) error {
	var key, value string
	for m.next() {
		switch m.number {
		case entryKey:
			key = m.text()
		case entryValue:
			value = m.text()
		}
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[key] = value
	return m.err
}

// owner keeps the first owner that controls the pod.
func (t *translation) owner(m message) error {
	var o podevent.Owner
	controls := false
	for m.next() {
		switch m.number {
		case ownerReferenceKind:
			o.Kind = m.text()
		case ownerReferenceName:
			o.Name = m.text()
		case ownerReferenceController:
			controls = m.integer() != 0
		}
	}
	if controls && t.to.Owner == nil {
		t.to.Owner = &podevent.Owner{Kind: o.Kind, Name: o.Name}
	}
	return m.err
}

func (t *translation) spec(m message) error {
	p := t.to.Pod
	for m.next() {
		switch m.number {
		case podSpecContainers:
			ports, _, err := container(m.inner(), p.Ports)
			p.Ports = ports
			m.check(err)
		case podSpecInitContainers:
			ports, sidecar, err := container(m.inner(), t.sidecars)
			if sidecar {
				t.sidecars = ports
			}
			m.check(err)
		case podSpecTerminationGracePeriodSeconds:
			t.to.TerminationGracePeriod = time.Duration(m.integer()) * time.Second
		case podSpecServiceAccountName:
			p.ServiceAccount = m.text()
		case podSpecNodeName:
			p.NodeName = m.text()
		case podSpecHostNetwork:
			p.HostNetwork = m.integer() != 0
		}
	}
	return m.err
}

// container appends a container's ports to others, and reports whether it is
// restarted always, which makes an init container a sidecar.
func container(m message, to []podevent.Port) (ports []podevent.Port, always bool, err error) {
	for m.next() {
		switch m.number {
		case containerPorts:
			p, err := port(m.inner())
			m.check(err)
			to = append(to, p)
		case containerRestartPolicy:
			always = m.text() == string(corev1.ContainerRestartPolicyAlways)
		}
	}
	return to, always, m.err
}

func port(m message) (p podevent.Port, err error) {
	for m.next() {
		switch m.number {
		case containerPortName:
			p.Name = m.text()
		case containerPortHostPort:
			p.HostPort = int32(m.integer())
		case containerPortContainerPort:
			p.ContainerPort = int32(m.integer())
		case containerPortProtocol:
			p.Protocol = strings.ToUpper(m.text())
		}
	}
	return p, m.err
}

func (t *translation) status(m message) error {
	p := t.to.Pod
	for m.next() {
		switch m.number {
		case podStatusPhase:
			p.Phase = m.text()
		case podStatusConditions:
			m.check(t.condition(m.inner()))
		case podStatusHostIP:
			p.HostIP = m.text()
		case podStatusPodIP:
			t.podIP = m.text()
		case podStatusPodIPs:
			ip, err := podIP(m.inner())
			m.check(err)
			p.PodIPs = append(p.PodIPs, ip)
		}
	}
	return m.err
}

func (t *translation) condition(m message) error {
	var kind corev1.PodConditionType
	var is bool
	for m.next() {
		switch m.number {
		case podConditionType:
			kind = corev1.PodConditionType(m.text())
		case podConditionStatus:
			is = corev1.ConditionStatus(m.text()) == corev1.ConditionTrue
		}
	}
	switch kind {
	case corev1.PodReady:
		t.to.Ready = is
	case corev1.ContainersReady:
		t.to.ContainersReady = is
	}
	return m.err
}

func podIP(m message) (ip string, err error) {
	for m.next() {
		if m.number == podIPIP {
			ip = m.text()
		}
	}
	return ip, m.err
}
