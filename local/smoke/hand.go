package smoke

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

func descriptions(keys []string) (out []elbtypes.TargetDescription) {
	for _, k := range keys {
		a := netip.MustParseAddrPort(k)
		out = append(out, elbtypes.TargetDescription{Id: new(a.Addr().String()), Port: new(int32(a.Port()))})
	}
	return out
}

// removeByHand is somebody with rights of their own who deregisters targets.
func (r *Runner) removeByHand(ctx context.Context, group string, keys ...string) error {
	_, err := r.S.AWS.ELB.DeregisterTargets(ctx, &elbv2.DeregisterTargetsInput{TargetGroupArn: &group, Targets: descriptions(keys)})
	return err
}

func (r *Runner) addByHand(ctx context.Context, group string, keys ...string) error {
	_, err := r.S.AWS.ELB.RegisterTargets(ctx, &elbv2.RegisterTargetsInput{TargetGroupArn: &group, Targets: descriptions(keys)})
	return err
}

// removedByHand: the target comes back, and stays.
func removedByHand(ctx context.Context, r *Runner) (string, error) {
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	key, start := p.Status.PodIP+":8080", time.Now()
	if err := r.removeByHand(ctx, r.web, key); err != nil {
		return "", err
	}
	why, err := r.why(ctx, start, r.web, key, true)
	if err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 2, healthy: true}); err != nil {
		return why, err
	}
	note := fmt.Sprintf("%s, healthy after %.1f s", why, time.Since(start).Seconds())
	return note, r.stays(ctx, r.quiet(), r.web, "a repaired target stays", func(t map[string]string) bool { return t[key] == "healthy" })
}

// strangeAddress is one that no pod ever has here.
const strangeAddress = "10.64.3.250:8080"

// addedByHand: a target that nobody claims goes. It is one, so within the limit.
func addedByHand(ctx context.Context, r *Runner) (string, error) {
	start := time.Now()
	if err := r.addByHand(ctx, r.web, strangeAddress); err != nil {
		return "", err
	}
	why, err := r.why(ctx, start, r.web, strangeAddress, false)
	if err != nil {
		return "", err
	}
	return why, r.exactly(ctx, want{pods: 2, healthy: true})
}

// nodeAddress is node-a's: what instance targets were registered by.
const nodeAddress = "10.64.0.11:8080"

// cleanedByHand: somebody takes all targets but one out of the group and puts a
// node's address in, as before there were targets by pod.
func cleanedByHand(ctx context.Context, r *Runner) (string, error) {
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return "", err
	}
	keys, _, err := r.claims(ctx, "app=web")
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := errors.Join(r.removeByHand(ctx, r.web, keys[1:]...), r.addByHand(ctx, r.web, nodeAddress)); err != nil {
		return "", err
	}
	why := ""
	for _, key := range keys[1:] {
		if why, err = r.why(ctx, start, r.web, key, true); err != nil {
			return "", err
		}
	}
	gone, err := r.why(ctx, start, r.web, nodeAddress, false)
	if err != nil {
		return why, err
	}
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return why, err
	}
	note := fmt.Sprintf("%s; the node's: %s; right after %.1f s", why, gone, time.Since(start).Seconds())
	if err := r.scale(ctx, "web", 2); err != nil {
		return note, err
	}
	return note, r.exactly(ctx, want{pods: 2})
}
