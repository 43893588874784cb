// Package webhooktest makes admission reviews as an API server writes them, for
// tests and benchmarks: realistic in size and shape, managedFields included.
package webhooktest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Pod is what a test says about a pod; the rest is made up.
type Pod struct {
	Namespace, Name, UID string // default "ingress", "web-0", "uid-" + Name
	Version              int    // resourceVersion, default 1000
	IPs                  []string
	Labels               map[string]string // default application=skipper-ingress
	Annotations          map[string]string
	Phase                string // default Running
	Ready                bool   // of the pod and of its containers
	Terminating          bool
	Padding              int // bytes of managedFields more than the usual ones
}

// JSON is the pod as an API server writes it: about 6 KB with three containers.
func (p Pod) JSON() map[string]any {
	p.defaults()
	metadata := map[string]any{
		"name": p.Name, "generateName": "web-", "namespace": p.Namespace, "uid": p.UID,
		"resourceVersion":   fmt.Sprint(p.Version),
		"creationTimestamp": "2026-11-30T10:00:00Z",
		"labels":            p.Labels,
		"annotations":       p.Annotations,
		"ownerReferences": []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c", "uid": "5d1f1e5e", "controller": true, "blockOwnerDeletion": true,
		}},
		"managedFields": managedFields(p.Padding),
	}
	if p.Terminating {
		metadata["deletionTimestamp"] = "2026-11-30T10:05:30Z"
		metadata["deletionGracePeriodSeconds"] = 30
	}
	return map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec(), "status": p.status()}
}

func (p *Pod) defaults() {
	if p.Namespace == "" {
		p.Namespace = "ingress"
	}
	if p.Name == "" {
		p.Name = "web-0"
	}
	if p.UID == "" {
		p.UID = "uid-" + p.Name
	}
	if p.Version == 0 {
		p.Version = 1000
	}
	if p.Labels == nil {
		p.Labels = map[string]string{"application": "skipper-ingress", "pod-template-hash": "7d4b9c"}
	}
	if p.Phase == "" {
		p.Phase = "Running"
	}
}

func spec() map[string]any {
	containers := make([]any, 3)
	for i := range containers {
		name := fmt.Sprintf("container-%d", i)
		containers[i] = map[string]any{
			"name": name, "image": "registry.example.com/ingress/" + name + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			"args":  []string{"run", "--address=:9999", "--wait-first-route-load", `--quoted="a \ b"`},
			"ports": []any{map[string]any{"name": fmt.Sprintf("http-%d", i), "containerPort": 9999 - i, "protocol": "TCP"}},
			"env":   []any{map[string]any{"name": "POD_NAME", "valueFrom": map[string]any{"fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "metadata.name"}}}},
			"resources": map[string]any{
				"limits":   map[string]any{"cpu": "1", "memory": "1Gi"},
				"requests": map[string]any{"cpu": "100m", "memory": "250Mi"},
			},
			"volumeMounts":             []any{map[string]any{"name": "kube-api-access", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
			"readinessProbe":           map[string]any{"httpGet": map[string]any{"path": "/kube-system/healthz", "port": 9999, "scheme": "HTTP"}, "timeoutSeconds": 5, "periodSeconds": 10},
			"terminationMessagePath":   "/dev/termination-log",
			"terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
		}
	}
	return map[string]any{
		"containers": containers, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
		"serviceAccountName": "skipper-ingress", "serviceAccount": "skipper-ingress", "nodeName": "node-a", "securityContext": map[string]any{},
		"schedulerName": "default-scheduler", "enableServiceLinks": true, "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
		"tolerations": []any{
			map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
			map[string]any{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
		},
	}
}

func (p Pod) status() map[string]any {
	ready := "False"
	if p.Ready {
		ready = "True"
	}
	var conditions []any
	for _, c := range [][2]string{{"PodReadyToStartContainers", "True"}, {"Initialized", "True"}, {"Ready", ready}, {"ContainersReady", ready}, {"PodScheduled", "True"}} {
		conditions = append(conditions, map[string]any{"type": c[0], "status": c[1], "lastProbeTime": nil, "lastTransitionTime": "2026-11-30T10:00:05Z", "observedGeneration": 1})
	}
	status := map[string]any{"phase": p.Phase, "conditions": conditions, "hostIP": "10.64.0.11", "hostIPs": []any{map[string]any{"ip": "10.64.0.11"}}, "startTime": "2026-11-30T10:00:01Z", "qosClass": "Burstable"}
	if len(p.IPs) > 0 {
		var ips []any
		for _, ip := range p.IPs {
			ips = append(ips, map[string]any{"ip": ip})
		}
		status["podIP"], status["podIPs"] = p.IPs[0], ips
	}
	var containers []any
	for i := range 3 {
		containers = append(containers, map[string]any{
			"name": fmt.Sprintf("container-%d", i), "state": map[string]any{"running": map[string]any{"startedAt": "2026-11-30T10:00:04Z"}}, "lastState": map[string]any{},
			"ready": p.Ready, "restartCount": 0, "started": true, "image": "registry.example.com/ingress",
			"imageID":     "registry.example.com/ingress@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			"containerID": "containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		})
	}
	status["containerStatuses"] = containers
	return status
}

func managedFields(padding int) []any {
	const one = `{"f:metadata":{"f:labels":{".":{},"f:application":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"container-0\"}":{".":{},"f:args":{},"f:image":{},"f:ports":{".":{},"k:{\"containerPort\":9999,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}}}}}}`
	var fields []any
	for size := 0; size <= padding; size += len(one) + 120 {
		fields = append(fields, map[string]any{
			"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-11-30T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": json.RawMessage(one),
		})
	}
	return fields
}

// Review is one admission review.
type Review struct {
	UID         string // default "review-1"
	Operation   string // "UPDATE pods/status", "DELETE pods", "CREATE pods/eviction", …
	Old, New    *Pod
	Grace       *int64 // of a DELETE
	Collection  bool   // a DELETE of one pod of a deletecollection
	DryRun      bool
	EvictDryRun bool   // in an Eviction's own deleteOptions
	EvictUID    string // its precondition
	Group       string // of the resource; "" for pods
}

// JSON is the body of the request that an API server makes.
func (r Review) JSON() []byte {
	if r.UID == "" {
		r.UID = "review-1"
	}
	operation, resource, _ := strings.Cut(r.Operation, " ")
	resource, subResource, _ := strings.Cut(resource, "/")
	request := map[string]any{
		"kind":      map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"resource":  map[string]any{"group": r.Group, "version": "v1", "resource": resource},
		"operation": operation, "dryRun": r.DryRun,
		"userInfo": map[string]any{"username": "system:node:node-a", "groups": []string{"system:nodes", "system:authenticated"}},
		"object":   nil, "oldObject": nil, "options": map[string]any{"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
	}
	about := Pod{}
	for _, p := range []*Pod{r.Old, r.New} {
		if p != nil {
			about = *p
		}
	}
	about.defaults()
	request["namespace"], request["name"] = about.Namespace, about.Name
	if r.Collection {
		delete(request, "name")
	}
	if r.Old != nil {
		request["oldObject"] = r.Old.JSON()
	}
	if r.New != nil {
		request["object"] = r.New.JSON()
	}
	if operation == "DELETE" {
		request["options"] = map[string]any{"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": r.Grace}
	}
	if subResource != "" {
		request["subResource"] = subResource
	}
	if subResource == "eviction" {
		request["object"] = r.eviction(about)
	}
	return body(r.UID, request)
}

func (r Review) eviction(about Pod) map[string]any {
	options := map[string]any{}
	if r.EvictDryRun {
		options["dryRun"] = []string{"All"}
	}
	if r.EvictUID != "" {
		options["preconditions"] = map[string]any{"uid": r.EvictUID}
	}
	return map[string]any{
		"kind": "Eviction", "apiVersion": "policy/v1",
		"metadata": map[string]any{"name": about.Name, "namespace": about.Namespace}, "deleteOptions": options,
	}
}

// body writes the uid first, as the API server does.
func body(uid string, request map[string]any) []byte {
	b, err := json.Marshal(request)
	if err != nil {
		panic(err) // of a value made above
	}
	id, err := json.Marshal(uid)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":%s,%s}`, id, b[1:])
}
