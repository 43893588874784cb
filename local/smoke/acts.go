package smoke

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/elbridge/elbridge/local/vpc"
)

// pollEvery is how often a condition is looked at.
const pollEvery = 20 * time.Millisecond

// deployment is a Deployment whose pods sleep two seconds before they end, so
// that they outlive the load balancer's propagation.
func deployment(name string, replicas int, version string, more string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}
  template:
    metadata:
      labels: {app: %[1]s, version: %[3]q}
    spec:%[4]s
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: elbridge.local/web
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 2}}}
`, name, replicas, version, more)
}

// pod is a single pod with labels, written as in YAML's flow style.
func pod(name, labels, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop, labels: %s}
spec:
  terminationGracePeriodSeconds: 5%s
  containers:
  - {name: web, image: elbridge.local/web, ports: [{name: http, containerPort: 8080}]}
`, name, labels, spec)
}

func (r *Runner) apply(ctx context.Context, manifests ...string) error {
	return r.S.Admin.Apply(ctx, []byte(strings.Join(manifests, "\n---\n")))
}

func (r *Runner) scale(ctx context.Context, name string, replicas int) error {
	return r.S.Admin.Patch(ctx, "/apis/apps/v1/namespaces/shop/deployments/"+name+"/scale", types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (r *Runner) label(ctx context.Context, name, value string) error {
	return r.S.Admin.Patch(ctx, "/api/v1/namespaces/shop/pods/"+name, types.MergePatchType, fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, value))
}

// deletePod deletes a pod, at once if grace is 0 and with its own grace period
// if it is negative.
func (r *Runner) deletePod(ctx context.Context, name string, grace int64) error {
	o := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if grace >= 0 {
		o.GracePeriodSeconds = &grace
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return r.S.Admin.REST().Delete().AbsPath("/api/v1/namespaces/shop/pods/"+name).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

func (r *Runner) evict(ctx context.Context, name string) error {
	body := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]string{"name": name, "namespace": "shop"}}
	return r.S.Admin.Post(ctx, "/api/v1/namespaces/shop/pods/"+name+"/eviction", body, nil)
}

// one returns a live pod of the selector that has an address.
func (r *Runner) one(ctx context.Context, selector string) (corev1.Pod, error) {
	all, err := r.pods(ctx, selector)
	if err != nil {
		return corev1.Pod{}, err
	}
	for i := range all {
		if live(&all[i]) && all[i].Status.PodIP != "" {
			return all[i], nil
		}
	}
	return corev1.Pod{}, fmt.Errorf("no live pod of %s", selector)
}

// describe asks ELB for a group's targets and their states. It shares the
// account's rate with everybody, so it waits where that is used up.
func (r *Runner) describe(ctx context.Context, group string) (map[string]string, error) {
	out, err := r.S.AWS.ELB.DescribeTargetHealth(ctx, &elbv2.DescribeTargetHealthInput{TargetGroupArn: &group}, func(o *elbv2.Options) { o.RetryMaxAttempts = 10 })
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	for _, d := range out.TargetHealthDescriptions {
		m[fmt.Sprintf("%s:%d", *d.Target.Id, *d.Target.Port)] = string(d.TargetHealth.State)
	}
	return m, nil
}

// becomes waits until a target has the state; "" is absent.
func (r *Runner) becomes(ctx context.Context, group, key, state string) error {
	err := r.S.Held.Wait(ctx, group, func(targets map[string]string) (bool, error) { return targets[key] == state, nil })
	if err != nil {
		return fmt.Errorf("target %s should become %q: %w", key, state, err)
	}
	return nil
}

// stays looks for d whether ok remains true of the group.
func (r *Runner) stays(ctx context.Context, d time.Duration, group, what string, ok func(targets map[string]string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var bad error
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(context.Context) (bool, error) {
		if t := r.S.Held.Of(group); !ok(t) {
			bad = fmt.Errorf("%s, but the group holds %v", what, t)
			return true, nil
		}
		return false, nil
	})
	if bad != nil {
		return bad
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// until waits for a condition.
func (r *Runner) until(ctx context.Context, what string, ok func(ctx context.Context) (bool, error)) error {
	if err := wait.PollUntilContextCancel(ctx, pollEvery, true, ok); err != nil {
		return fmt.Errorf("%s: %w: %w", what, errNever, err)
	}
	return nil
}

// answers asks a pod directly, at its published address.
func answers(ctx context.Context, address string) bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: vpc.Dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// answeredBy returns which pod answered a request through the load balancer.
func (r *Runner) answeredBy(ctx context.Context) (string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var a struct{ Pod string }
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.200s", res.Status, text)
	}
	return a.Pod, json.Unmarshal(text, &a)
}

// load sends requests through the load balancer until it is stopped.
type load struct {
	sent, lost atomic.Int64
	first      atomic.Value // the first failure
	stop       func()
}

// loadRate is requests a second: enough to meet every moment of a rolling
// update, and little beside two cores.
const loadRate = 100

func (r *Runner) startLoad(ctx context.Context) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{}
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second / loadRate)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			l.sent.Add(1)
			if _, err := r.answeredBy(context.WithoutCancel(ctx)); err != nil {
				l.lost.Add(1)
				l.first.CompareAndSwap(nil, err.Error())
			}
		}
	})
	l.stop = func() { cancel(); wg.Wait() }
	return l
}

// records waits for an event of the registrar on the bus whose text has all of
// the parts, recorded since the given moment.
func (r *Runner) records(ctx context.Context, since time.Time, parts ...string) error {
	return r.until(ctx, "an event with "+strings.Join(parts, ", "), func(context.Context) (bool, error) {
	records:
		for _, rec := range r.S.Cloud.Server.Recorder.Since(0) {
			if rec.Operation != "PutEvents" || rec.Time.Before(since) {
				continue
			}
			for _, p := range parts {
				if !strings.Contains(rec.Params, p) {
					continue records
				}
			}
			return true, nil
		}
		return false, nil
	})
}
