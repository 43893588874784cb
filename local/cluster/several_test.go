package cluster_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/elbridge/elbridge/local/cluster"
)

var parts = []cluster.Part{cluster.Etcd, cluster.APIServer, cluster.ControllerManager, cluster.Scheduler}

// pids are the processes of a cluster.
func pids(t *testing.T, c *cluster.Cluster) []int {
	t.Helper()
	var all []int
	for _, part := range parts {
		pid := c.PID(part)
		if pid == 0 {
			t.Errorf("%s does not run", part)
			continue
		}
		all = append(all, pid)
	}
	return all
}

func TestTwoClustersAtOnce(t *testing.T) {
	dir := t.TempDir()
	both := startAll(t, cluster.Config{Name: "one", Dir: dir},
		cluster.Config{Name: "two", ServiceCIDR: netip.MustParsePrefix("127.97.0.0/16")})
	one, two := both[0], both[1]
	first, second := client(t, one, cluster.Admin), client(t, two, cluster.Admin)
	if err := first.Apply(t.Context(), []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: mine}}`)); err != nil {
		t.Fatal(err)
	}

	t.Run("each has its own objects, addresses and users", func(t *testing.T) {
		if err := second.Get(t.Context(), "/api/v1/namespaces/mine", &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("cluster two about a namespace of cluster one: %v, want NotFound", err)
		}
		var kubernetes corev1.Service
		if err := second.Get(t.Context(), "/api/v1/namespaces/default/services/kubernetes", &kubernetes); err != nil || kubernetes.Spec.ClusterIP != "127.97.0.1" {
			t.Errorf("cluster two's own Service: %q, %v", kubernetes.Spec.ClusterIP, err)
		}
		config, err := one.RESTConfig(cluster.Admin)
		if err != nil {
			t.Fatal(err)
		}
		config.Host, config.CAData = two.Endpoint, two.CA
		foreign, err := cluster.NewClient(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := foreign.Get(t.Context(), "/api/v1/namespaces", &corev1.NamespaceList{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("cluster one's administrator at cluster two: %v, want Unauthorized", err)
		}
	})

	t.Run("folders and ports are not shared", func(t *testing.T) {
		if _, err := cluster.Start(t.Context(), cluster.Config{Name: "three", Dir: dir}); err == nil || !strings.Contains(err.Error(), "another cluster runs in it") {
			t.Errorf("a cluster in the same folder: %v", err)
		}
		endpoint, err := url.Parse(two.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(endpoint.Port())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Start(t.Context(), cluster.Config{Name: "three", Dir: t.TempDir(), APIServerPort: port}); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a cluster on the same port: %v", err)
		}
	})

	t.Run("one stops and leaves nothing, the other goes on", func(t *testing.T) {
		was := pids(t, one)
		one.Stop(t.Context())
		one.Stop(t.Context()) // harmless
		for _, pid := range was {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d after Stop: %v, want none", pid, err)
			}
		}
		select {
		case <-one.Done():
		default:
			t.Error("Done is open after Stop")
		}
		if err := one.Err(); err != nil {
			t.Errorf("after Stop: %v", err)
		}
		if err := second.Get(t.Context(), "/api/v1/namespaces/default", &corev1.Namespace{}); err != nil {
			t.Errorf("cluster two: %v", err)
		}
	})

	t.Run("started again in its folder it has its objects and keys", func(t *testing.T) {
		again := start(t, cluster.Config{Name: "one", Dir: dir})
		if string(again.CA) != string(one.CA) {
			t.Error("another authority")
		}
		if err := client(t, again, cluster.Admin).Get(t.Context(), "/api/v1/namespaces/mine", &corev1.Namespace{}); err != nil {
			t.Error(err)
		}
	})
}

// reviewer answers TokenReviews: the token "good" is fred's.
func reviewer(t *testing.T) *httptest.Server {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		if review.APIVersion != "authentication.k8s.io/v1" {
			t.Errorf("asked in %q", review.APIVersion)
		}
		review.Status.Authenticated = review.Spec.Token == "good"
		if review.Status.Authenticated {
			review.Status.User = authenticationv1.UserInfo{Username: "fred", Groups: []string{"elbridge:readers"}}
		}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "elbridge:readers"}]
`

func TestTokenWebhookAndFaults(t *testing.T) {
	tokens := reviewer(t)
	c := start(t, cluster.Config{Name: "tokens", TokenWebhook: &cluster.TokenWebhook{
		URL: tokens.URL,
		CA:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tokens.Certificate().Raw}),
	}})
	if err := client(t, c, cluster.Admin).Apply(t.Context(), []byte(readers)); err != nil {
		t.Fatal(err)
	}
	bearer := func(token string) *cluster.Client {
		client, err := cluster.NewClient(&rest.Config{Host: c.Endpoint, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA}})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	fred := bearer("good")

	t.Run("a token that the webhook knows has its groups' rights", func(t *testing.T) {
		if err := fred.Get(t.Context(), "/api/v1/pods", &corev1.PodList{}); err != nil {
			t.Error(err)
		}
		if err := fred.Get(t.Context(), "/api/v1/secrets", &corev1.SecretList{}); !apierrors.IsForbidden(err) {
			t.Errorf("reading Secrets: %v, want Forbidden", err)
		}
	})

	t.Run("another token is refused", func(t *testing.T) {
		if err := bearer("bad").Get(t.Context(), "/api/v1/pods", &corev1.PodList{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("%v, want Unauthorized", err)
		}
	})

	t.Run("a paused API server does not answer, and does again", func(t *testing.T) {
		if err := c.PausePart(cluster.APIServer); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := fred.Get(ctx, "/api/v1/pods", &corev1.PodList{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("asking a paused API server: %v, want no answer", err)
		}
		if err := c.ResumePart(cluster.APIServer); err != nil {
			t.Fatal(err)
		}
		await(t, "the resumed API server", func() error { return fred.Get(t.Context(), "/api/v1/pods", &corev1.PodList{}) })
	})

	t.Run("a part that dies is reported with its name", func(t *testing.T) {
		if err := syscall.Kill(c.PID(cluster.Scheduler), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.Done():
		case <-time.After(patience):
			t.Fatal("Done stays open")
		}
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), "kube-scheduler: signal: killed") {
			t.Errorf("error %v", err)
		}
		if err := c.PausePart(cluster.Scheduler); err == nil {
			t.Error("a dead part was paused")
		}
	})
}

func TestStartErrorsQuoteTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("starts etcd")
	}
	dir := t.TempDir()
	config := cluster.Config{
		Name: "broken", Dir: dir, Progress: os.Stderr,
		ExtraArgs: map[cluster.Part][]string{cluster.APIServer: {"--no-such-flag"}},
	}
	_, err := cluster.Start(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") || !strings.Contains(err.Error(), "kube-apiserver.log") {
		t.Errorf("error %v, want the API server's last words", err)
	}

	config.ExtraArgs = nil
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user has had enough"))
	if _, err := cluster.Start(ctx, config); err == nil || !strings.Contains(err.Error(), "the user has had enough") {
		t.Errorf("error %v, want the cause of the context's end", err)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	_, err := cluster.Start(t.Context(), cluster.Config{
		Name: "No Label", APIServerPort: 70000,
		ServiceCIDR:  netip.MustParsePrefix("10.96.0.0/16"),
		TokenWebhook: &cluster.TokenWebhook{URL: "https://example.com/"},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, fault := range []string{`name "No Label"`, "no folder", "port 70000", "service range 10.96.0.0/16", `token webhook "https://example.com/"`} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("error %v does not say %q", err, fault)
		}
	}
}
