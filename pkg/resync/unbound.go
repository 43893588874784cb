package resync

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

const (
	// unboundEvery is the time between two looks for groups that carry our owner tag
	// and that no rule names.
	unboundEvery = 5 * time.Minute
	// unboundHealths is how many groups a round looks into for them. With one call
	// for the tags of 20 groups, it is what the look may take of a round's time: 3,000
	// groups, ELB's quota of a region, take 50 minutes.
	unboundHealths = 4
)

// unboundBook is a look for such groups, which many rounds share, and what was
// found.
type unboundBook struct {
	looked time.Time     // when the look began
	tags   []claim.Group // whose tags are to be read
	owned  []claim.Group // ours, whose targets are to be read
	found  map[string]claim.Group
}

// unbound returns the owned groups with targets that no rule names any more. They
// are told of each round and left as they are: absent configuration means "not
// ours", never "remove all" (I8). Groups whose rule vanished are looked at first.
func (r *Resync) unbound(ctx context.Context, rd *round, vanished []string) []targetevent.Finding {
	if !rd.complete {
		return nil // a rule that was not read may name the group
	}
	b := &r.unboundGroups
	api := r.paced(r.Groups(&binding.Binding{}), "unbound")
	if err := r.lookUnbound(ctx, rd, api, vanished); err != nil && ctx.Err() == nil {
		b.tags, b.owned = nil, nil
		r.directory.stale(&binding.Binding{}) // a group that went meanwhile is not to be asked for again
		rd.problem("looking for groups that no rule names: %v", err)
	}
	var out []targetevent.Finding
	for _, arn := range slices.Sorted(maps.Keys(b.found)) {
		if !r.isUnbound(rd, arn) {
			continue
		}
		out = append(out, targetevent.Finding{TargetGroup: arn, Drift: string(drift.Unbound), Action: ActionReported,
			Key: targetevent.Key{Reason: "it carries our owner tag and has targets, and no rule names it: nothing is removed"}})
	}
	return out
}

// isUnbound reports whether no rule names a group, or may do so.
func (r *Resync) isUnbound(rd *round, arn string) bool {
	_, may := r.doubted(rd, arn)
	return rd.groups[arn] == nil && !may
}

// lookUnbound goes on with the look, or begins another if it is time for one.
func (r *Resync) lookUnbound(ctx context.Context, rd *round, api paced, vanished []string) error {
	b := &r.unboundGroups
	over := len(b.tags)+len(b.owned) == 0 && r.Now().Sub(b.looked) >= unboundEvery
	if over || len(vanished) > 0 {
		if err := r.beginUnbound(ctx, rd, api, vanished); err != nil {
			return err
		}
	}
	chunk := b.tags[:min(len(b.tags), tagsACall)]
	b.tags = b.tags[len(chunk):]
	arns := make([]string, len(chunk))
	for i, g := range chunk {
		arns[i] = g.ARN
	}
	tags, err := api.TagsOf(ctx, arns)
	if err != nil {
		return err
	}
	for _, g := range chunk {
		if binding.Owns(tags[g.ARN][binding.OwnerTag], r.Config.BusARN, g.ARN) {
			b.owned = append(b.owned, g)
		} else {
			delete(b.found, g.ARN)
		}
	}
	for range min(len(b.owned), unboundHealths) {
		g := b.owned[0]
		b.owned = b.owned[1:]
		current, err := api.Health(ctx, g)
		if err != nil {
			return err
		}
		if delete(b.found, g.ARN); serves(current) {
			b.found[g.ARN] = g
		}
	}
	return nil
}

// beginUnbound lists the groups of our own account and region that no rule names.
func (r *Resync) beginUnbound(ctx context.Context, rd *round, api paced, vanished []string) error {
	b, own := &r.unboundGroups, &binding.Binding{}
	if len(vanished) > 0 {
		r.directory.stale(own) // the group may be younger than the last listing
	}
	b.looked = r.Now()
	all, err := r.directory.all(ctx, api, own)
	if err != nil {
		return err
	}
	there := map[string]claim.Group{}
	b.tags, b.owned = nil, nil
	for _, g := range all {
		if there[g.ARN] = g; r.isUnbound(rd, g.ARN) {
			b.tags = append(b.tags, g)
		}
	}
	slices.SortFunc(b.tags, func(x, y claim.Group) int { return strings.Compare(x.ARN, y.ARN) })
	slices.SortStableFunc(b.tags, func(x, y claim.Group) int { // those first
		return last(vanished, x.ARN) - last(vanished, y.ARN)
	})
	if b.found == nil {
		b.found = map[string]claim.Group{}
	}
	maps.DeleteFunc(b.found, func(arn string, _ claim.Group) bool { return there[arn].ARN == "" })
	return nil
}

func last(first []string, arn string) int {
	if slices.Contains(first, arn) {
		return 0
	}
	return 1
}

// serves reports whether a group has a target that does not drain.
func serves(current map[claim.Key]plan.Target) bool {
	for _, t := range current {
		if t.Health != plan.Draining {
			return true
		}
	}
	return false
}
