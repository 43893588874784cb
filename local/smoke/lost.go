package smoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/stack"
)

// eventsLost: the bus loses every hint of a scale-up, then every event of a
// scale-down; comparison repairs both.
func eventsLost(ctx context.Context, r *Runner) (string, error) {
	again, err := r.S.LoseHints()
	if err != nil {
		return "", err
	}
	defer func() { again() }()
	before, start := r.S.Held.Serving(r.web), time.Now()
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return "", err
	}
	up := time.Since(start)
	keys, _, err := r.claims(ctx, "app=web")
	if err != nil {
		return "", err
	}
	added := slices.IndexFunc(keys, func(k string) bool { return !slices.Contains(before, k) })
	why, err := r.why(ctx, start, r.web, keys[added], true)
	if err != nil {
		return "", err
	}
	again()
	if again, err = r.S.LoseEvents(); err != nil {
		again = func() {}
		return why, err
	}
	start = time.Now()
	if err := r.scale(ctx, "web", 2); err != nil {
		return why, err
	}
	if err := r.exactly(ctx, want{pods: 2, healthy: true}); err != nil {
		return why, err
	}
	return fmt.Sprintf("%s; up after %.1f s, down after %.1f s", why, up.Seconds(), time.Since(start).Seconds()), nil
}

// rolled updates web under load while something is wrong; requests lost are told.
func (r *Runner) rolled(ctx context.Context, version string, pods int) (string, error) {
	l := r.startLoad(ctx)
	defer l.stop()
	if err := r.apply(ctx, deployment("web", pods, version, "")); err != nil {
		return "", err
	}
	if err := r.S.WaitDeployment(ctx, "shop", "web", pods); err != nil {
		return "", err
	}
	rolled := time.Now()
	err := r.exactly(ctx, want{pods: pods, healthy: true})
	l.stop()
	return fmt.Sprintf("right %.1f s after the update, %d requests, %d lost", time.Since(rolled).Seconds(), l.sent.Load(), l.lost.Load()), err
}

// webhookDown: nothing tells of a rolling update.
func webhookDown(ctx context.Context, r *Runner) (string, error) {
	if err := r.scaleWebhook(ctx, 0); err != nil {
		return "", err
	}
	note, err := r.rolled(ctx, "webhook-down", 2)
	return note, errors.Join(err, r.scaleWebhook(context.WithoutCancel(ctx), r.S.Config.WebhookReplicas))
}

func (r *Runner) scaleWebhook(ctx context.Context, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	path := "/apis/apps/v1/namespaces/" + stack.WebhookSpace + "/deployments/" + stack.WebhookName + "/scale"
	if err := r.S.Admin.Patch(ctx, path, types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)); err != nil {
		return err
	}
	return r.S.WaitDeployment(ctx, stack.WebhookSpace, stack.WebhookName, replicas)
}

// muddled: half of the messages come twice, and many later than others that were
// sent after them.
func muddled(ctx context.Context, r *Runner) (string, error) {
	const late = 700 * time.Millisecond // several times the way of a hint
	for _, f := range []core.Fault{
		{Service: "events", Operation: "Deliver", Kind: core.FaultDuplicate, Rate: 0.5},
		{Service: "events", Operation: "Deliver", Kind: core.FaultDelay, Rate: 0.4, Delay: core.Duration(late)},
	} {
		id, err := r.S.Cloud.Server.Faults.Add(f)
		if err != nil {
			return "", err
		}
		defer r.S.Cloud.Server.Faults.Remove(id)
	}
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return "", err
	}
	note, err := r.rolled(ctx, "muddled", 4)
	if err != nil {
		return note, err
	}
	if err := r.scale(ctx, "web", 2); err != nil {
		return note, err
	}
	if err := r.exactly(ctx, want{pods: 2, healthy: true}); err != nil {
		return note, err
	}
	return note, r.stays(ctx, 2*late, r.web, "what comes late changes nothing", func(map[string]string) bool {
		return len(r.S.Held.Serving(r.web)) == 2
	})
}
