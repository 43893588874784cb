package smoke

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// pods returns the pods of a label selector in namespace shop, by name.
func (r *Runner) pods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	var l corev1.PodList
	err := r.S.Admin.REST().Get().AbsPath("/api/v1/namespaces/shop/pods").Param("labelSelector", selector).Do(ctx).Into(&l)
	slices.SortFunc(l.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return l.Items, err
}

// live reports whether a pod may claim an address.
func live(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded
}

// claims returns what the live pods of a selector claim: "ip:8080", sorted.
func (r *Runner) claims(ctx context.Context, selector string) (keys []string, all []corev1.Pod, err error) {
	all, err = r.pods(ctx, selector)
	for i := range all {
		if p := &all[i]; live(p) && p.Status.PodIP != "" {
			keys = append(keys, p.Status.PodIP+":8080")
		}
	}
	slices.Sort(keys)
	return keys, all, err
}

// want says what a group must come to hold.
type want struct {
	group    string // default: web
	selector string // default: app=web
	pods     int    // live pods, all of them with an address
	healthy  bool   // all targets are healthy
}

// exactly waits until the group holds what the live pods claim, no more and no
// less, and then asks ELB itself whether that is so.
func (r *Runner) exactly(ctx context.Context, w want) error {
	if w.group == "" {
		w.group, w.selector = r.web, "app=web"
	}
	var keys []string
	err := r.S.Held.Wait(ctx, w.group, func(targets map[string]string) (bool, error) {
		var all []corev1.Pod
		var err error
		if keys, all, err = r.claims(ctx, w.selector); err != nil {
			return false, err
		}
		lives := 0
		for i := range all {
			if live(&all[i]) {
				lives++
			}
		}
		return lives == w.pods && len(keys) == w.pods && holds(targets, keys, w.healthy), nil
	})
	if err != nil {
		return fmt.Errorf("want exactly the %d live pods of %s (%s): %w", w.pods, w.selector, strings.Join(keys, " "), err)
	}
	return r.confirm(ctx, w.group, keys)
}

// holds reports whether the targets that don't drain are exactly keys.
func holds(targets map[string]string, keys []string, healthy bool) bool {
	n := 0
	for k, state := range targets {
		if state == "draining" {
			continue
		}
		if _, found := slices.BinarySearch(keys, k); !found || (healthy && state != "healthy") {
			return false
		}
		n++
	}
	return n == len(keys)
}

// confirm compares a group with keys through the API.
func (r *Runner) confirm(ctx context.Context, group string, keys []string) error {
	targets, err := r.describe(ctx, group)
	if err != nil {
		return err
	}
	if !holds(targets, keys, false) {
		return fmt.Errorf("DescribeTargetHealth says %v, want %v", targets, keys)
	}
	return nil
}
