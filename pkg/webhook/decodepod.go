package webhook

import "github.com/elbridge/elbridge/pkg/podevent"

// DecodePod reads a Pod as the API server writes it. Annotations that are not
// on the list are skipped.
func DecodePod(body []byte, allow podevent.AllowList) (*podevent.Pod, error) {
	s := &scanner{text: body}
	o := decodeObject(s, allow)
	if s.err == nil && o.pod == nil {
		s.fail("a pod")
	}
	return o.pod, s.err
}

// decodeObject leaves pod nil for a null.
func decodeObject(s *scanner, allow podevent.AllowList) (o object) {
	if s.null() {
		return o
	}
	p := &podevent.Pod{}
	o.pod = p
	s.object(func(key []byte) bool {
		switch string(key) {
		case "metadata":
			decodeMetadata(s, p, allow)
		case "spec":
			decodeSpec(s, p)
		case "status":
			decodeStatus(s, p)
		case "deleteOptions":
			o.options = decodeDeleteOptions(s)
		default:
			s.skip()
		}
		return true
	})
	return o
}

func decodeMetadata(s *scanner, p *podevent.Pod, allow podevent.AllowList) {
	s.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			p.Name = s.str()
		case "namespace":
			p.Namespace = s.str()
		case "uid":
			p.UID = s.str()
		case "resourceVersion":
			p.ResourceVersion = s.str()
		case "labels":
			p.Labels = s.strings(nil)
		case "annotations":
			if len(allow) == 0 {
				s.skip()
				break
			}
			p.Annotations = s.strings(allow.Allows)
		case "ownerReferences":
			s.array(func() { decodeOwner(s, p) })
		case "deletionTimestamp":
			p.Terminating = s.str() != ""
		case "deletionGracePeriodSeconds":
			p.DeletionGracePeriodSeconds = optional(s)
		default:
			s.skip()
		}
		return true
	})
}

func decodeOwner(s *scanner, p *podevent.Pod) {
	var o podevent.Owner
	controller := false
	s.object(func(key []byte) bool {
		switch string(key) {
		case "kind":
			o.Kind = s.str()
		case "name":
			o.Name = s.str()
		case "controller":
			controller = s.boolean()
		default:
			s.skip()
		}
		return true
	})
	if controller {
		p.Owner = &o
	}
}

func decodeSpec(s *scanner, p *podevent.Pod) {
	s.object(func(key []byte) bool {
		switch string(key) {
		case "nodeName":
			p.NodeName = s.str()
		case "hostNetwork":
			p.HostNetwork = s.boolean()
		case "serviceAccountName":
			p.ServiceAccount = s.str()
		case "containers":
			s.array(func() { decodeContainer(s, p, false) })
		case "initContainers":
			s.array(func() { decodeContainer(s, p, true) })
		default:
			s.skip()
		}
		return true
	})
}

// decodeContainer adds the container's ports; an init container's only if it is
// a sidecar, which runs as long as the pod.
func decodeContainer(s *scanner, p *podevent.Pod, init bool) {
	before := len(p.Ports)
	sidecar := false
	s.object(func(key []byte) bool {
		switch string(key) {
		case "ports":
			s.array(func() { p.Ports = append(p.Ports, decodePort(s)) })
		case "restartPolicy":
			sidecar = s.is("Always")
		default:
			s.skip()
		}
		return true
	})
	if init && !sidecar {
		p.Ports = p.Ports[:before]
	}
}

func decodePort(s *scanner) podevent.Port {
	port := podevent.Port{Protocol: "TCP"}
	s.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			port.Name = s.str()
		case "containerPort":
			n, _ := s.integer()
			port.ContainerPort = int32(n)
		case "hostPort":
			n, _ := s.integer()
			port.HostPort = int32(n)
		case "protocol":
			port.Protocol = s.str()
		default:
			s.skip()
		}
		return true
	})
	return port
}

func decodeStatus(s *scanner, p *podevent.Pod) {
	var podIP string
	s.object(func(key []byte) bool {
		switch string(key) {
		case "phase":
			p.Phase = s.str()
		case "podIP":
			podIP = s.str()
		case "podIPs":
			s.array(func() { decodeAddress(s, p) })
		case "hostIP":
			p.HostIP = s.str()
		case "conditions":
			s.array(func() { decodeCondition(s, p) })
		default:
			s.skip()
		}
		return true
	})
	if len(p.PodIPs) == 0 && podIP != "" {
		p.PodIPs = []string{podIP}
	}
}

func decodeAddress(s *scanner, p *podevent.Pod) {
	s.object(func(key []byte) bool {
		if string(key) != "ip" {
			s.skip()
		} else if ip := s.str(); ip != "" {
			p.PodIPs = append(p.PodIPs, ip)
		}
		return true
	})
}

func decodeCondition(s *scanner, p *podevent.Pod) {
	var kind string
	status := false
	s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			kind = s.str()
		case "status":
			status = s.is("True")
		default:
			s.skip()
		}
		return true
	})
	switch kind {
	case "Ready":
		p.Ready = status
	case "ContainersReady":
		p.ContainersReady = status
	}
}

func optional(s *scanner) *int64 {
	if n, ok := s.integer(); ok {
		return &n
	}
	return nil
}
