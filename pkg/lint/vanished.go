package lint

import (
	"cmp"
	"fmt"
	"slices"
)

// Compare judges what becomes of the groups of old when new takes its place. A
// group whose last rule is gone is nobody's: its targets stay for ever, and get
// requests as long as it is in use. So it must be drained first: deploy its rule
// with "empty":true, wait until it holds nothing, then delete the rule.
//
// Both inputs' rules are taken as they are; faults are Run's to report.
func Compare(old, new Input) Report {
	before, after := newLinter(old), newLinter(new)
	l := &linter{in: new, bound: after.bound}
	for _, b := range before.bound {
		l.vanished(b, before, after)
	}
	return l.report(len(new.Rules))
}

func (l *linter) vanished(b *bound, before, after *linter) {
	same := func(o *bound) bool { return o.rule.Label() == b.rule.Label() }
	filled := slices.ContainsFunc(after.bound, func(o *bound) bool { return o.group == b.group })
	stays := slices.ContainsFunc(after.bound, same)
	switch {
	case b.drained(before, after):
	case !filled && stays:
		l.retargeted(b, after.bound[slices.IndexFunc(after.bound, same)])
	case !filled:
		f := b.of(VanishedGroup)
		f.Message = fmt.Sprintf("the rule is gone, no other names its group %s, and the group was not drained: its targets stay, and nobody removes them", b.groupName())
		f.Fix = drainFirst
		if b.brokenIn(after) {
			f.Message = fmt.Sprintf("the rule can't be understood any more, no other names its group %s, and the group was not drained", b.groupName())
			f.Fix = "correct the rule"
		}
		l.add(f)
	case !stays && !slices.ContainsFunc(after.bound, func(o *bound) bool { return o.group == b.group && o.Pattern.String() == b.Pattern.String() }):
		f := b.of(VanishedRule)
		f.Message = fmt.Sprintf("the rule is gone; its group %s is filled by other rules: pods that only it selected are removed within the group's rails (a changed rule is no witness)", b.groupName())
		f.Fix = `fine if that is meant; otherwise keep it with "empty":true until its pods are out`
		l.add(f)
	}
}

const drainFirst = `deploy the rule with "empty":true, wait until the group holds no targets, then delete it`

// retargeted judges a rule that names another group now.
func (l *linter) retargeted(b, now *bound) {
	f := now.of(RetargetedRule)
	f.Path = "$.binding.targetGroup"
	f.Message = fmt.Sprintf("the rule's group was %s and is %s now; the old one was not drained and no other rule names it", Ref(b.Group), Ref(now.Group))
	f.Fix = `keep a rule with "empty":true for the old group until it holds nothing`
	unsure := MadeUp(b.Group.ARN) != MadeUp(now.Group.ARN) || (b.Group.ARN == "") != (now.Group.ARN == "")
	if unsure {
		f.Check, f.Fix = UnsureComparison, "look whether it is the same group"
		f.Message = fmt.Sprintf("the rule's group was %s and is %s now: they may be the same", cmp.Or(b.groupName(), Ref(b.Group)), cmp.Or(now.groupName(), Ref(now.Group)))
	}
	l.add(f)
}

// drained reports whether a binding's group needs nobody: all its bindings were
// emptied, or it is known to hold nothing or not to exist.
func (b *bound) drained(before, after *linter) bool {
	for _, l := range []*linter{after, before} {
		if g, ok := l.in.Groups[Ref(b.Group)]; ok && (g.Problem == NotFound || g.Problem == Known && g.Drained) {
			return true
		}
	}
	return !slices.ContainsFunc(before.bound, func(o *bound) bool { return o.group == b.group && !o.Empty })
}

// brokenIn reports whether the rule is still there and has faults.
func (b *bound) brokenIn(after *linter) bool {
	return slices.ContainsFunc(after.findings, func(f Finding) bool { return f.Check == Invalid && f.Rule == b.rule.Label() })
}
