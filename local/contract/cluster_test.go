package contract_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/elbridge/elbridge/infra/kubernetes"
	"github.com/elbridge/elbridge/local/cloud/elb"
	local "github.com/elbridge/elbridge/local/cluster"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// startKube starts a control plane that asks w who the bearer of a token is.
func startKube(t *testing.T, w *world) *local.Cluster {
	t.Helper()
	k, err := local.Start(t.Context(), local.Config{Name: "local", Dir: t.TempDir(), Progress: os.Stderr,
		TokenWebhook: &local.TokenWebhook{URL: w.url + "/_local/clusters/local/token", CacheTTL: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Stop(context.Background()) })
	return k
}

// pods makes n pods in a namespace, bound to a node that needs no scheduler.
func pods(t *testing.T, admin *local.Client, namespace, node, app string, n int) {
	t.Helper()
	for i := range n {
		err := admin.Post(t.Context(), "/api/v1/namespaces/"+namespace+"/pods", map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", app, i), "labels": map[string]string{"app": app}},
			"spec": map[string]any{"nodeName": node, "terminationGracePeriodSeconds": 30,
				"containers": []any{map[string]any{"name": "web", "image": "elbridge.local/web", "ports": []any{map[string]any{"name": "http", "containerPort": 8080}}}}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
}

const namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: ingress}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
`

func podNames(ps []*podevent.Pod) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return strings.Join(out, " ")
}

// TestAPIServer holds pkg/cluster against a real API server with the rights that
// the registrar has.
func TestAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	w := start(t, elb.Config{})
	k := startKube(t, w)
	w.put(t, "local", k.Endpoint, k.CA)
	admin, err := k.Client(local.Admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := errors.Join(admin.Apply(ctx, kubernetes.RBAC), admin.Apply(ctx, []byte(namespaces))); err != nil {
		t.Fatal(err)
	}
	node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "node-a"}}
	if err := admin.Post(ctx, "/api/v1/nodes", node, nil); err != nil {
		t.Fatal(err)
	}
	pods(t, admin, "ingress", "node-a", "web", 3)
	pods(t, admin, "other", "node-a", "web", 1)
	status := func(namespace, name, v4, v6, phase string) {
		t.Helper()
		err := admin.Patch(ctx, "/api/v1/namespaces/"+namespace+"/pods/"+name+"/status", types.StrategicMergePatchType, fmt.Sprintf(
			`{"status":{"phase":%q,"hostIP":"10.64.0.11","hostIPs":[{"ip":"10.64.0.11"}],"podIP":%q,"podIPs":[{"ip":%[2]q},{"ip":%q}],"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}]}}`,
			phase, v4, v6))
		if err != nil {
			t.Fatal(err)
		}
	}
	status("ingress", "web-0", "10.64.1.7", "fd00::107", "Running")
	status("other", "web-0", "10.64.1.8", "fd00::108", "Running")
	c := w.dial(registrar, "local", time.Now)
	await(t, "the roles are known", func() bool { _, err := c.Pods(ctx, "ingress", ""); return err == nil })

	t.Run("a pod, as it is now", func(t *testing.T) {
		p, err := c.Pod(ctx, "ingress", "web-0")
		if err != nil {
			t.Fatal(err)
		}
		if p.PodIP() != "10.64.1.7" || len(p.PodIPs) != 2 || p.HostIP != "10.64.0.11" || p.NodeName != "node-a" || !p.Ready || !p.ContainersReady || p.Phase != "Running" ||
			p.Terminating || p.UID == "" || p.ResourceVersion == "" || p.Labels["app"] != "web" || p.ServiceAccount != "default" || len(p.Ports) != 1 || p.Ports[0] != (podevent.Port{Name: "http", ContainerPort: 8080, Protocol: "TCP"}) {
			t.Errorf("pod %+v", p)
		}
		_, err = c.Pod(ctx, "ingress", "nobody")
		if !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("one that isn't there: %v", err)
		}
		_, err = c.Pod(ctx, "nowhere", "nobody")
		if !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("in a namespace that isn't there: %v", err)
		}
	})

	t.Run("lists", func(t *testing.T) {
		tests := map[string]struct {
			list func() ([]*podevent.Pod, error)
			want string
		}{
			"of a namespace":      {func() ([]*podevent.Pod, error) { return c.Pods(ctx, "ingress", "") }, "ingress/web-0 ingress/web-1 ingress/web-2"},
			"by label, of all":    {func() ([]*podevent.Pod, error) { return c.Pods(ctx, "", "app in (web)") }, "ingress/web-0 ingress/web-1 ingress/web-2 other/web-0"},
			"by another label":    {func() ([]*podevent.Pod, error) { return c.Pods(ctx, "", "app=api") }, ""},
			"by address":          {func() ([]*podevent.Pod, error) { return c.PodsByIP(ctx, "10.64.1.8") }, "other/web-0"},
			"by nobody's address": {func() ([]*podevent.Pod, error) { return c.PodsByIP(ctx, "10.64.1.9") }, ""},
			// status.podIP is podIPs[0]: the second family can't be asked for.
			"by address of the second family": {func() ([]*podevent.Pod, error) { return c.PodsByIP(ctx, "fd00::107") }, ""},
		}
		for name, tt := range tests {
			if ps, err := tt.list(); err != nil || podNames(ps) != tt.want {
				t.Errorf("%s: %q, error %v; want %q", name, podNames(ps), err, tt.want)
			}
		}
	})

	t.Run("a node", func(t *testing.T) {
		if n, err := c.Node(ctx, "node-a"); err != nil || n.Ready {
			t.Errorf("before it says that it is ready: %+v, error %v", n, err)
		}
		if err := admin.Patch(ctx, "/api/v1/nodes/node-a/status", types.StrategicMergePatchType, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Node(ctx, "node-a"); err != nil || !n.Ready {
			t.Errorf("ready: %+v, error %v", n, err)
		}
		if _, err := c.Node(ctx, "node-x"); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("one that isn't there: %v", err)
		}
	})

	t.Run("I4 a pod that is being deleted", func(t *testing.T) {
		if err := admin.REST().Delete().AbsPath("/api/v1/namespaces/ingress/pods/web-0").Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
		if p, err := c.Pod(ctx, "ingress", "web-0"); err != nil || !p.Terminating || p.DeletionGracePeriodSeconds == nil || *p.DeletionGracePeriodSeconds != 30 {
			t.Errorf("pod %+v, error %v", p, err)
		}
	})

	t.Run("more than a page", func(t *testing.T) {
		pods(t, admin, "other", "node-a", "many", 520)
		if ps, err := c.Pods(ctx, "other", "app=many"); err != nil || len(ps) != 520 {
			t.Errorf("%d pods, error %v; want 520", len(ps), err)
		}
	})

	t.Run("who has no rights is not authorised", func(t *testing.T) {
		for name, as := range map[string]*cluster.Client{"without an access entry (401)": w.dial(stranger, "local", time.Now), "without a role (403)": kubeconfigOf(t, k, "nobody")} {
			if _, err := as.Pod(ctx, "ingress", "web-0"); !errors.Is(err, cluster.ErrUnauthorized) || errors.Is(err, cluster.ErrUnreachable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("what the registrar may not do", func(t *testing.T) { mayNot(t, k, "registrar", false) })
	t.Run("what resync may not do", func(t *testing.T) { mayNot(t, k, "resync", true) })
}

// kubeconfigOf is a client for a user of a certificate.
func kubeconfigOf(t *testing.T, k *local.Cluster, user string) *cluster.Client {
	t.Helper()
	path := t.TempDir() + "/kubeconfig"
	if err := k.WriteKubeconfig(path, local.Identity{User: user}); err != nil {
		t.Fatal(err)
	}
	return (&cluster.Dialer{Now: time.Now}).Client(cluster.Config{Name: "local", Kubeconfig: path})
}

// mayNot asks for what infra/kubernetes doesn't grant, as the function's group.
// Resync may watch pods, the registrar may not.
func mayNot(t *testing.T, k *local.Cluster, function string, watches bool) {
	cfg, err := k.RESTConfig(local.Identity{User: "elbridge:" + function + ":run-1", Groups: []string{"elbridge:" + function}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := local.NewClient(rest.CopyConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	r, ctx := client.REST(), t.Context()
	watching := func(path string) error { // for a second at most
		_, err := r.Get().AbsPath(path).Param("watch", "true").Param("timeoutSeconds", "1").DoRaw(ctx)
		return err
	}
	tests := map[string]struct {
		err error
		may bool
	}{
		"watch pods":           {watching("/api/v1/pods"), watches},
		"watch nodes":          {watching("/api/v1/nodes"), false},
		"watch secrets":        {watching("/api/v1/secrets"), false},
		"read leases":          {r.Get().AbsPath("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases").Do(ctx).Error(), false},
		"scale a deployment":   {client.Patch(ctx, "/apis/apps/v1/namespaces/ingress/deployments/web/scale", types.MergePatchType, `{"spec":{"replicas":0}}`), false},
		"make a pod":           {client.Post(ctx, "/api/v1/namespaces/ingress/pods", map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]string{"name": "x"}}, nil), false},
		"delete all pods":      {r.Delete().AbsPath("/api/v1/namespaces/ingress/pods").Do(ctx).Error(), false},
		"get a pod":            {r.Get().AbsPath("/api/v1/namespaces/ingress/pods/web-1").Do(ctx).Error(), true},
		"list pods":            {r.Get().AbsPath("/api/v1/pods").Do(ctx).Error(), true},
		"get a node":           {r.Get().AbsPath("/api/v1/nodes/node-a").Do(ctx).Error(), true},
		"list nodes":           {r.Get().AbsPath("/api/v1/nodes").Do(ctx).Error(), false},
		"delete a pod":         {r.Delete().AbsPath("/api/v1/namespaces/ingress/pods/web-1").Do(ctx).Error(), false},
		"patch a pod's status": {client.Patch(ctx, "/api/v1/namespaces/ingress/pods/web-1/status", types.MergePatchType, `{"status":{"podIP":"10.64.1.9"}}`), false},
		"read secrets":         {r.Get().AbsPath("/api/v1/namespaces/ingress/secrets").Do(ctx).Error(), false},
		"read config maps":     {r.Get().AbsPath("/api/v1/namespaces/ingress/configmaps").Do(ctx).Error(), false},
		"run in a pod":         {r.Post().AbsPath("/api/v1/namespaces/ingress/pods/web-1/exec").Param("command", "sh").Do(ctx).Error(), false},
		"read a pod's log":     {r.Get().AbsPath("/api/v1/namespaces/ingress/pods/web-1/log").Do(ctx).Error(), false},
		"evict a pod":          {r.Post().AbsPath("/api/v1/namespaces/ingress/pods/web-1/eviction").SetHeader("Content-Type", "application/json").Body([]byte(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web-1"}}`)).Do(ctx).Error(), false},
		"change a node":        {client.Patch(ctx, "/api/v1/nodes/node-a", types.MergePatchType, `{"spec":{"unschedulable":true}}`), false},
		"give itself rights":   {r.Get().AbsPath("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings").Do(ctx).Error(), false},
	}
	for name, tt := range tests {
		if tt.may && tt.err != nil || !tt.may && !apierrors.IsForbidden(tt.err) {
			t.Errorf("%s: %v, want it allowed: %t", name, tt.err, tt.may)
		}
	}
}
