package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// same reports how two translations differ.
func same(got, want Inspection) error {
	if got.TerminationGracePeriod != want.TerminationGracePeriod || !reflect.DeepEqual(got.Pod, want.Pod) {
		return fmt.Errorf("got  %+v for %s\nwant %+v for %s", got.Pod, got.TerminationGracePeriod, want.Pod, want.TerminationGracePeriod)
	}
	return nil
}

// kubernetes is what Kubernetes' own code makes of bytes.
func kubernetes(raw []byte) (Inspection, error) {
	var p corev1.Pod
	if err := p.Unmarshal(raw); err != nil {
		return Inspection{}, err
	}
	return oracle(&p), nil
}

func marshalled(t interface{ Fatal(...any) }, p *corev1.Pod) []byte {
	raw, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTranslationIsKubernetes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := marshalled(t, drawPod(t))
		if rapid.Bool().Draw(t, "in two parts") { // protobuf: what comes later is merged
			raw = append(raw, marshalled(t, drawPod(t))...)
		}
		raw = append(raw, drawUnknown(t)...)
		got, err := translate(raw)
		if err != nil {
			t.Fatal(err)
		}
		want, err := kubernetes(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw { // the buffer is used again
			raw[i] = '!'
		}
		if err := same(got, want); err != nil {
			t.Error(err)
		}
	})
}

// drawUnknown draws fields of Kubernetes' versions to come.
func drawUnknown(t *rapid.T) (out []byte) {
	for range rapid.IntRange(0, 3).Draw(t, "unknown fields") {
		n := protowire.Number(rapid.Int32Range(100, int32(protowire.MaxValidNumber)).Draw(t, "number"))
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			out = protowire.AppendVarint(protowire.AppendTag(out, n, protowire.VarintType), rapid.Uint64().Draw(t, "value"))
		case 1:
			out = protowire.AppendFixed32(protowire.AppendTag(out, n, protowire.Fixed32Type), 7)
		case 2:
			out = protowire.AppendFixed64(protowire.AppendTag(out, n, protowire.Fixed64Type), 7)
		case 3:
			out = protowire.AppendBytes(protowire.AppendTag(out, n, protowire.BytesType), rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		}
	}
	return out
}

// A pod that was cut short, or whose parts have other types than they should, is
// an error wherever it happens.
func TestMalformedPods_I8(t *testing.T) {
	part := func(n protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), inner)
	}
	number := func(n protowire.Number) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), 1)
	}
	tests := map[string][]byte{
		"metadata is a number":                number(podMetadata),
		"a spec that is longer than it all":   {byte(podSpec<<3 | 2), 9, 1},
		"a length without an end":             {byte(podSpec<<3 | 2), 0xff},
		"a length of 2^63":                    append([]byte{byte(podSpec<<3 | 2)}, protowire.AppendVarint(nil, 1<<63)...),
		"field 0":                             {0, 1},
		"a group":                             protowire.AppendTag(nil, 99, protowire.StartGroupType),
		"a reserved wire type":                {14<<3 | 7, 0},
		"the name is a number":                part(podMetadata, number(objectMetaName)),
		"a label that is cut":                 part(podMetadata, part(objectMetaLabels, []byte{byte(entryKey<<3 | 2), 5, 'a'})),
		"a time of deletion that is a number": part(podMetadata, number(objectMetaDeletionTimestamp)),
		"a grace period that is text":         part(podMetadata, part(objectMetaDeletionGracePeriodSeconds, []byte("30"))),
		"an owner that is cut":                part(podMetadata, part(objectMetaOwnerReferences, []byte{byte(ownerReferenceName<<3 | 2), 5})),
		"a container that is cut":             part(podSpec, part(podSpecContainers, []byte{byte(containerPorts<<3 | 2), 5})),
		"a port that is cut":                  part(podSpec, part(podSpecContainers, part(containerPorts, []byte{byte(containerPortContainerPort << 3)}))),
		"a port that is text":                 part(podSpec, part(podSpecContainers, part(containerPorts, part(containerPortContainerPort, []byte("80"))))),
		"an init container that is cut":       part(podSpec, part(podSpecInitContainers, []byte{byte(containerPorts<<3 | 2), 5})),
		"a condition that is cut":             part(podStatus, part(podStatusConditions, []byte{byte(podConditionType<<3 | 2), 5})),
		"an address that is cut":              part(podStatus, part(podStatusPodIPs, []byte{byte(podIPIP<<3 | 2), 5})),
		"the phase is a number":               part(podStatus, number(podStatusPhase)),
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) {
			i, err := translate(append(marshalled(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}), raw...))
			if err == nil || i.Pod != nil {
				t.Errorf("pod %+v, error %v; want an error alone", i.Pod, err)
			}
		})
	}
}

// stricter reports whether an error is about what Kubernetes' code lets pass and
// no API server writes: groups, numbers too large, and entries of maps that reach
// beyond their own end.
func stricter(err error) bool {
	for _, part := range []string{"variable length integer overflow", "invalid field number", "field 1: field 11: ", "field 1: field 12: "} {
		if strings.Contains(err.Error(), part) {
			return true
		}
	}
	return errors.Is(err, errGroup)
}

func FuzzTranslate(f *testing.F) {
	for i := range 40 {
		f.Add(marshalled(f, rapid.Custom(drawPod).Example(i)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := translate(raw)
		want, theirs := kubernetes(raw)
		switch {
		case err != nil && (got.Pod != nil || theirs == nil && !stricter(err)):
			t.Errorf("pod %+v, error %v; Kubernetes' code reads %+v", got.Pod, err, want.Pod)
		case err == nil && theirs == nil:
			if err := same(got, want); err != nil {
				t.Error(err)
			}
		}
	})
}
