package cluster

import (
	"context"
	"time"

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
	return c.inspect(ctx, namespace, metav1.ListOptions{LabelSelector: labels})
}
