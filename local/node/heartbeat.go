package node

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	leaseSeconds = 40
	leaseJitter  = 0.04
	renewTimeout = 10 * time.Second
	retryFirst   = 200 * time.Millisecond
	retryLimit   = 10 * time.Second
)

// register creates the Node, or brings its labels and status up to date. It
// returns when that has worked or ctx ended.
func (h *host) register(ctx context.Context) (*v1.Node, error) {
	for wait := retryFirst; ; wait = min(2*wait, retryLimit) {
		n, err := h.tryRegister(ctx)
		if err == nil {
			return n, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.log.Warn("node not registered yet", "err", err)
		if !sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

func (h *host) tryRegister(ctx context.Context) (*v1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	want := nodeObject(h.spec, h.agent.now())
	var got v1.Node
	err := h.kube.core.Post().Resource("nodes").Body(want).Do(ctx).Into(&got)
	if err == nil {
		return &got, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": want.Labels}, "spec": map[string]any{"providerID": want.Spec.ProviderID}})
	if err != nil {
		return nil, err
	}
	if err := h.kube.core.Patch(types.MergePatchType).Resource("nodes").Name(h.spec.Name).Body(patch).Do(ctx).Into(&got); err != nil {
		return nil, fmt.Errorf("node %s exists and refuses our labels: %w", h.spec.Name, err)
	}
	h.since = healthySince(&got, h.agent.now())
	return &got, h.reportStatus(ctx)
}

// healthySince is when a node that is healthy now became so: others may have
// called it unhealthy while it did not report.
func healthySince(n *v1.Node, now time.Time) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return now
}

// reportStatus writes nodes/status as a kubelet does.
func (h *host) reportStatus(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	patch, err := nodeStatusPatch(nodeStatus(h.spec, h.since, h.agent.now()))
	if err != nil {
		return err
	}
	return h.kube.core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(h.spec.Name).SubResource("status").Body(patch).Do(ctx).Error()
}

// keepStatus reports the node each StatusPeriod; a failed report is repeated
// after the 10 s in which a kubelet looks at its node again.
func (h *host) keepStatus(ctx context.Context) {
	wait := h.agent.cfg.StatusPeriod
	for sleep(ctx, wait) {
		wait = h.agent.cfg.StatusPeriod
		if err := h.reportStatus(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("node status not written", "err", err)
			wait = min(wait, retryLimit)
		}
	}
}

// keepLease renews the node's lease each LeasePeriod, the first time at once.
func (h *host) keepLease(ctx context.Context, owner *v1.Node) {
	for {
		wait := time.Duration(float64(h.agent.cfg.LeasePeriod) * (1 + leaseJitter*rand.Float64()))
		if err := h.renewLease(ctx, owner); err != nil && ctx.Err() == nil {
			h.log.Warn("lease not renewed", "err", err)
			wait = min(wait, time.Second)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

func (h *host) renewLease(ctx context.Context, owner *v1.Node) error {
	ctx, cancel := context.WithTimeout(ctx, max(h.agent.cfg.LeasePeriod, renewTimeout))
	defer cancel()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"holderIdentity": h.spec.Name, "leaseDurationSeconds": leaseSeconds, "renewTime": metav1.NewMicroTime(h.agent.now()),
	}})
	if err != nil {
		return err
	}
	leases := h.kube.coordination
	err = leases.Patch(types.MergePatchType).Namespace(v1.NamespaceNodeLease).Resource("leases").Name(h.spec.Name).Body(patch).Do(ctx).Error()
	if !apierrors.IsNotFound(err) {
		return err
	}
	return leases.Post().Namespace(v1.NamespaceNodeLease).Resource("leases").Body(h.lease(owner)).Do(ctx).Error()
}

func (h *host) lease(owner *v1.Node) *coordinationv1.Lease {
	name, seconds, now := h.spec.Name, int32(leaseSeconds), metav1.NewMicroTime(h.agent.now())
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: v1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}

// sleep waits and says whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
