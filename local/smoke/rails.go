package smoke

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/elbridge/elbridge/local/stack"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// Rounds in which a mistake that somebody may make lasts: longer than anything
// that a function remembers from one round to the next.
const (
	fewRounds  = 5
	manyRounds = 10
)

// keeps looks for n rounds whether the group goes on to hold exactly keys.
func (r *Runner) keeps(ctx context.Context, n int, group, what string, keys []string) error {
	all := strings.Join(keys, " ")
	return r.stays(ctx, r.rounds(n), group, what, func(map[string]string) bool { return strings.Join(r.S.Held.Serving(group), " ") == all })
}

// ruleDeleted: absent configuration never means "remove all".
func ruleDeleted(ctx context.Context, r *Runner) (string, error) {
	w, err := r.served(ctx, "unbound", 3, "")
	if err != nil {
		return "", err
	}
	keys := r.S.Held.Serving(w.group)
	start := time.Now()
	if err := r.dropRule(ctx, "unbound"); err != nil {
		return "", err
	}
	if err := r.keeps(ctx, fewRounds, w.group, "a group whose rule was deleted keeps its targets", keys); err != nil {
		return "", err
	}
	if err := r.finding(ctx, start, w.group, string(drift.Unbound)); err != nil {
		return "", err
	}
	if err := r.S.AWS.Rule(ctx, "unbound", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["unbound"]}}`, r.constants(w.group, "")); err != nil {
		return "", err
	}
	if err := r.scale(ctx, "unbound", 4); err != nil {
		return "", err
	}
	w.pods = 4
	if err := r.exactly(ctx, w); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d targets through %d rounds", len(keys), fewRounds), r.dismiss(ctx, "unbound", w)
}

// typo: a rule selects nothing any more. All targets are held, until somebody
// approves that very plan.
func typo(ctx context.Context, r *Runner) (string, error) {
	w, err := r.served(ctx, "typo", 4, "")
	if err != nil {
		return "", err
	}
	keys, start := r.S.Held.Serving(w.group), time.Now()
	if err := r.S.AWS.Rule(ctx, "typo", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["tpyo"]}}`, r.constants(w.group, "")); err != nil {
		return "", err
	}
	if err := r.keeps(ctx, manyRounds, w.group, "targets are held when a rule selects nothing any more", keys); err != nil {
		return "", err
	}
	held, err := r.held(ctx, start, w.group, len(keys))
	if err != nil {
		return "", err
	}
	start = time.Now()
	if err := r.elbridge(ctx, "resync", "--group", w.group, "--approve", held.Hash, "--reason", "smoke: they are to go"); err != nil {
		return "", err
	}
	if err := r.S.Held.Wait(ctx, w.group, func(map[string]string) (bool, error) { return len(r.S.Held.Serving(w.group)) == 0, nil }); err != nil {
		return "", fmt.Errorf("an approved plan is carried out: %w", err)
	}
	gone := time.Since(start)
	start = time.Now()
	if err := r.S.AWS.Rule(ctx, "typo", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["typo"]}}`, r.constants(w.group, "")); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, w); err != nil {
		return "", fmt.Errorf("with the right rule they come back: %w", err)
	}
	note := fmt.Sprintf("held through %d rounds; approved as %s, gone after %.1f s; back %.1f s after the right rule", manyRounds, held.Hash, gone.Seconds(), time.Since(start).Seconds())
	return note, r.dismiss(ctx, "typo", w)
}

// frozen: what ends meanwhile stays registered.
func frozen(ctx context.Context, r *Runner) (string, error) {
	if err := r.elbridge(ctx, "freeze", "--reason", "smoke"); err != nil {
		return "", err
	}
	thawed := false
	defer func() {
		if !thawed {
			_ = r.elbridge(context.WithoutCancel(ctx), "unfreeze", "--reason", "smoke: the step failed") // later steps say so if it failed too
		}
	}()
	// Tags are as old as what is acted on at most (I3).
	if err := r.stays(ctx, tagsMaxAge, r.web, "a freeze changes nothing", func(map[string]string) bool { return len(r.S.Held.Serving(r.web)) == 2 }); err != nil {
		return "", err
	}
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	key, start := p.Status.PodIP+":8080", time.Now()
	if err := r.deletePod(ctx, p.Name, -1); err != nil {
		return "", err
	}
	if _, err := r.held(ctx, start, r.web, 1); err != nil {
		return "", err
	}
	err = r.stays(ctx, r.quiet(), r.web, "a frozen bus lets nothing go", func(t map[string]string) bool { return t[key] != "" && t[key] != "draining" })
	if err != nil {
		return "", err
	}
	start, thawed = time.Now(), true
	if err := r.elbridge(ctx, "unfreeze", "--reason", "smoke is over"); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 2, healthy: true}); err != nil {
		return "", fmt.Errorf("after unfreeze: %w", err)
	}
	note := fmt.Sprintf("gone %.1f s after unfreeze", time.Since(start).Seconds())
	why, err := r.why(ctx, start, r.web, key, false)
	return note + ", " + why, err
}

// tagsMaxAge is reconcile's DecisionMaxAge, and a moment.
const tagsMaxAge = 2500 * time.Millisecond

const resyncBinding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/elbridge:resync"

// rightsLost: resync may not read pods any more. What it can't see is not gone.
func rightsLost(ctx context.Context, r *Runner) (string, error) {
	var rights rbacv1.ClusterRoleBinding
	if err := r.S.Admin.Get(ctx, resyncBinding, &rights); err != nil {
		return "", err
	}
	if err := r.S.Admin.REST().Delete().AbsPath(resyncBinding).Do(ctx).Error(); err != nil {
		return "", err
	}
	back := func(ctx context.Context) error {
		rights.TypeMeta.APIVersion, rights.TypeMeta.Kind = "rbac.authorization.k8s.io/v1", "ClusterRoleBinding"
		rights.ResourceVersion, rights.UID, rights.ManagedFields = "", "", nil
		return r.S.Admin.Post(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &rights, nil)
	}
	restored := false
	defer func() {
		if !restored {
			_ = back(context.WithoutCancel(ctx)) // later steps say so if it failed
		}
	}()
	start := time.Now()
	r.S.Gate.Shut() // a stream that is open stays so; a new one is refused
	r.S.Gate.Open()
	_, err := logged(ctx, r, start, targetevent.DetailTypeResyncCompleted, "", "a cluster that is not read", func(ev targetevent.ResyncCompleted) bool {
		return !ev.At.Before(start) && len(ev.Clusters) == 1 && !ev.Clusters[0].Complete
	})
	if err != nil {
		return "", err
	}
	keys := r.S.Held.Serving(r.web)
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	if err := r.deletePod(ctx, p.Name, 0); err != nil {
		return "", err
	}
	if err := r.keeps(ctx, fewRounds, r.web, "nothing is removed while pods are not read", keys); err != nil {
		return "", err
	}
	start, restored = time.Now(), true
	if err := back(ctx); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 2, healthy: true}); err != nil {
		return "", fmt.Errorf("with its rights back: %w", err)
	}
	return fmt.Sprintf("%d targets through %d rounds, right %.1f s after", len(keys), fewRounds, time.Since(start).Seconds()), nil
}

// allNotReady: no pod is ready, so none claims, and yet the last targets stay.
func allNotReady(ctx context.Context, r *Runner) (string, error) {
	w, err := r.served(ctx, "unready", 3, `,"registerWhen":"Ready"`)
	if err != nil {
		return "", err
	}
	set := func(ready *bool) error {
		pods, err := r.pods(ctx, w.selector)
		for _, p := range pods {
			err = errors.Join(err, r.S.Nodes.SetReady(ctx, "shop", p.Name, ready))
		}
		return err
	}
	start := time.Now()
	if err := set(new(false)); err != nil {
		return "", err
	}
	if _, err := logged(ctx, r, start, targetevent.DetailTypeRemovalHeld, w.group, "what is held", func(ev targetevent.RemovalHeld) bool { return len(ev.Held) > 0 }); err != nil {
		return "", err
	}
	// One of three may go without a witness; the others are held.
	least := 2
	if r.Way == stack.WayEvents || r.Way == stack.WayBoth {
		least = 1 // hints come one by one, and the one that drained is forgotten after 10 s
	}
	err = r.stays(ctx, r.quiet(), w.group, "a group whose pods are all not ready is not emptied", func(map[string]string) bool {
		return len(r.S.Held.Serving(w.group)) >= least
	})
	if err != nil {
		return "", err
	}
	kept := len(r.S.Held.Serving(w.group))
	if err := set(nil); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, w); err != nil {
		return "", fmt.Errorf("when they are ready again: %w", err)
	}
	return fmt.Sprintf("%d of 3 targets kept", kept), r.dismiss(ctx, "unready", w)
}
