package smoke

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/elbridge/elbridge/local/node"
	"github.com/elbridge/elbridge/local/stack"
)

// hints is true in the ways in which the registrar acts at once: only there a
// step may claim that something is over before something else.
func (r *Runner) hints() bool { return r.Way != stack.WayResync }

func threePods(ctx context.Context, r *Runner) (string, error) {
	if err := r.apply(ctx, deployment("web", 3, "1", "")); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3, healthy: true}); err != nil {
		return "", err
	}
	seen := map[string]bool{}
	err := r.until(ctx, "three pods answer", func(ctx context.Context) (bool, error) {
		name, err := r.answeredBy(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // a new target reaches the data plane a moment after it is healthy
		}
		seen[name] = true
		return len(seen) == 3, nil
	})
	return "", err
}

func scaleTo(n int) func(context.Context, *Runner) (string, error) {
	return func(ctx context.Context, r *Runner) (string, error) {
		if err := r.scale(ctx, "web", n); err != nil {
			return "", err
		}
		return "", r.exactly(ctx, want{pods: n, healthy: true})
	}
}

func rollingUpdate(ctx context.Context, r *Runner) (string, error) {
	before, err := r.pods(ctx, "app=web")
	if err != nil {
		return "", err
	}
	l := r.startLoad(ctx)
	defer l.stop()
	if err := r.apply(ctx, deployment("web", len(before), "2", "")); err != nil {
		return "", err
	}
	if err := r.S.WaitDeployment(ctx, "shop", "web", len(before)); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: len(before), healthy: true}); err != nil {
		return "", err
	}
	l.stop()
	note := fmt.Sprintf("%d requests, %d lost", l.sent.Load(), l.lost.Load())
	if l.lost.Load() > 0 && r.hints() { // resync comes after the end of some pods
		return note, fmt.Errorf("requests were lost, the first with: %v", l.first.Load())
	}
	return note, nil
}

func gracefulDelete(ctx context.Context, r *Runner) (string, error) {
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.deletePod(ctx, p.Name, -1); err != nil {
		return "", err
	}
	if !r.hints() {
		return onlyTheEnd, r.exactly(ctx, want{pods: 2, healthy: true})
	}
	if err := r.becomes(ctx, r.web, p.Status.PodIP+":8080", "draining"); err != nil {
		return "", err
	}
	note := fmt.Sprintf("deregistered after %d ms", time.Since(start).Milliseconds())
	if !answers(ctx, p.Status.PodIP+":8080") {
		return note, errors.New("the process had ended before its target was deregistered")
	}
	return note, r.exactly(ctx, want{pods: 2, healthy: true})
}

func forceDelete(ctx context.Context, r *Runner) (string, error) {
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	if err := r.deletePod(ctx, p.Name, 0); err != nil {
		return "", err
	}
	return "", r.exactly(ctx, want{pods: 2, healthy: true})
}

func deleteCollection(ctx context.Context, r *Runner) (string, error) {
	before, _, err := r.claims(ctx, "app=web")
	if err != nil {
		return "", err
	}
	start := time.Now()
	err = r.S.Admin.REST().Delete().AbsPath("/api/v1/namespaces/shop/pods").Param("labelSelector", "app=web").Do(ctx).Error()
	if err != nil {
		return "", err
	}
	if !r.hints() {
		return onlyTheEnd, r.exactly(ctx, want{pods: len(before), healthy: true})
	}
	for _, key := range before {
		if err := r.becomes(ctx, r.web, key, "draining"); err != nil {
			return "", err
		}
	}
	note := fmt.Sprintf("all deregistered after %d ms", time.Since(start).Milliseconds())
	return note, r.exactly(ctx, want{pods: len(before), healthy: true})
}

func evictOne(ctx context.Context, r *Runner) (string, error) {
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.evict(ctx, p.Name); err != nil {
		return "", err
	}
	if !r.hints() {
		return onlyTheEnd, r.exactly(ctx, want{pods: 2, healthy: true})
	}
	if err := r.becomes(ctx, r.web, p.Status.PodIP+":8080", "draining"); err != nil {
		return "", err
	}
	note := fmt.Sprintf("deregistered after %d ms", time.Since(start).Milliseconds())
	return note, r.exactly(ctx, want{pods: 2, healthy: true})
}

const budget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
`

// quietFor is how long a step looks whether something does not happen: longer
// than the whole way of a pod event, re-reads included.
const quietFor = 3 * time.Second

// quiet is that, and where resync acts longer than two of its rounds.
func (r *Runner) quiet() time.Duration {
	if r.Way == stack.WayEvents {
		return quietFor
	}
	return max(quietFor, 2*r.S.Config.ResyncInterval+time.Second)
}

// onlyTheEnd is the note of a step of which this way cannot show the whole.
const onlyTheEnd = "the end only: no event says when"

func evictRefused(ctx context.Context, r *Runner) (string, error) {
	if err := r.apply(ctx, budget); err != nil {
		return "", err
	}
	defer func() { _ = r.S.Admin.Delete(context.WithoutCancel(ctx), []byte(budget)) }() // the next step would fail and say so
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	// The controller has to see the budget before it refuses anything.
	err = r.until(ctx, "the budget is in force", func(ctx context.Context) (bool, error) {
		var b struct {
			Status struct{ ObservedGeneration, ExpectedPods int64 }
		}
		err := r.S.Admin.Get(ctx, "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web", &b)
		return b.Status.ObservedGeneration > 0 && b.Status.ExpectedPods == 2, err
	})
	if err != nil {
		return "", err
	}
	switch err := r.evict(ctx, p.Name); {
	case err == nil:
		return "", errors.New("the eviction was granted, want it refused")
	case !apierrors.IsTooManyRequests(err):
		return "", fmt.Errorf("an eviction that is to be refused: %w", err)
	}
	key := p.Status.PodIP + ":8080"
	err = r.stays(ctx, r.quiet(), r.web, "an eviction that was refused changes nothing", func(t map[string]string) bool { return t[key] == "healthy" })
	if err != nil {
		return "", err
	}
	return "", r.exactly(ctx, want{pods: 2, healthy: true})
}

func podFailed(ctx context.Context, r *Runner) (string, error) {
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	if err := r.S.Nodes.Evict(ctx, "shop", p.Name, node.Evict{}); err != nil {
		return "", err
	}
	err = r.until(ctx, "the pod is Failed", func(ctx context.Context) (bool, error) {
		kept, err := r.named(ctx, p.Name)
		return kept.Status.Phase == corev1.PodFailed, err
	})
	if err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 2, healthy: true}); err != nil {
		return "", err
	}
	return "", r.deletePod(ctx, p.Name, 0) // its object was kept until here
}

func containerKilled(ctx context.Context, r *Runner) (string, error) {
	// A second group takes the same pods only while their containers are ready.
	ready, err := r.group(ctx, "crash", true, `,"registerWhen":"ContainersReady"`)
	if err != nil {
		return "", err
	}
	// As slow to become ready again as an application is.
	slow := strings.Replace(deployment("crash", 3, "1", ""), "periodSeconds: 1}", "periodSeconds: 1, initialDelaySeconds: 2}", 1)
	if err := r.apply(ctx, slow); err != nil {
		return "", err
	}
	w := want{group: ready, selector: "app=crash", pods: 3, healthy: true} // a group without a healthy target lets none go
	if err := r.exactly(ctx, w); err != nil {
		return "", err
	}
	p, err := r.one(ctx, "app=crash")
	if err != nil {
		return "", err
	}
	key := p.Status.PodIP + ":8080"
	if err := r.S.Nodes.Crash(ctx, "shop", p.Name, node.Crash{}); err != nil {
		return "", err
	}
	note := ""
	if r.hints() {
		err = r.becomes(ctx, ready, key, "draining")
	} else { // between two rounds a container may die and come back
		note = onlyTheEnd
		err = r.until(ctx, "the container is restarted", func(ctx context.Context) (bool, error) {
			now, err := r.named(ctx, p.Name)
			return err == nil && len(now.Status.ContainerStatuses) == 1 && now.Status.ContainerStatuses[0].RestartCount > 0, err
		})
	}
	if err != nil {
		return "", fmt.Errorf("a dead container ends a claim under ContainersReady: %w", err)
	}
	if err := r.exactly(ctx, w); err != nil {
		return "", fmt.Errorf("and its restart brings it back: %w", err)
	}
	if err := r.scale(ctx, "crash", 0); err != nil {
		return note, err
	}
	return note, r.exactly(ctx, want{group: ready, selector: "app=crash"})
}

func relabelled(ctx context.Context, r *Runner) (string, error) {
	if err := r.apply(ctx, pod("lone", "{app: web}", "")); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3}); err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.label(ctx, "lone", "none"); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 2}); err != nil {
		return "", err
	}
	away := time.Since(start)
	start = time.Now()
	if err := r.label(ctx, "lone", "web"); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3}); err != nil {
		return "", err
	}
	return fmt.Sprintf("away after %d ms, back after %d ms", away.Milliseconds(), time.Since(start).Milliseconds()), nil
}

func movedBetweenRules(ctx context.Context, r *Runner) (string, error) {
	if err := r.S.AWS.Rule(ctx, "web-next", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["web-next"]}}`, r.constants(r.web, "")); err != nil {
		return "", err
	}
	if err := r.apply(ctx, pod("lone", "{app: web}", "")); err != nil { // it may be there already
		return "", err
	}
	defer func() { _ = r.deletePod(context.WithoutCancel(ctx), "lone", 0) }() // no later step is to count it
	if err := r.exactly(ctx, want{pods: 3}); err != nil {
		return "", err
	}
	p, err := r.named(ctx, "lone")
	if err != nil {
		return "", err
	}
	if err := r.label(ctx, "lone", "web-next"); err != nil {
		return "", err
	}
	key := p.Status.PodIP + ":8080"
	err = r.stays(ctx, r.quiet(), r.web, "a pod that moves to another rule of its group stays", func(t map[string]string) bool {
		return t[key] == "healthy" || t[key] == "initial"
	})
	if err != nil {
		return "", err
	}
	if err := r.deletePod(ctx, "lone", -1); err != nil {
		return "", err
	}
	return "", r.exactly(ctx, want{pods: 2})
}

func (r *Runner) named(ctx context.Context, name string) (p corev1.Pod, err error) {
	err = r.S.Admin.Get(ctx, "/api/v1/namespaces/shop/pods/"+name, &p)
	return p, err
}

const statefulSetYAML = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {set: db}}
  template:
    metadata: {labels: {set: db, app: web}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - {name: web, image: elbridge.local/web, ports: [{name: http, containerPort: 8080}]}
`

func statefulSet(ctx context.Context, r *Runner) (string, error) {
	if err := r.apply(ctx, statefulSetYAML); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3, healthy: true}); err != nil {
		return "", err
	}
	old, err := r.named(ctx, "db-0")
	if err != nil {
		return "", err
	}
	if err := r.deletePod(ctx, "db-0", -1); err != nil {
		return "", err
	}
	err = r.until(ctx, "db-0 is made anew", func(ctx context.Context) (bool, error) {
		p, err := r.named(ctx, "db-0")
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return p.UID != old.UID && p.Status.PodIP != "", err
	})
	if err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3, healthy: true}); err != nil {
		return "", err
	}
	p, err := r.named(ctx, "db-0")
	if err != nil {
		return "", err
	}
	note := old.Status.PodIP + ", then " + p.Status.PodIP
	if p.Status.PodIP == old.Status.PodIP {
		return note, errors.New("the address did not change: the step shows nothing")
	}
	return note, r.S.Admin.Delete(ctx, []byte(statefulSetYAML))
}

func addressReused(ctx context.Context, r *Runner) (string, error) {
	if err := r.exactly(ctx, want{pods: 2}); err != nil {
		return "", err
	}
	if err := r.apply(ctx, pod("first", "{app: web}", "\n  nodeName: node-a")); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3, healthy: true}); err != nil {
		return "", err
	}
	p, err := r.named(ctx, "first")
	if err != nil {
		return "", err
	}
	key := p.Status.PodIP + ":8080"
	if err := r.deletePod(ctx, "first", 0); err != nil {
		return "", err
	}
	if err := r.becomes(ctx, r.web, key, "draining"); err != nil {
		return "", err
	}
	if err := r.S.Nodes.ChooseAddress(ctx, node.Address{Namespace: "shop", Name: "second", Address: p.Status.PodIP}); err != nil {
		return "", err
	}
	if err := r.apply(ctx, pod("second", "{app: web}", "\n  nodeName: node-a")); err != nil {
		return "", err
	}
	if err := r.becomes(ctx, r.web, key, "healthy"); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3, healthy: true}); err != nil {
		return "", err
	}
	if err := r.deletePod(ctx, "second", -1); err != nil {
		return "", err
	}
	return key, r.exactly(ctx, want{pods: 2})
}
