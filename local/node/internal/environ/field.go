package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Field resolves a field of the downward API. The addresses are those in the
// pod's status.
func Field(pod *v1.Pod, path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return keyValues(pod.Labels), nil
	case "metadata.annotations":
		return keyValues(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return pod.Status.HostIP, nil
	case "status.podIP":
		return pod.Status.PodIP, nil
	case "status.hostIPs":
		var all []string
		for _, ip := range pod.Status.HostIPs {
			all = append(all, ip.IP)
		}
		return strings.Join(all, ","), nil
	case "status.podIPs":
		var all []string
		for _, ip := range pod.Status.PodIPs {
			all = append(all, ip.IP)
		}
		return strings.Join(all, ","), nil
	}
	return "", fmt.Errorf("field %q is not one of the downward API", path)
}

func subscript(path string) (name, key string, ok bool) {
	name, rest, ok := strings.Cut(path, "['")
	if !ok {
		return "", "", false
	}
	return name, strings.TrimSuffix(rest, "']"), strings.HasSuffix(rest, "']")
}

func keyValues(m map[string]string) string {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%s=%q", k, m[k]))
	}
	return strings.Join(lines, "\n")
}

// Resource resolves a resource field of a container, rounded up by its divisor.
// A limit that is not set is the node's.
func Resource(pod *v1.Pod, container string, ref *v1.ResourceFieldSelector, node v1.ResourceList) (string, error) {
	if ref.ContainerName != "" {
		container = ref.ContainerName
	}
	var c *v1.Container
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		if i := slices.IndexFunc(list, func(c v1.Container) bool { return c.Name == container }); i >= 0 {
			c = &list[i]
		}
	}
	if c == nil {
		return "", fmt.Errorf("resource %q: no container %q", ref.Resource, container)
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Requests
	if kind == "limits" {
		list = c.Resources.Limits
	}
	q, set := list[v1.ResourceName(name)]
	if !set && kind == "limits" {
		q = node[v1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	return divide(q, divisor), nil
}

func divide(q, divisor resource.Quantity) string {
	m, d := q.MilliValue(), divisor.MilliValue()
	return fmt.Sprint((m + d - 1) / d)
}
