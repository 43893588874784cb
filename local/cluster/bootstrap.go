package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeRights gives the group of all nodes what a kubelet and kube-proxy may do,
// by the roles that every cluster has. (On a real cluster a node authorizer
// narrows the first to the node's own pods.)
const nodeRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "elbridge-local:nodes"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "elbridge-local:node-proxiers"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-proxier"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
`

// bootstrap brings what every cluster here has, and waits until the namespace
// default can take pods: the sign that the controllers work.
func (c *Cluster) bootstrap(ctx context.Context) error {
	admin, err := c.Client(Admin)
	if err != nil {
		return err
	}
	if err := admin.Apply(ctx, []byte(nodeRights)); err != nil {
		return err
	}
	return admin.awaitAccount(ctx, metav1.NamespaceDefault)
}
