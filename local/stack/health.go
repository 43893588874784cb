package stack

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/wait"
)

// WebhookReady returns how many webhook pods are ready, 0 also where that can't
// be read.
func (s *Stack) WebhookReady(ctx context.Context) int {
	var d struct {
		Status struct{ ReadyReplicas int }
	}
	if err := s.Admin.Get(ctx, "/apis/apps/v1/namespaces/"+WebhookSpace+"/deployments/"+WebhookName, &d); err != nil {
		return 0
	}
	return d.Status.ReadyReplicas
}

// probe is a pod that no scheduler places: deleting it only asks the webhooks.
const probe = `
apiVersion: v1
kind: Pod
metadata: {name: elbridge-probe, namespace: default}
spec:
  schedulerName: none
  terminationGracePeriodSeconds: 0
  containers: [{name: none, image: none}]
`

// waitAdmission waits until the API server has heard of the webhook: it learns
// of a new configuration by a watch, within a second or two.
func (s *Stack) waitAdmission(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, 2*pollEvery, true, func(ctx context.Context) (bool, error) {
		if err := s.Admin.Apply(ctx, []byte(probe)); err != nil {
			return false, err
		}
		if err := s.Admin.Delete(ctx, []byte(probe)); err != nil {
			return false, err
		}
		metrics, err := s.Admin.REST().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(metrics)) {
			if strings.HasPrefix(line, "apiserver_admission_webhook_admission_duration_seconds_count") && strings.Contains(line, "elbridge") {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not call the webhook: %w", err)
	}
	return nil
}
