package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	// pageSize of a LIST: kubectl's own default.
	pageSize = 500
	// maxListPages bounds one LIST at 100,000 pods.
	maxListPages = 200
)

// Pod reads a pod from etcd: resourceVersion stays unset, which makes it a
// quorum read (I1). Errors: ErrNotFound, ErrUnauthorized, ErrUnreachable.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*podevent.Pod, error) {
	r, err := c.connect(ctx)
	if err != nil {
		return nil, c.classify("connecting", err)
	}
	p, err := readPod(ctx, r.Get().Namespace(namespace).Resource("pods").Name(name).MaxRetries(maxRetries))
	if err != nil {
		return nil, c.classify("reading pod "+namespace+"/"+name, err)
	}
	return p, nil
}

func readPod(ctx context.Context, req *rest.Request) (*podevent.Pod, error) {
	body, err := req.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return newObjects().pod(body)
}

// Pods lists the pods of a namespace ("" is all of them) with a label selector,
// as of the current revision and whole: a page that fails fails the list (I8).
func (c *Client) Pods(ctx context.Context, namespace, labels string) ([]*podevent.Pod, error) {
	return c.list(ctx, namespace, metav1.ListOptions{LabelSelector: labels})
}

// PodsByIP lists the pods, in any namespace, whose first address is ip. The
// second family can't be asked for: the API server's selector knows podIPs[0].
func (c *Client) PodsByIP(ctx context.Context, ip string) ([]*podevent.Pod, error) {
	return c.list(ctx, "", metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.podIP", ip).String()})
}

func (c *Client) list(ctx context.Context, namespace string, o metav1.ListOptions) ([]*podevent.Pod, error) {
	inspected, err := c.inspect(ctx, namespace, o)
	if err != nil {
		return nil, err
	}
	var pods []*podevent.Pod
	for _, i := range inspected {
		pods = append(pods, i.Pod)
	}
	return pods, nil
}

// inspect is for lists that are kept whole.
func (c *Client) inspect(ctx context.Context, namespace string, o metav1.ListOptions) ([]Inspection, error) {
	r, err := c.connect(ctx)
	if err != nil {
		return nil, c.classify("connecting", err)
	}
	var pods []Inspection
	p := pages{of: r, namespace: namespace, options: o, max: maxListPages, timeout: callTimeout}
	err = p.read(ctx, func(about) error { return nil }, func(i Inspection) { pods = append(pods, i) })
	if err != nil {
		return nil, c.classify("listing pods", err)
	}
	return pods, nil
}
