package podstatus

import (
	"encoding/json"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patch returns the strategic merge patch that brings pods/status to s. It names
// the UID, so that a pod of the same name refuses it, and every field of the
// node's own; conditions of others stay, addresses are replaced as a whole.
func Patch(uid types.UID, s v1.PodStatus) ([]byte, error) {
	status := map[string]any{
		"observedGeneration":    s.ObservedGeneration,
		"phase":                 s.Phase,
		"conditions":            s.Conditions,
		"reason":                orNull(s.Reason),
		"message":               orNull(s.Message),
		"hostIP":                orNull(s.HostIP),
		"hostIPs":               replaceAll(s.HostIPs),
		"podIP":                 orNull(s.PodIP),
		"podIPs":                replaceAll(s.PodIPs),
		"startTime":             s.StartTime,
		"initContainerStatuses": s.InitContainerStatuses,
		"containerStatuses":     s.ContainerStatuses,
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
}

// replaceAll marks a list that the API server would otherwise merge by its key.
func replaceAll[T any](items []T) []any {
	all := []any{map[string]string{"$patch": "replace"}}
	for _, item := range items {
		all = append(all, item)
	}
	return all
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Equal says whether writing b after a would change nothing but times.
func Equal(a, b v1.PodStatus) bool {
	return reflect.DeepEqual(a, b)
}
