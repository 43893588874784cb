package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// Inspection is a pod with what people ask of it beside what decides.
type Inspection struct {
	*podevent.Pod
	// TerminationGracePeriod is from the pod's deletion to its SIGKILL; negative
	// if the pod doesn't say.
	TerminationGracePeriod time.Duration
}

// Inspect lists pods as Pods does.
func (c *Client) Inspect(ctx context.Context, namespace, labels string) ([]Inspection, error) {
	r, err := c.connect(ctx)
	if err != nil {
		return nil, c.classify("connecting", err)
	}
	var pods []Inspection
	o := metav1.ListOptions{LabelSelector: labels, Limit: pageSize}
	for range maxListPages {
		var l corev1.PodList
		if err := c.page(ctx, r, namespace, o, &l); err != nil {
			return nil, c.classify("listing pods", err)
		}
		for i := range l.Items {
			pods = append(pods, inspection(&l.Items[i]))
		}
		if l.Continue == "" {
			return pods, nil
		}
		o.Continue = l.Continue
	}
	return nil, fmt.Errorf("cluster %s: listing pods: %w: more than %d pages of %d", c.name, ErrUnreachable, maxListPages, pageSize)
}

func inspection(p *corev1.Pod) Inspection {
	out := Inspection{Pod: translate(p), TerminationGracePeriod: -1}
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		out.TerminationGracePeriod = time.Duration(*s) * time.Second
	}
	return out
}
