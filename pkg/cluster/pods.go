package cluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	var p corev1.Pod
	err = r.Get().Namespace(namespace).Resource("pods").Name(name).MaxRetries(maxRetries).Do(ctx).Into(&p)
	if err != nil {
		return nil, c.classify("reading pod "+namespace+"/"+name, err)
	}
	return translate(&p), nil
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
	r, err := c.connect(ctx)
	if err != nil {
		return nil, c.classify("connecting", err)
	}
	var pods []*podevent.Pod
	o.Limit = pageSize
	for range maxListPages {
		var l corev1.PodList
		if err := c.page(ctx, r, namespace, o, &l); err != nil {
			return nil, c.classify("listing pods", err)
		}
		for i := range l.Items {
			pods = append(pods, translate(&l.Items[i]))
		}
		if l.Continue == "" { // a page may hold fewer than its limit, even none
			return pods, nil
		}
		o.Continue = l.Continue
	}
	return nil, fmt.Errorf("cluster %s: listing pods: %w: more than %d pages of %d", c.name, ErrUnreachable, maxListPages, pageSize)
}

func (c *Client) page(ctx context.Context, r *rest.RESTClient, namespace string, o metav1.ListOptions, into *corev1.PodList) error {
	req := r.Get().Namespace(namespace).Resource("pods").MaxRetries(maxRetries).Param("limit", fmt.Sprint(o.Limit))
	for name, value := range map[string]string{"labelSelector": o.LabelSelector, "fieldSelector": o.FieldSelector, "continue": o.Continue} {
		if value != "" {
			req.Param(name, value)
		}
	}
	return req.Do(ctx).Into(into)
}

// translate is where Kubernetes' types end.
func translate(p *corev1.Pod) *podevent.Pod {
	out := &podevent.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), ResourceVersion: p.ResourceVersion,
		Labels: p.Labels, Annotations: p.Annotations,
		ServiceAccount: p.Spec.ServiceAccountName, NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork,
		HostIP: p.Status.HostIP, Phase: string(p.Status.Phase),
		Terminating: p.DeletionTimestamp != nil, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
	}
	if o := metav1.GetControllerOf(p); o != nil {
		out.Owner = &podevent.Owner{Kind: o.Kind, Name: o.Name}
	}
	for _, ip := range p.Status.PodIPs {
		out.PodIPs = append(out.PodIPs, ip.IP)
	}
	if len(out.PodIPs) == 0 && p.Status.PodIP != "" {
		out.PodIPs = []string{p.Status.PodIP}
	}
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			out.Ready = c.Status == corev1.ConditionTrue
		case corev1.ContainersReady:
			out.ContainersReady = c.Status == corev1.ConditionTrue
		}
	}
	for _, c := range p.Spec.Containers {
		out.Ports = append(out.Ports, ports(c)...)
	}
	for _, c := range p.Spec.InitContainers { // sidecars
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out.Ports = append(out.Ports, ports(c)...)
		}
	}
	return out
}

func ports(c corev1.Container) []podevent.Port {
	var out []podevent.Port
	for _, p := range c.Ports {
		out = append(out, podevent.Port{Name: p.Name, ContainerPort: p.ContainerPort, HostPort: p.HostPort,
			Protocol: strings.ToUpper(string(p.Protocol))})
	}
	return out
}
