package smoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"github.com/elbridge/elbridge/pkg/drift"
)

// deleteGroup takes a group's load balancer away, and then the group.
func (r *Runner) deleteGroup(ctx context.Context, group string) error {
	out, err := r.S.AWS.ELB.DescribeTargetGroups(ctx, &elbv2.DescribeTargetGroupsInput{TargetGroupArns: []string{group}})
	if err != nil {
		return err
	}
	for _, lb := range out.TargetGroups[0].LoadBalancerArns {
		if _, err := r.S.AWS.ELB.DeleteLoadBalancer(ctx, &elbv2.DeleteLoadBalancerInput{LoadBalancerArn: &lb}); err != nil {
			return err
		}
	}
	_, err = r.S.AWS.ELB.DeleteTargetGroup(ctx, &elbv2.DeleteTargetGroupInput{TargetGroupArn: &group})
	return err
}

// served makes a group with a rule, and a Deployment for it that is in it.
func (r *Runner) served(ctx context.Context, name string, pods int, more string) (want, error) {
	group, err := r.group(ctx, name, true, more)
	if err != nil {
		return want{}, err
	}
	w := want{group: group, selector: "app=" + name, pods: pods, healthy: true}
	if err := r.apply(ctx, deployment(name, pods, "1", "")); err != nil {
		return w, err
	}
	return w, r.exactly(ctx, w)
}

// dismiss ends what served made: the pods first, so that the group is empty when
// its rule goes.
func (r *Runner) dismiss(ctx context.Context, name string, w want) error {
	if err := r.scale(ctx, name, 0); err != nil {
		return err
	}
	w.pods = 0
	if err := r.exactly(ctx, w); err != nil {
		return err
	}
	return r.dropRule(ctx, name)
}

// madeAnew: a group that a rule binds by name is deleted and made anew, and with
// that has another ARN.
func madeAnew(ctx context.Context, r *Runner) (string, error) {
	w, err := r.served(ctx, "anew", 2, "")
	if err != nil {
		return "", err
	}
	byName := `{"targetGroup":{"name":"anew"},"port":8080}`
	if err := r.S.AWS.Rule(ctx, "anew", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["anew"]}}`, byName); err != nil {
		return "", err
	}
	if err := r.stays(ctx, r.quiet(), w.group, "a group that is named in another way is the same", func(t map[string]string) bool { return len(t) == 2 }); err != nil {
		return "", err
	}
	old := w.group
	if err := r.deleteGroup(ctx, old); err != nil {
		return "", err
	}
	if w.group, err = r.S.AWS.Group(ctx, "anew", 8080, true); err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.S.AWS.DrainFor(ctx, w.group, 10); err != nil {
		return "", err
	}
	if _, err := r.S.AWS.LoadBalancer(ctx, "anew", 8080, w.group); err != nil {
		return "", err
	}
	if w.group == old {
		return "", errors.New("the new group has the old one's ARN: the step shows nothing")
	}
	if err := r.exactly(ctx, w); err != nil {
		return "", err
	}
	note := fmt.Sprintf("right again after %.1f s", time.Since(start).Seconds())
	keys, _, err := r.claims(ctx, w.selector)
	if err != nil {
		return note, err
	}
	why, err := r.why(ctx, start, w.group, keys[0], true)
	if err != nil {
		return note, err
	}
	return note + ", " + why, r.dismiss(ctx, "anew", w)
}

// groupDeleted: a group that a rule names by its ARN is gone. That is told of,
// and the others go on.
func groupDeleted(ctx context.Context, r *Runner) (string, error) {
	w, err := r.served(ctx, "doomed", 1, "")
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.deleteGroup(ctx, w.group); err != nil {
		return "", err
	}
	if err := r.finding(ctx, start, w.group, string(drift.GroupDeleted)); err != nil {
		return "", err
	}
	note := fmt.Sprintf("told of after %.1f s", time.Since(start).Seconds())
	if err := r.scale(ctx, "web", 3); err != nil {
		return note, err
	}
	if err := r.exactly(ctx, want{pods: 3}); err != nil {
		return note, err
	}
	if err := errors.Join(r.scale(ctx, "doomed", 0), r.dropRule(ctx, "doomed"), r.scale(ctx, "web", 2)); err != nil {
		return note, err
	}
	return note, r.exactly(ctx, want{pods: 2})
}
