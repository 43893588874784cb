package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"time"

	"k8s.io/client-go/rest"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

const (
	webhookCacheTTL = 10 * time.Second
	userAgent       = "elbridge-local"
)

// Identity is who a client certificate says its holder is. RBAC decides what it
// may do.
type Identity struct {
	User   string
	Groups []string
}

// Admin may do everything.
var Admin = Identity{User: "elbridge-admin", Groups: []string{"system:masters"}}

// Node is the identity of a kubelet, with a kubelet's and kube-proxy's rights.
// Its name is told from its user name by admission webhooks, as on any cluster.
func Node(name string) Identity {
	return Identity{User: "system:node:" + name, Groups: []string{nodesGroup}}
}

const nodesGroup = "system:nodes"

// RESTConfig returns a client configuration for id, with a new certificate that
// is valid for a year. The client side has no rate limit.
func (c *Cluster) RESTConfig(id Identity) (*rest.Config, error) {
	cert, err := c.authority.client(time.Now(), id)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", id.User, err)
	}
	return &rest.Config{
		Host:            c.Endpoint,
		UserAgent:       userAgent,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, CertData: cert.cert, KeyData: cert.key},
	}, nil
}

// WriteKubeconfig writes a kubeconfig for id, readable by this user only.
func (c *Cluster) WriteKubeconfig(path string, id Identity) error {
	cert, err := c.authority.client(time.Now(), id)
	if err != nil {
		return fmt.Errorf("certificate for %s: %w", id.User, err)
	}
	return writeKubeconfig(path, c.Name, id.User,
		clientcmd.Cluster{Server: c.Endpoint, CertificateAuthorityData: c.CA},
		clientcmd.AuthInfo{ClientCertificateData: cert.cert, ClientKeyData: cert.key})
}

func writeKubeconfig(path, clusterName, user string, cluster clientcmd.Cluster, auth clientcmd.AuthInfo) error {
	content, err := yaml.Marshal(clientcmd.Config{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []clientcmd.NamedCluster{{Name: clusterName, Cluster: cluster}},
		AuthInfos:      []clientcmd.NamedAuthInfo{{Name: user, AuthInfo: auth}},
		Contexts:       []clientcmd.NamedContext{{Name: clusterName, Context: clientcmd.Context{Cluster: clusterName, AuthInfo: user}}},
		CurrentContext: clusterName,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("kubeconfig for %s: %w", user, err)
	}
	return nil
}

// complete checks that the webhook is on this machine, and fills in the default.
func (w TokenWebhook) complete() (*TokenWebhook, error) {
	u, err := url.Parse(w.URL)
	if err != nil {
		return nil, fmt.Errorf("token webhook: %w", err)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	loopback := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if !loopback || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("token webhook %q: want an http or https URL on loopback", w.URL)
	}
	if u.Scheme == "https" && len(w.CA) == 0 {
		return nil, errors.New("token webhook: https without a CA")
	}
	if w.CacheTTL == 0 {
		w.CacheTTL = webhookCacheTTL
	}
	return &w, nil
}

// write writes the webhook's address in the form that the API server reads.
func (w TokenWebhook) write(path string) error {
	return writeKubeconfig(path, "webhook", "kube-apiserver",
		clientcmd.Cluster{Server: w.URL, CertificateAuthorityData: w.CA}, clientcmd.AuthInfo{})
}
