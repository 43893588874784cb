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

// steps are the story. The first one makes what the others work on.
var steps = []Step{
	{Name: "three pods become three healthy targets, and all of them answer", Do: threePods},
	{Name: "scale to ten", Do: scaleTo(10)},
	{Name: "rolling update under load", Do: rollingUpdate},
	{Name: "scale to two", Do: scaleTo(2)},
	{Name: "graceful delete: out of the group before the process ends", Do: gracefulDelete},
	{Name: "force delete", Do: forceDelete},
	{Name: "all pods of a label deleted with one call", Do: deleteCollection},
	{Name: "eviction through the API", Do: evictOne},
	{Name: "eviction that a PodDisruptionBudget refuses: the pod stays", Do: evictRefused},
	{Name: "another webhook delays a delete for five seconds", Do: deleteDelayed},
	{Name: "another webhook refuses a delete: the pod stays", Do: deleteRefused},
	{Name: "pod Failed, its object kept", Do: podFailed},
	{Name: "container killed", Do: containerKilled},
	{Name: "label changed so that no rule selects the pod, and back", Do: relabelled},
	{Name: "label moved from one rule to another of the same group", Do: movedBetweenRules},
	{Name: "StatefulSet pod under the same name with another address", Do: statefulSet},
	{Name: "address reused by another pod while the old target drains", Do: addressReused},
	{Name: "webhook killed and restarted", Do: webhookKilled},
	{Name: "API server out of the registrar's reach for ten seconds", Do: apiServerUnreachable},
	{Name: "ten seconds of throttling", Do: throttled},
	{Name: "a rule with a wrong target group beside good ones", Do: wrongGroup},
	{Name: "forged events change nothing", Do: forged},
	{Name: "node partitioned, its pods deleted while they serve: held", Do: partitioned},

	{Name: "by hand: a target removed while its pod lives: back, and stays", Do: removedByHand, Silent: true},
	{Name: "by hand: a strange target added: gone", Do: addedByHand, Silent: true},
	{Name: "by hand: all targets but one removed, a node's address added: repaired", Do: cleanedByHand},
	{Name: "messages: all lost while scaling up and down", Do: eventsLost, Silent: true},
	{Name: "messages: no webhook during a rolling update under load", Do: webhookDown, Silent: true},
	{Name: "messages: doubled and out of order during a rolling update", Do: muddled},
	{Name: "killed: the registrar, while scaling up", Do: registrarKilled, Silent: true},
	{Name: "killed: resync, while a target is missing", Do: resyncKilled, Silent: true},
	{Name: "two runs of resync at once: refused, and harmless", Do: twoRuns},
	{Name: "guard: frozen: what ends stays registered", Do: frozen, Silent: true},
	{Name: "guard: resync may not read pods any more: nothing removed", Do: rightsLost},

	{Name: "a group without owner tag: registered, not removed", Do: foreignGroup, Beside: true},
	{Name: "a binding in observe: told, not done", Do: observed, Beside: true},
	{Name: "group: made anew under its name", Do: madeAnew, Beside: true},
	{Name: "group: deleted, and a rule names it: told, the others go on", Do: groupDeleted, Beside: true},
	{Name: "guard: a rule deleted by accident: targets stay", Do: ruleDeleted, Beside: true},
	{Name: "guard: a rule with a typo: held, approved, back", Do: typo, Silent: true, Beside: true},
	{Name: "guard: empty: in steps, the other group loses no request", Do: emptied, Silent: true, Beside: true},
	{Name: "guard: all pods not ready: held", Do: allNotReady, Beside: true},
	{Name: "guard: two buses bind one group: the owner's targets stay", Do: twoOwners, Silent: true, Beside: true},
}

// Reasons why a step is not in a way.
const (
	noReader  = "nobody reads events"
	noCompare = "nothing compares, and no event tells of it"
	inBoth    = "way both shows it"
)

// notInThisWay says which steps are not in a way, and why.
var notInThisWay = map[string]map[stack.Way]string{
	"forged events change nothing":                                           {stack.WayResync: noReader},
	"node partitioned, its pods deleted while they serve: held":              {stack.WayBoth: "either way alone shows it"},
	"by hand: a target removed while its pod lives: back, and stays":         {stack.WayEvents: noCompare},
	"by hand: a strange target added: gone":                                  {stack.WayEvents: noCompare},
	"by hand: all targets but one removed, a node's address added: repaired": {stack.WayEvents: noCompare},
	"messages: all lost while scaling up and down":                           {stack.WayEvents: "what is lost stays lost"},
	"messages: no webhook during a rolling update under load":                {stack.WayEvents: "nobody tells of pods", stack.WayResync: "its messages are not read anyway"},
	"messages: doubled and out of order during a rolling update":             {stack.WayResync: noReader},
	"group: made anew under its name":                                        {stack.WayEvents: noCompare},
	"group: deleted, and a rule names it: told, the others go on":            {stack.WayEvents: "there the step with a wrong target group shows it"},
	"killed: the registrar, while scaling up":                                {stack.WayResync: "it is dead all the time"},
	"killed: resync, while a target is missing":                              {stack.WayEvents: noCompare, stack.WayResync: inBoth},
	"two runs of resync at once: refused, and harmless":                      {stack.WayEvents: noCompare, stack.WayBoth: "way resync shows it, where nothing else repairs"},
	"guard: a rule deleted by accident: targets stay":                        {stack.WayEvents: "without a rule no event reaches anybody", stack.WayBoth: "way resync shows it"},
	"guard: a rule with a typo: held, approved, back":                        {stack.WayEvents: noCompare, stack.WayResync: inBoth},
	"guard: frozen: what ends stays registered":                              {stack.WayEvents: "a hint that was held is over: unfreezing needs a comparison", stack.WayResync: inBoth},
	"guard: empty: in steps, the other group loses no request":               {stack.WayEvents: noCompare, stack.WayResync: inBoth},
	"guard: resync may not read pods any more: nothing removed":              {stack.WayEvents: noCompare, stack.WayBoth: "the registrar has rights of its own and removes, rightly"},
	"guard: two buses bind one group: the owner's targets stay":              {stack.WayEvents: noCompare, stack.WayResync: inBoth},
}

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

func wrongGroup(ctx context.Context, r *Runner) (string, error) {
	wrong := strings.Replace(r.web, "targetgroup/web/", "targetgroup/gone/", 1)
	if err := r.S.AWS.Rule(ctx, "wrong", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["web"]}}`, r.constants(wrong, "")); err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4}); err != nil {
		return "", err
	}
	if err := r.records(ctx, start, "Binding Invalid", "targetgroup/gone/"); err != nil {
		return "", err
	}
	note := "no hint, so no dead letter"
	if r.hints() {
		var err error
		if note, err = r.deadLetter(ctx, "not found"); err != nil {
			return note, err
		}
	}
	if err := r.dropRule(ctx, "wrong"); err != nil {
		return "", err
	}
	if err := r.scale(ctx, "web", 2); err != nil {
		return "", err
	}
	return note, r.exactly(ctx, want{pods: 2})
}

func foreignGroup(ctx context.Context, r *Runner) (string, error) {
	group, err := r.group(ctx, "foreign", false, "")
	if err != nil {
		return "", err
	}
	if err := r.apply(ctx, pod("stranger", "{app: foreign}", "")); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{group: group, selector: "app=foreign", pods: 1}); err != nil {
		return "", err
	}
	p, err := r.named(ctx, "stranger")
	if err != nil {
		return "", err
	}
	key := p.Status.PodIP + ":8080"
	start := time.Now()
	if err := r.deletePod(ctx, "stranger", -1); err != nil {
		return "", err
	}
	// A hint's removal is held. To a comparison a target that is not ours is no
	// difference that could be mended: it is reported.
	told := []string{"Removal Held", p.Status.PodIP}
	if !r.hints() {
		told = []string{"Resync Completed", p.Status.PodIP, `\"action\":\"reported\"`}
	}
	if err := r.records(ctx, start, told...); err != nil {
		return "", err
	}
	return "", r.stays(ctx, r.quiet(), group, "the target of a group that is not ours stays", func(t map[string]string) bool {
		return t[key] != "" && t[key] != "draining"
	})
}

func observed(ctx context.Context, r *Runner) (string, error) {
	group, err := r.group(ctx, "observed", true, `,"mode":"observe"`)
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.apply(ctx, pod("watched", "{app: observed}", "")); err != nil {
		return "", err
	}
	if err := r.records(ctx, start, "Targets Changed", `\"wouldDo\":true`, "shop/watched"); err != nil {
		return "", err
	}
	return "", r.stays(ctx, r.quiet(), group, "observing changes nothing", func(t map[string]string) bool { return len(t) == 0 })
}
