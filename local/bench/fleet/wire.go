package fleet

import (
	"encoding/binary"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// magic begins every object in Kubernetes' protobuf.
const magic = "k8s\x00"

// envelope is an object of core/v1 as it goes over the wire: raw is its message.
func envelope(kind string, raw []byte) ([]byte, error) {
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	body, err := u.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", kind, err)
	}
	return append([]byte(magic), body...), nil
}

// itemsTag is field 2, length-delimited: PodList.items.
const itemsTag = 2<<3 | 2

// podList puts together a list of pods that are encoded already.
func podList(meta metav1.ListMeta, pods [][]byte) ([]byte, error) {
	head, err := (&corev1.PodList{ListMeta: meta}).Marshal()
	if err != nil {
		return nil, err
	}
	size := len(head)
	for _, p := range pods {
		size += len(p) + 1 + binary.MaxVarintLen32
	}
	raw := append(make([]byte, 0, size), head...)
	for _, p := range pods {
		raw = binary.AppendUvarint(append(raw, itemsTag), uint64(len(p)))
		raw = append(raw, p...)
	}
	return envelope("PodList", raw)
}

// frame is one event of a watch: a length, and a WatchEvent with the object in
// its envelope.
func frame(kind string, object []byte) ([]byte, error) {
	ev, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(ev))), ev...), nil
}

// bookmark is an event that brings a revision alone.
func bookmark(revision int64) ([]byte, error) {
	raw, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(revision)}}).Marshal()
	if err != nil {
		return nil, err
	}
	object, err := envelope("Pod", raw)
	if err != nil {
		return nil, err
	}
	return frame("BOOKMARK", object)
}

// refusal is an API server's own error.
func refusal(code int32, reason metav1.StatusReason, message string) ([]byte, error) {
	raw, err := (&metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}).Marshal()
	if err != nil {
		return nil, err
	}
	return envelope("Status", raw)
}
