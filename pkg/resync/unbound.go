package resync

import (
	"context"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/drift"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// unboundEvery is the time between two looks for groups that carry our owner tag
// and that no rule names: tags are read 20 groups a call.
const unboundEvery = 5 * time.Minute

// unboundBook remembers such groups between looks.
type unboundBook struct {
	looked time.Time
	found  []claim.Group
}

// unbound returns the owned groups with targets that no rule names any more. They
// are told of each round and left as they are: absent configuration means "not
// ours", never "remove all" (I8). A rule that vanished is looked for at once.
func (r *Resync) unbound(ctx context.Context, rd *round, vanished bool) []targetevent.Finding {
	if !rd.complete {
		return nil // a rule may name the group: what it names was not found out
	}
	b := &r.unboundGroups
	if vanished {
		r.directory.stale(&binding.Binding{}) // the group may be younger than the last listing
	}
	if vanished || b.looked.IsZero() || r.Now().Sub(b.looked) >= unboundEvery {
		found, err := r.ownedUnbound(ctx, rd)
		switch {
		case err != nil && ctx.Err() != nil: // the run is over
		case err != nil:
			r.directory.stale(&binding.Binding{}) // a group that went meanwhile is not to be asked for again
			rd.problem("looking for groups that no rule names: %v", err)
		default:
			b.looked, b.found = r.Now(), found
		}
	}
	var out []targetevent.Finding
	for _, g := range b.found {
		if _, bound := rd.groups[g.ARN]; bound {
			continue
		}
		out = append(out, targetevent.Finding{TargetGroup: g.ARN, Drift: string(drift.Unbound), Action: ActionReported,
			Key: targetevent.Key{Reason: "it carries our owner tag and has targets, and no rule names it: nothing is removed"}})
	}
	return out
}

// ownedUnbound reads the tags of all groups of our own account and region, and the
// targets of those that are ours and have no rule.
func (r *Resync) ownedUnbound(ctx context.Context, rd *round) ([]claim.Group, error) {
	own := &binding.Binding{}
	api := r.paced(r.Groups(own), "unbound")
	all, err := r.directory.all(ctx, api, own)
	if err != nil {
		return nil, err
	}
	var arns []string
	groups := map[string]claim.Group{}
	for _, g := range all {
		if _, bound := rd.groups[g.ARN]; !bound {
			arns = append(arns, g.ARN)
			groups[g.ARN] = g
		}
	}
	slices.Sort(arns)
	tags, err := api.TagsOf(ctx, arns)
	if err != nil || len(arns) == 0 {
		return nil, err
	}
	var out []claim.Group
	for _, arn := range arns {
		if !binding.Owns(tags[arn][binding.OwnerTag], r.Config.BusARN, arn) {
			continue
		}
		current, err := api.Health(ctx, groups[arn])
		if err != nil {
			return nil, err
		}
		for _, t := range current {
			if t.Health != plan.Draining {
				out = append(out, groups[arn])
				break
			}
		}
	}
	return out, nil
}
