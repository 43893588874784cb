package contract_test

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/elbridge/elbridge/local/cloud/core"
	localeks "github.com/elbridge/elbridge/local/cloud/eks"
	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/cloud/token"
	"github.com/elbridge/elbridge/pkg/cluster"
)

// put makes a cluster known to the local EKS, with an entry for the registrar.
func (w *world) put(t *testing.T, name, endpoint string, ca []byte) {
	t.Helper()
	if err := w.Clusters.Put(localeks.Cluster{Name: name, Account: account, Region: region, Endpoint: endpoint, CA: ca, Version: "1.37",
		Access: map[string]localeks.AccessEntry{
			"arn:aws:iam::" + account + ":role/registrar": {Username: "elbridge:registrar:{{SessionName}}", Groups: []string{"elbridge:registrar"}},
		}}); err != nil {
		t.Fatal(err)
	}
}

// dial is how the registrar reaches a cluster: by EKS, and the SDK's endpoint is
// overridden.
func (w *world) dial(as core.Principal, name string, now func() time.Time) *cluster.Client {
	cfg := w.config(as)
	d := &cluster.Dialer{AWS: cfg, EKS: eks.NewFromConfig(cfg), UserAgent: "elbridge-registrar/test", Now: now}
	return d.Client(cluster.Config{Name: name, EKS: &cluster.EKS{Name: name}})
}

// The verifier is as strict as aws-iam-authenticator: it wants X-Amz-Expires, the
// regional STS host and the cluster's name among what is signed.
func TestTokensAreAccepted(t *testing.T) {
	w := start(t, elb.Config{})
	t.Setenv("AWS_ENDPOINT_URL", w.url)
	var bearer string
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	defer api.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	w.put(t, "local", api.URL, ca)
	if _, err := w.dial(registrar, "local", time.Now).Pod(t.Context(), "ingress", "web-0"); !errors.Is(err, cluster.ErrUnreachable) {
		t.Fatal(err)
	}

	v := &token.Verifier{Clock: core.RealClock{}, STS: core.InMemory(w.Server)}
	arn, err := v.Verify(t.Context(), bearer, "local")
	if err != nil || arn != registrar.ARN {
		text, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(bearer, "k8s-aws-v1."))
		t.Errorf("made by %q, error %v; the token says %s", arn, err, text)
	}
	if _, err := v.Verify(t.Context(), bearer, "prod"); !errors.Is(err, token.ErrRefused) {
		t.Errorf("for another cluster: %v, want it refused", err)
	}
}
