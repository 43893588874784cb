package cluster

import (
	"fmt"
	"net"
	"os"
	"time"
)

// Who the two clients among the parts are, as RBAC's own roles know them.
var partIdentities = map[Part]Identity{
	ControllerManager: {User: "system:kube-controller-manager"},
	Scheduler:         {User: "system:kube-scheduler"},
}

// auditPolicy leaves out what only reads and what only says "still alive".
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources:
  - group: coordination.k8s.io
    resources: [leases]
  - group: ""
    resources: [events]
  - group: events.k8s.io
    resources: [events]
- level: Metadata
`

// writeFiles writes all that the parts read: keys, certificates, kubeconfigs.
func (c *Cluster) writeFiles(now time.Time) error {
	var err error
	if c.authority, err = loadAuthority(c.pki(""), "ca", now); err != nil {
		return err
	}
	c.CA = c.authority.pem
	if err := c.writeServing(now); err != nil {
		return err
	}
	if err := c.writeEtcd(now); err != nil {
		return err
	}
	if _, err := loadKey(c.pki("sa.key")); err != nil {
		return err
	}
	for part, id := range partIdentities {
		if err := c.WriteKubeconfig(c.path(string(part)+".kubeconfig"), id); err != nil {
			return err
		}
	}
	if w := c.config.TokenWebhook; w != nil {
		if err := w.write(c.path("token-webhook.kubeconfig")); err != nil {
			return err
		}
	}
	if err := os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	return c.WriteKubeconfig(c.Kubeconfig, Admin)
}

// writeServing makes the certificate that the API server, the controller manager
// and the scheduler serve with.
func (c *Cluster) writeServing(now time.Time) error {
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	serving, err := c.authority.server(now, names, net.IPv4(127, 0, 0, 1), c.firstServiceIP())
	if err != nil {
		return err
	}
	return c.writePair("server", serving)
}

// writeEtcd uses an authority of its own: clients of the API server are not
// clients of its store.
func (c *Cluster) writeEtcd(now time.Time) error {
	authority, err := loadAuthority(c.pki(""), "etcd-ca", now)
	if err != nil {
		return err
	}
	server, err := authority.server(now, []string{"localhost"}, net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	client, err := authority.client(now, Identity{User: string(APIServer)})
	if err != nil {
		return err
	}
	if err := c.writePair("etcd-server", server); err != nil {
		return err
	}
	return c.writePair("etcd-client", client)
}

func (c *Cluster) writePair(name string, p pair) error {
	for suffix, content := range map[string][]byte{".crt": p.cert, ".key": p.key} {
		if err := os.WriteFile(c.pki(name+suffix), content, 0o600); err != nil {
			return fmt.Errorf("certificate %s: %w", name, err)
		}
	}
	return nil
}
