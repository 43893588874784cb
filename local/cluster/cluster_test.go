package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/elbridge/elbridge/local/cluster"
)

// patience bounds each wait for a condition; a busy machine may need it.
const patience = time.Minute

// start starts a cluster for a test, with a build of the programs if need be.
func start(t *testing.T, config cluster.Config) *cluster.Cluster {
	t.Helper()
	return startAll(t, config)[0]
}

// startAll starts several at once.
func startAll(t *testing.T, configs ...cluster.Config) []*cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	clusters, faults := make([]*cluster.Cluster, len(configs)), make([]error, len(configs))
	var all sync.WaitGroup
	for i, config := range configs {
		if config.Dir == "" {
			config.Dir = t.TempDir()
		}
		config.Progress = os.Stderr
		all.Go(func() {
			began := time.Now()
			clusters[i], faults[i] = cluster.Start(context.Background(), config)
			t.Logf("cluster %s started in %s", config.Name, time.Since(began).Round(time.Millisecond))
		})
	}
	all.Wait()
	for _, c := range clusters {
		if c != nil {
			t.Cleanup(func() { c.Stop(context.Background()) })
		}
	}
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	return clusters
}

func client(t *testing.T, c *cluster.Cluster, id cluster.Identity) *cluster.Client {
	t.Helper()
	client, err := c.Client(id)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// await asks until the answer is nil.
func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

const web = `
apiVersion: v1
kind: Namespace
metadata: {name: ingress}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ingress}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "elbridge.local/web", ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ingress}
spec: {selector: {app: web}, ports: [{port: 8080}]}
`

// addNode makes a node that is ready as far as the scheduler can see.
func addNode(t *testing.T, nodes *cluster.Client, name string) {
	t.Helper()
	ctx := t.Context()
	err := nodes.Post(ctx, "/api/v1/nodes", map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": map[string]string{"topology.kubernetes.io/zone": "eu-west-1a"}},
		"spec":     map[string]any{"providerID": "aws:///eu-west-1a/i-0000000000000000a"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = nodes.Patch(ctx, "/api/v1/nodes/"+name+"/status", types.StrategicMergePatchType, `{"status":{
		"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}, "capacity": {"cpu": "8", "memory": "8Gi", "pods": "110"},
		"addresses": [{"type": "InternalIP", "address": "10.64.0.11"}],
		"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
}

// boundPods waits for n pods of the namespace ingress that have a node.
func boundPods(t *testing.T, c *cluster.Client, n int) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	await(t, "pods on a node", func() error {
		if err := c.Get(t.Context(), "/api/v1/namespaces/ingress/pods", &pods); err != nil {
			return err
		}
		bound := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		if bound != n {
			return fmt.Errorf("%d of %d pods are bound, want %d", bound, len(pods.Items), n)
		}
		return nil
	})
	return pods.Items
}

func TestControlPlane(t *testing.T) {
	c := start(t, cluster.Config{Name: "one", Audit: true})
	admin := client(t, c, cluster.Admin)
	node := client(t, c, cluster.Node("node-a"))

	t.Run("the version is that of go.mod", func(t *testing.T) {
		var v version.Info
		if err := admin.Get(t.Context(), "/version", &v); err != nil {
			t.Fatal(err)
		}
		if v.Major != "1" || !strings.HasPrefix(v.GitVersion, "v1."+v.Minor+".") {
			t.Errorf("version %+v", v)
		}
	})

	t.Run("a Deployment's pods are bound to a node", func(t *testing.T) {
		if err := admin.Apply(t.Context(), []byte(web)); err != nil {
			t.Fatal(err)
		}
		addNode(t, node, "node-a")
		for _, pod := range boundPods(t, node, 3) {
			if pod.Spec.ServiceAccountName != "default" {
				t.Errorf("pod %s has ServiceAccount %q, want default", pod.Name, pod.Spec.ServiceAccountName)
			}
		}
	})

	t.Run("pods of both families become endpoints", func(t *testing.T) { bothFamilies(t, admin, node) })

	t.Run("applied again, nothing changes", func(t *testing.T) {
		var before, after corev1.Service
		location := "/api/v1/namespaces/ingress/services/web"
		if err := errors.Join(
			admin.Get(t.Context(), location, &before),
			admin.Apply(t.Context(), []byte(web)),
			admin.Get(t.Context(), location, &after)); err != nil {
			t.Fatal(err)
		}
		if before.ResourceVersion != after.ResourceVersion {
			t.Errorf("resourceVersion %s became %s", before.ResourceVersion, after.ResourceVersion)
		}
		if ip, err := netip.ParseAddr(after.Spec.ClusterIP); err != nil || !ip.IsLoopback() {
			t.Errorf("cluster IP %q, want a loopback address", after.Spec.ClusterIP)
		}
	})

	t.Run("ServiceAccount tokens are issued and accepted", func(t *testing.T) { accountToken(t, c, node) })

	t.Run("who has no role is denied", func(t *testing.T) {
		stranger := client(t, c, cluster.Identity{User: "stranger"})
		err := stranger.Get(t.Context(), "/api/v1/pods", &corev1.PodList{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("a stranger listing pods: %v, want Forbidden", err)
		}
	})

	t.Run("an API server that starts again has its data", func(t *testing.T) { restart(t, c, admin) })

	t.Run("changes are in the audit log, with who made them", func(t *testing.T) {
		log, err := os.ReadFile(filepath.Join(filepath.Dir(c.Kubeconfig), "logs", "audit.log"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(log), `"username":"system:node:node-a"`) {
			t.Errorf("no change by node-a in %d bytes of audit log", len(log))
		}
	})

	t.Run("what is deleted is gone, twice", func(t *testing.T) {
		for range 2 {
			if err := admin.Delete(t.Context(), []byte(web)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// bothFamilies publishes pod addresses as a node does. Loopback addresses would
// be refused by EndpointSlices; the Service has one family, the pods have two.
func bothFamilies(t *testing.T, admin, node *cluster.Client) {
	for i, pod := range boundPods(t, node, 3) {
		status := fmt.Sprintf(`{"status":{"phase":"Running","podIP":"10.64.1.%[1]d","podIPs":[{"ip":"10.64.1.%[1]d"},{"ip":"fd00::%[1]d"}],
			"conditions":[{"type":"Ready","status":"True"}]}}`, i+7)
		location := "/api/v1/namespaces/ingress/pods/" + pod.Name + "/status"
		if err := node.Patch(t.Context(), location, types.StrategicMergePatchType, status); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "endpoints of the Service", func() error {
		var slices struct {
			Items []struct {
				AddressType string
				Endpoints   []struct{ Addresses []string }
			}
		}
		if err := admin.Get(t.Context(), "/apis/discovery.k8s.io/v1/namespaces/ingress/endpointslices", &slices); err != nil {
			return err
		}
		if len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != 3 || slices.Items[0].AddressType != "IPv4" {
			return fmt.Errorf("have %+v", slices)
		}
		return nil
	})
}

func accountToken(t *testing.T, c *cluster.Cluster, node *cluster.Client) {
	var request authenticationv1.TokenRequest
	location := "/api/v1/namespaces/ingress/serviceaccounts/default/token"
	if err := node.Post(t.Context(), location, &request, &request); err != nil {
		t.Fatal(err)
	}
	account, err := cluster.NewClient(&rest.Config{
		Host: c.Endpoint, BearerToken: request.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA},
	})
	if err != nil {
		t.Fatal(err)
	}
	var self authenticationv1.SelfSubjectReview
	if err := account.Post(t.Context(), "/apis/authentication.k8s.io/v1/selfsubjectreviews", &self, &self); err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:ingress:default"; self.Status.UserInfo.Username != want {
		t.Errorf("the token's user is %q, want %s", self.Status.UserInfo.Username, want)
	}
}

func restart(t *testing.T, c *cluster.Cluster, admin *cluster.Client) {
	ctx := t.Context()
	var before, after corev1.Namespace
	if err := admin.Get(ctx, "/api/v1/namespaces/ingress", &before); err != nil {
		t.Fatal(err)
	}
	c.StopPart(ctx, cluster.APIServer)
	if err := admin.Get(ctx, "/api/v1/namespaces/ingress", &after); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("asking a stopped API server: %v, want connection refused", err)
	}
	if err := c.StartPart(ctx, cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(ctx, "/api/v1/namespaces/ingress", &after); err != nil {
		t.Fatal(err)
	}
	if before.UID != after.UID {
		t.Errorf("namespace %s became %s", before.UID, after.UID)
	}
	select {
	case <-c.Done():
		t.Errorf("a part died on the way: %v", c.Err())
	default:
	}
}
