package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Node is what a witness needs to know of a node.
type Node struct {
	Name  string
	Ready bool // condition Ready is True
}

// Node reads a node. Errors as of Pod.
func (c *Client) Node(ctx context.Context, name string) (Node, error) {
	r, err := c.connect(ctx)
	if err != nil {
		return Node{}, c.classify("connecting", err)
	}
	var n corev1.Node
	if err := r.Get().Resource("nodes").Name(name).MaxRetries(maxRetries).Do(ctx).Into(&n); err != nil {
		return Node{}, c.classify("reading node "+name, err)
	}
	out := Node{Name: name}
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			out.Ready = cond.Status == corev1.ConditionTrue
		}
	}
	return out, nil
}
