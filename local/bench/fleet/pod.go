package fleet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	namespaces = 40
	// podsPerNode: EKS' default for a node with 8 vCPU is 58; half of it is taken.
	podsPerNode = 30
	// otherApps are the workloads that no binding selects.
	otherApps = 400
	// canaries: every 25th pod of a service is a canary.
	canaries = 25
	// variables of each of a pod's three containers.
	variables = 6
)

// born is when the fleet's pods were made.
var born = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// identity is what the bindings and the target groups need to know of a pod.
type identity struct {
	namespace, name, node string
	addr                  netip.Addr
	labels                map[string]string
	service               int // whose pod it is; negative: selected by no binding
}

// addressOf pod i, of 10.0.0.0/8, without the ends of a /24.
func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i / 250 / 250), byte(i / 250 % 250), byte(1 + i%250)})
}

// identify says who pod i of n is, of which the first selected are pods of the
// services.
func (s Spec) identify(i int) identity {
	id := identity{addr: addressOf(i), node: nodeName(i % s.nodes()), service: -1}
	app := fmt.Sprintf("worker-%03d", i%otherApps)
	team := i % otherApps % namespaces
	track := "stable"
	if i < s.Selected {
		id.service = i % Groups
		app, team = serviceName(id.service), id.service%namespaces
		if isCanary(i) {
			track = "canary"
		}
	}
	hash := fmt.Sprintf("%x", 0x5f7d000000+int64(team)*7919+int64(len(app)))
	id.namespace = teamName(team)
	id.name = fmt.Sprintf("%s-%s-%05d", app, hash, i)
	id.labels = map[string]string{"app": app, "track": track, "team": id.namespace, "pod-template-hash": hash,
		"app.kubernetes.io/name": app, "app.kubernetes.io/version": "1.27.3", "app.kubernetes.io/managed-by": "Helm"}
	return id
}

func isCanary(i int) bool      { return i/Groups%canaries == 0 }
func serviceName(g int) string { return fmt.Sprintf("service-%03d", g) }
func teamName(t int) string    { return fmt.Sprintf("team-%02d", t) }
func nodeName(n int) string {
	return fmt.Sprintf("ip-10-200-%d-%d.eu-west-1.compute.internal", n/250, n%250)
}
func (s Spec) nodes() int       { return 1 + s.Pods/podsPerNode }
func hex(r *rand.Rand) string   { return fmt.Sprintf("%016x", r.Uint64()) }
func hex64(r *rand.Rand) string { return hex(r) + hex(r) + hex(r) + hex(r) }

// newPod is pod i as an API server returns it: three containers, what admission
// and the scheduler added, a kubelet's status, and the managed fields of those who
// wrote it. What differs from pod to pod is random, as it is in the field: it
// decides how well a page compresses.
func newPod(id identity, i int) *corev1.Pod {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	start := metav1.NewTime(born.Add(time.Duration(i%86400) * time.Second))
	app := id.labels["app"]
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: id.namespace, Name: id.name, GenerateName: id.name[:len(id.name)-5], Labels: id.labels, CreationTimestamp: start, Generation: 1,
			UID: types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48))),
			Annotations: map[string]string{
				"checksum/config": "sha256:" + strings.Repeat(fmt.Sprintf("%08x", len(app)*7919), 8), "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
				"kubectl.kubernetes.io/restartedAt": "2026-11-29T09:41:07Z", "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: id.name[:len(id.name)-6],
				UID: types.UID(fmt.Sprintf("7c3f1a52-0b1e-4d57-9c55-%012x", len(app))), Controller: new(true), BlockOwnerDeletion: new(true)}},
			ManagedFields: managedFields(start),
		},
		Spec:   podSpec(id, app),
		Status: podStatus(id, start, r),
	}
	return p
}

func podSpec(id identity, app string) corev1.PodSpec {
	mode := int32(0o644)
	return corev1.PodSpec{
		NodeName: id.node, ServiceAccountName: app, DeprecatedServiceAccount: app, RestartPolicy: corev1.RestartPolicyAlways,
		DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler", TerminationGracePeriodSeconds: new(int64(60)), Priority: new(int32(0)),
		EnableServiceLinks: new(true), PreemptionPolicy: new(corev1.PreemptLowerPriority), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), FSGroup: new(int64(2000))},
		Containers: []corev1.Container{container(app, app, 8080), container(app, "proxy", 9901), container(app, "logs", 2020)},
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "ingress", Effect: corev1.TaintEffectNoSchedule},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}, DefaultMode: &mode}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
			}}}},
		},
	}
}

func container(app, name string, port int32) corev1.Container {
	var env []corev1.EnvVar
	for v := range variables {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("%s_SETTING_%d", strings.ToUpper(strings.ReplaceAll(name, "-", "_")), v),
			Value: fmt.Sprintf("https://%s-%d.%s.svc.cluster.local:8443/api/v%d", app, v, name, v)})
	}
	env = append(env, corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}})
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}}}
	}
	quantities := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	return corev1.Container{
		Name: name, Image: image(name), ImagePullPolicy: corev1.PullIfNotPresent, Env: env, Args: []string{"--config=/etc/" + name + "/config.yaml", "--log-level=info"},
		Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: port + 1, Protocol: corev1.ProtocolTCP}},
		Resources:      corev1.ResourceRequirements{Requests: quantities, Limits: quantities},
		ReadinessProbe: probe("/ready"), LivenessProbe: probe("/live"),
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/" + name, ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"},
			{Name: "kube-api-access-x7k2p", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
}

func image(name string) string {
	return "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/" + name + ":1.27.3"
}

func podStatus(id identity, start metav1.Time, r *rand.Rand) corev1.PodStatus {
	st := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: id.addr.String(), PodIPs: []corev1.PodIP{{IP: id.addr.String()}}, HostIP: "10.200.0.9", HostIPs: []corev1.HostIP{{IP: "10.200.0.9"}},
		StartTime: &start, QOSClass: corev1.PodQOSGuaranteed, ObservedGeneration: 1}
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		st.Conditions = append(st.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: start, ObservedGeneration: 1})
	}
	for _, name := range []string{id.labels["app"], "proxy", "logs"} {
		st.ContainerStatuses = append(st.ContainerStatuses, corev1.ContainerStatus{Name: name, Image: image(name), Ready: true, Started: new(true),
			ImageID: strings.TrimSuffix(image(name), ":1.27.3") + "@sha256:" + strings.Repeat(fmt.Sprintf("%08x", len(name)*104729), 8), ContainerID: "containerd://" + hex64(r),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}}})
	}
	return st
}

// managedFields are what the API server notes for a ReplicaSet's pod: the
// controller's fields of spec and metadata, and the kubelet's of the status.
func managedFields(at metav1.Time) []metav1.ManagedFieldsEntry {
	entry := func(manager, sub, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields), Subresource: sub}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", controllerFields),
		entry("kube-scheduler", "status", `{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"PodScheduled\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`),
		entry("kubelet", "status", kubeletFields),
	}
}

var controllerFields = func() string {
	var b strings.Builder
	b.WriteString(`{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/scrape":{},"f:prometheus.io/port":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:track":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"7c3f1a52-0b1e-4d57-9c55-000000000000\"}":{}}},"f:spec":{"f:containers":{`)
	for i, name := range []string{"app", "proxy", "logs"} {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"k:{\"name\":\"%s\"}":{".":{},"f:args":{},"f:env":{".":{}`, name)
		for v := range variables {
			fmt.Fprintf(&b, `,"k:{\"name\":\"%s_SETTING_%d\"}":{".":{},"f:name":{},"f:value":{}}`, strings.ToUpper(name), v)
		}
		b.WriteString(`},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:securityContext":{},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}`)
	}
	b.WriteString(`},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:tolerations":{},"f:volumes":{}}}`)
	return b.String()
}()

var kubeletFields = func() string {
	var b strings.Builder
	b.WriteString(`{"f:status":{"f:conditions":{`)
	for i, t := range []string{"ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready"} {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"k:{\"type\":\"%s\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:observedGeneration":{},"f:status":{},"f:type":{}}`, t)
	}
	b.WriteString(`},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:observedGeneration":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`)
	return b.String()
}()
