package smoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elbridge/elbridge/pkg/targetevent"
)

// storeLost: the API server answers, and knows no pod and no node any more. What
// it does not know is not gone.
func storeLost(ctx context.Context, r *Runner) (note string, err error) {
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4, healthy: true}); err != nil {
		return "", err
	}
	keys, start := r.S.Held.Serving(r.web), time.Now()
	nodes, err := r.S.Nodes.Nodes(ctx)
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		if err := r.S.Nodes.Partition(ctx, n.Name); err != nil {
			return "", err
		}
	}
	restore, err := r.S.ForgetCluster(ctx)
	if err == nil {
		err = r.knowsNothing(ctx, start, keys)
	}
	if restore != nil {
		err = errors.Join(err, restore(context.WithoutCancel(ctx)))
	}
	for _, n := range nodes {
		err = errors.Join(err, r.S.Nodes.Heal(context.WithoutCancel(ctx), n.Name))
	}
	if err != nil {
		return "", err
	}
	start = time.Now()
	if err := r.scale(ctx, "web", 3); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3, healthy: true}); err != nil {
		return "", fmt.Errorf("with its store back: %w", err)
	}
	return fmt.Sprintf("%d targets through %d rounds, right %.1f s after", len(keys), fewRounds, time.Since(start).Seconds()), nil
}

// knowsNothing has a new run of resync, which remembers nothing, read the empty
// cluster to its end, and looks whether all targets are held. A run that goes on
// may wait for revisions that the empty store does not have yet, and still see all.
func (r *Runner) knowsNothing(ctx context.Context, since time.Time, keys []string) error {
	if !r.S.KillResync() {
		return errors.New("no run of resync to end")
	}
	if err := r.S.RunResync(ctx); err != nil {
		return err
	}
	_, err := logged(ctx, r, since, targetevent.DetailTypeResyncCompleted, "", "a cluster without pods that is read to its end", func(ev targetevent.ResyncCompleted) bool {
		return !ev.At.Before(since) && len(ev.Clusters) == 1 && ev.Clusters[0].Complete && ev.Clusters[0].Pods == 0
	})
	if err != nil {
		return err
	}
	if _, err := r.held(ctx, since, r.web, len(keys)); err != nil {
		return err
	}
	return r.keeps(ctx, fewRounds, r.web, "nothing is removed when all pods are gone at once", keys)
}
