package histories_test

import (
	"maps"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// change is a target that was registered or deregistered.
type change struct {
	at     time.Time
	verb   string
	group  string
	key    claim.Key
	actor  int
	resync bool
	told   bool
}

// removal is a target that a program took out, with what was true of it.
type removal struct {
	at       time.Time
	call     int
	actor    int
	resync   bool
	group    string
	key      claim.Key
	was      plan.Health
	told     bool
	witness  plan.Witness
	draining []int      // earlier removals of the group that drained at the time, by index
	read     groupCount // when the program read the group last
	serving  int
	together []claim.Key
	pods     []podevent.Pod // with that address, then
	nodes    map[string]bool
}

// mutated notes a change that was made.
func (a *actor) mutated(verb, arn string, k claim.Key) {
	a.changes = append(a.changes, change{at: time.Now(), verb: verb, group: arn, key: k, actor: a.id, resync: a.resync})
}

// checkRegister looks at a registration in the moment of its effect: observing
// changes nothing (I19), and nothing is registered that no live pod claims, but by
// a reading that may still be acted on (I1, I3).
func (a *actor) checkRegister(arn string, ks []claim.Key, entered time.Time) {
	if a.plan.Observe {
		a.violation("I19: %s: register %v in %s while everything is observed", a.name(), ks, short(arn))
	}
	now := a.claims(arn, true)
	for _, k := range ks {
		a.checkAsked(arn, k, len(now[k]) > 0, entered)
		for _, p := range now[k] { // registering for an observed rule alone
			if !a.plan.RuleChanges && a.since(observedOnly+arn, k, p.UID) < a.decision(arn) {
				a.violation("I19: %s registers %v in %s, which only an observed rule claims", a.name(), k, short(arn))
			}
		}
	}
}

// checkAsked: a key is registered that a pod claimed when it was read, or since,
// and the reading is acted on at once or within what it may be old (I1, I3).
func (a *actor) checkAsked(arn string, k claim.Key, claimed bool, entered time.Time) {
	if claimed || a.rulesServe(arn) {
		return
	}
	for c, last := range a.lastClaim {
		if c.group != arn || c.key != k {
			continue
		}
		for _, read := range a.young(last.pod[0], last.pod[1], entered) {
			if !last.since.Before(read.issued) || entered.Sub(last.since) <= reconcile.DecisionMaxAge {
				return
			}
		}
	}
	a.violation("I1 I3: %s registers %v in %s, which nobody claimed when it asked, or it sat on the answer", a.name(), k, short(arn))
}

// checkRemoval looks at a removal in the moment of its effect.
func (a *actor) checkRemoval(arn string, ks []claim.Key, entered time.Time) {
	g, count := a.groups[arn], a.count(arn)
	a.calls++
	if a.plan.Observe {
		a.violation("I19: %s: deregister %v in %s while everything is observed", a.name(), ks, short(arn))
	}
	for _, of := range []string{arn, busARN} {
		// The bus's tags are read for all groups that are under way, are remembered for
		// as long as a decision is acted on, and it is acted on for as long (I3), a call
		// that is slow to take effect aside: what was frozen for three times that is
		// known to every decision that reads tags at all.
		long := time.Since(a.frozenAt[of]) > 3*reconcile.DecisionMaxAge
		if since := a.frozen[of]; since > 0 && long && since < min(a.tagsRead[of], a.tagsRead[arn]) {
			a.violation("I9: %s takes %v out of %s, though %s is frozen", a.name(), ks, short(arn), of)
		}
	}
	a.checkWhole(arn)
	for _, k := range ks {
		if g.targets[k] == "" || g.targets[k] == plan.Draining {
			continue
		}
		a.checkClaimed(arn, k, entered)
		if g.tags["elbridge:owner"] == "" && (!a.plan.CIDRs || k == stranger) {
			a.violation("I18: %s takes %v out of a group without owner", a.name(), k)
		}
		r := removal{at: time.Now(), call: a.calls, actor: a.id, resync: a.resync, group: arn, key: k, was: g.targets[k], read: a.saw[arn],
			serving: count.serving, together: ks, nodes: maps.Clone(a.nodes)}
		for _, p := range a.pods {
			if p.PodIP() == k.ID {
				r.pods = append(r.pods, *p)
			}
		}
		for n, earlier := range a.removed {
			if earlier.group == arn && g.targets[earlier.key] == plan.Draining && !a.endedAt(earlier.key.ID) {
				r.draining = append(r.draining, n)
			}
		}
		a.removed = append(a.removed, r)
	}
}

// checkClaimed: nothing is taken out that a live pod has claimed since before the
// program asked who has the address, and it asked in every cluster of the group
// (I1, I2, I8).
func (a *actor) checkClaimed(arn string, k claim.Key, entered time.Time) {
	asked := a.clock
	if !a.resync {
		asked = a.rulesRead
	}
	for _, name := range a.clustersOf(arn) {
		first := 0
		asks := a.young(name, k.ID, entered)
		if len(asks) == 0 && !a.resync { // it has listed the pods of every binding, to know all that goes without a witness
			asks = a.young(name, selection, entered)
		}
		if len(asks) > 0 {
			first = asks[0].at
		}
		if first == 0 && !a.rulesYoung(arn) {
			a.violation("I3 I8: %s takes %v out of %s, and did not ask who has it in cluster %s, or sat on the answer", a.name(), k, short(arn), name)
		}
		asked = min(asked, first)
	}
	for _, p := range a.claims(arn, true)[k] {
		c := a.claimed[claimant{arn, k, p.UID}]
		if (c.at > 0 && c.at < asked || !a.resync && a.since(arn, k, p.UID) < a.run) && !a.constantsYoung(arn) {
			a.violation("I1 I2: %s takes %v out of %s, which %s has claimed since before it asked", a.name(), k, short(arn), podText(p))
		}
	}
}

// wholeAfter is when what was not read to the end is surely known to a comparison
// that removes something.
const wholeAfter = time.Minute

// checkWhole: a resync takes nothing out of a group while it has not read the pods
// of each of its clusters to the end (I8).
func (a *actor) checkWhole(arn string) {
	if !a.resync || a.plan.RuleChanges { // rules say what has to be read
		return
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	for _, name := range a.clustersOf(arn) {
		if since, partial := a.partial[name]; partial && time.Since(since) > wholeAfter {
			a.violation("I8: %s takes something out of %s, and has not read cluster %s to the end for %v", a.name(), short(arn), name, time.Since(since))
		}
	}
}

// clustersOf are the clusters that rules bind to the group.
func (s *sim) clustersOf(arn string) []string {
	var out []string
	for _, name := range s.clusterNames {
		for _, r := range s.hrules {
			if r.arn == arn && r.covers(name) {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// endedAt reports whether a witness has appeared for an address since: who judges
// now counts its removal as witnessed.
func (s *sim) endedAt(id string) bool {
	for _, p := range s.pods {
		if p.PodIP() == id && (p.Terminating || p.Finished()) && s.nodes[p.NodeName] {
			return true
		}
	}
	return false
}

// told reads causes (I10), witnesses and held plans off the events.
func (a *actor) told(es []bus.Entry) {
	for _, e := range es {
		a.note("%s tells: %s %s", a.name(), e.DetailType, e.Detail)
		switch e.DetailType {
		case targetevent.DetailTypeTargetsChanged:
			ev, err := targetevent.Decode[targetevent.TargetsChanged](e.Detail)
			if err != nil {
				a.violation("event can't be read: %v", err)
			}
			a.toldChange(ev)
		case targetevent.DetailTypeRemovalHeld:
			if ev, err := targetevent.Decode[targetevent.RemovalHeld](e.Detail); err == nil {
				a.hashes = append(a.hashes, ev.Hash)
				a.met["plans held"]++
			}
		case targetevent.DetailTypeResyncCompleted:
			a.met["rounds told of"]++
		}
	}
}

func (a *actor) toldChange(ev targetevent.TargetsChanged) {
	c := ev.Cause
	if a.resync && (c.Kind != targetevent.Drift || c.RunID == "" || c.Round == 0 || c.Drift == "") ||
		!a.resync && (c.Kind != targetevent.Hint || c.EventID == "" || c.MessageID == "") {
		a.violation("I10: %s tells of a change without its cause: %+v", a.name(), ev)
	}
	if ev.WouldDo {
		return
	}
	if strings.HasPrefix(c.Request, dry) {
		a.violation("I19: %s changes something in a dry run: %+v", a.name(), ev)
	}
	for _, k := range ev.Registered {
		a.toldOne("register", ev.TargetGroup, k)
	}
	for _, k := range ev.Deregistered {
		a.toldOne("deregister", ev.TargetGroup, k)
		for n := range a.removed {
			r := &a.removed[n]
			if r.actor == a.id && r.group == ev.TargetGroup && r.key == (claim.Key{ID: k.ID, Port: k.Port}) && !r.told {
				r.told, r.witness = true, plan.Witness(k.Witness)
				break
			}
		}
	}
}

func (a *actor) toldOne(verb, arn string, k targetevent.Key) {
	for n := range a.changes {
		c := &a.changes[n]
		if c.verb == verb && c.group == arn && c.actor == a.id && c.key == (claim.Key{ID: k.ID, Port: k.Port}) && !c.told {
			c.told = true
			return
		}
	}
}

// checkTold: every change has its event, unless one may have been lost (I10).
func (s *sim) checkTold() {
	for _, c := range s.changes {
		if !c.told && !s.untold.Load() && len(s.wrong) == 0 && time.Since(c.at) > time.Minute { // else it may be on its way
			s.violation("I10: nothing was told of %s %v in %s by %d at %v", c.verb, c.key, short(c.group), c.actor, c.at.Sub(s.start))
		}
	}
}
