package cluster

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// ordinary is a page of pods of 10 KB as a Deployment makes them.
func ordinary() *corev1.PodList {
	l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "77"}}
	for range pageSize {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-07", Name: "service-007-5f7d00a1c2-00007", UID: "7c3f1a52-0b1e-4d57-9c55-000000000007", ResourceVersion: "123456789",
			Labels:          map[string]string{"app": "service-007", "track": "stable", "team": "team-07", "pod-template-hash": "5f7d00a1c2", "app.kubernetes.io/name": "service-007", "app.kubernetes.io/version": "1.27.3"},
			Annotations:     map[string]string{"checksum/config": strings.Repeat("5f", 32), "prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "service-007-5f7d00a1c2", UID: "7c3f1a52", Controller: new(true)}}}}
		for _, name := range []string{"app", "proxy", "logs"} {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/" + name + ":1.27.3",
				Ports: []corev1.ContainerPort{{Name: name, ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}})
		}
		p.Spec.NodeName, p.Spec.ServiceAccountName, p.Spec.TerminationGracePeriodSeconds = "ip-10-200-0-9.eu-west-1.compute.internal", "service-007", new(int64(30))
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.200.0.9", PodIP: "10.0.0.7", PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}}}
		for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue})
		}
		addNoise(&p)
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubelet", FieldsV1: p.ManagedFields[0].FieldsV1})
		l.Items = append(l.Items, p)
	}
	return l
}

// BenchmarkPage reads a page of 500 pods: as it is read, and as the baseline reads
// it, into Kubernetes' own types, from which elbridge's are made.
func BenchmarkPage(b *testing.B) {
	l := ordinary()
	body := encoded(b, l)
	raw, err := l.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	var last *podevent.Pod
	b.Run("lean", func(b *testing.B) {
		in := newObjects()
		perPod(b, len(raw), func() error {
			return in.list(bytes.NewReader(body), func(about) error { return nil }, func(i Inspection) { last = i.Pod })
		})
	})
	b.Run("baseline", func(b *testing.B) {
		perPod(b, len(raw), func() error {
			var l corev1.PodList
			err := l.Unmarshal(raw)
			for i := range l.Items {
				last = oracle(&l.Items[i]).Pod
			}
			return err
		})
	})
	if last == nil || last.UID != "7c3f1a52-0b1e-4d57-9c55-000000000007" {
		b.Errorf("the last pod is %+v", last)
	}
}

func perPod(b *testing.B, size int, page func() error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if err := page(); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	pods := float64(b.N) * pageSize
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/pods, "ns/pod")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/pods, "B/pod")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/pods, "allocs/pod")
	b.ReportMetric(float64(size)/pageSize, "wire-B/pod")
}
