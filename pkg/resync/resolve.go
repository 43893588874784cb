package resync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// resolve finds the groups that the bindings name. What is not there, or can't be
// served, covers nothing and is told of; a rule of which it is not known which
// group it means keeps every group that it may mean from losing targets.
func (r *Resync) resolve(ctx context.Context, rd *round) {
	rd.groups, rd.complete = map[string]*group{}, !rd.stale
	for _, f := range rd.snapshot.Faults {
		rd.invalid(r, targetevent.BindingInvalid{Rule: f.Rule.ARN, Problem: f.Err.Error()})
		rd.doubt(f.Rule.ARN, f.Err, f.Mentions)
		if f.ByTags() && len(r.named[f.Rule.ARN]) == 0 { // as tags that can't be read
			rd.doubt(f.Rule.ARN, f.Err, r.mayMean(&binding.Binding{}))
		}
	}
	for i := range rd.snapshot.Bindings {
		b := &rd.snapshot.Bindings[i]
		api := r.Groups(b)
		g, err := r.directory.group(ctx, r.paced(api, "groups"), b)
		switch {
		case notThere(err):
			rd.gone(b, err)
			rd.invalidBinding(r, b, err)
			rd.doubt(b.Rule, err, amongCandidates(err))
		case err != nil:
			rd.problem("what rule %s names was not found out: %v", b.Rule, err)
			rd.doubt(b.Rule, err, r.mayMean(b))
		case g.Type != claim.IP:
			err = fmt.Errorf("target group %s has targets of type %q: only ip is supported so far", g.ARN, g.Type)
			rd.invalidBinding(r, b, err)
			rd.doubt(b.Rule, err, nobody)
		default:
			rd.bind(g.Group, api, *b)
			if g.late == nil {
				continue
			}
			rd.problem("target groups as they were known before are used, as they could not be read again: %v", g.late)
			if len(b.Group.Tags) > 0 { // they may be another group's by now
				rd.doubt(b.Rule, g.late, r.mayMean(b))
			}
		}
	}
	r.remember(rd)
}

func (rd *round) bind(g claim.Group, api Groups, b binding.Binding) {
	of := rd.groups[g.ARN]
	if of == nil {
		of = &group{Group: g, api: api}
		rd.groups[g.ARN] = of
	}
	of.bindings = append(of.bindings, b)
}

func (rd *round) invalidBinding(r *Resync, b *binding.Binding, err error) {
	rd.invalid(r, targetevent.BindingInvalid{Rule: b.Rule, TargetID: b.TargetID, TargetGroup: b.Group.ARN, Mode: string(b.Mode), Problem: err.Error()})
}

func (rd *round) invalid(r *Resync, ev targetevent.BindingInvalid) {
	ev.Cause = targetevent.Cause{Kind: targetevent.Resync, RunID: rd.run, Round: rd.number, Request: rd.requestID()}
	rd.outbox = r.hands.Invalid(rd.outbox, ev)
}

// doubt is a rule of which it is not known, or not for sure, which group it means.
type doubt struct {
	rule string
	why  error
	may  func(group string) bool // whether it may mean that group
}

func (rd *round) doubt(rule string, why error, may func(group string) bool) {
	rd.doubts = append(rd.doubts, doubt{rule, why, may})
}

// doubted returns a rule that may mean a group, or named it before it could not be
// understood: the pods that it claims can't be told from others (I8).
func (r *Resync) doubted(rd *round, group string) (doubt, bool) {
	for _, d := range rd.doubts {
		if d.may(group) || slices.Contains(r.named[d.rule], group) {
			return d, true
		}
	}
	return doubt{}, false
}

// remember keeps which groups each rule names. Those of a rule in doubt are kept
// for as long as the doubt lasts; a rule that is no more names nothing.
func (r *Resync) remember(rd *round) {
	now := groupsOf(rd.groups)
	for _, d := range rd.doubts {
		for _, arn := range r.named[d.rule] {
			if !slices.Contains(now[d.rule], arn) {
				now[d.rule] = append(now[d.rule], arn)
			}
		}
	}
	if !rd.stale { // else rules may be there that were not read
		there := map[string]bool{}
		for _, rule := range rd.snapshot.Rules {
			there[rule.ARN] = true
		}
		for rule := range now {
			if !there[rule] {
				delete(now, rule)
			}
		}
	}
	r.named = now
}

func nobody(string) bool { return false }

// amongCandidates is of the groups that an ambiguous reference names.
func amongCandidates(err error) func(string) bool {
	several, _ := errors.AsType[*ambiguous](err)
	return func(group string) bool { return several != nil && slices.Contains(several.arns, group) }
}

// mayMean is of the groups that a reference can mean, before it is found out which:
// an ARN means itself, a name a group of that name, both tags and name one of the
// binding's account and of our own region.
func (r *Resync) mayMean(b *binding.Binding) func(string) bool {
	env := r.envelope()
	account := env.Account
	if parts := strings.Split(b.RoleARN, ":"); len(parts) > 4 {
		account = parts[4]
	}
	return func(group string) bool {
		at := strings.Split(group, ":")
		switch {
		case b.Group.ARN != "":
			return group == b.Group.ARN
		case len(at) > 4 && account != "" && (at[3] != env.Region || at[4] != account):
			return false
		case b.Group.Name != "":
			return reconcile.GroupName(group) == b.Group.Name
		}
		return true
	}
}
