package registrar_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// claimant is a pod with a key that it claims in a group.
type claimant struct {
	group string
	key   claim.Key
	uid   string
}

// observedOnly stands before the group of a claimant whose rules only observe.
const observedOnly = "observed only: "

// span is an unbroken time of claiming.
type span struct {
	since time.Time
	run   int // the number of batches begun by then
}

// removal is a target that a registrar took out, with what was true of it.
type removal struct {
	at       time.Time
	call     int
	run      int
	group    string
	key      claim.Key
	was      plan.Health
	told     bool
	witness  plan.Witness
	draining []int // earlier removals of the group that drained at the time, by index
	healthy  int   // when the registrar read the group last
	serving  int
	together []claim.Key
	pods     []podevent.Pod // with that address, then
	nodes    map[string]bool
}

type groupCount struct{ healthy, serving int }

// claims is the oracle: what live pods claim, written down once more and
// without a look at pkg/claim. Disabled rules protect, and claim nothing new.
func (s *sim) claims(arn string, all bool) map[claim.Key][]*podevent.Pod {
	out := map[claim.Key][]*podevent.Pod{}
	for _, r := range s.hrules {
		if r.arn != arn || (!all && (r.disabled || r.mode == "observe")) {
			continue
		}
		for _, p := range s.pods {
			alive := !p.Terminating && p.Phase != "Failed" && len(p.PodIPs) == 1
			asks := r.when == "HasIP" || p.Ready
			within := !r.cidrs || strings.HasPrefix(p.PodIP(), "10.0.")
			if alive && asks && within && r.selects(p) {
				k := claim.Key{ID: p.PodIP(), Port: r.port}
				out[k] = append(out[k], p)
			}
		}
	}
	return out
}

// observe keeps account of who claims what, since when.
func (s *sim) observe() {
	now := map[claimant]bool{}
	for arn := range s.groups {
		for k, pods := range s.claims(arn, true) {
			for _, p := range pods {
				now[claimant{arn, k, p.UID}] = true
				_, managed := s.claims(arn, false)[k]
				if s.lastly[claimant{arn, k, ""}] = managed; !managed {
					now[claimant{observedOnly + arn, k, p.UID}] = true
				}
			}
		}
	}
	maps.DeleteFunc(s.claimed, func(c claimant, _ span) bool { return !now[c] })
	for c := range now {
		if _, known := s.claimed[c]; !known {
			s.claimed[c] = span{time.Now(), s.runs}
		}
	}
}

// checkCall: observing changes nothing (I19).
func (i *instance) checkCall(verb, arn string, ks []claim.Key) {
	if i.plan.Observe {
		i.violation("I19: instance %d: %s %v in %s while everything is observed", i.id, verb, ks, short(arn))
	}
	if verb != "register" || i.plan.RuleChanges {
		return
	}
	for _, k := range ks { // registering for an observed rule alone
		for _, p := range i.claims(arn, true)[k] {
			if i.since(observedOnly+arn, k, p.UID) < i.run {
				i.violation("I19: instance %d registers %v in %s, which only an observed rule claims", i.id, k, short(arn))
			}
		}
	}
}

func (s *sim) since(arn string, k claim.Key, uid string) int {
	if c, ok := s.claimed[claimant{arn, k, uid}]; ok {
		return c.run
	}
	return s.runs
}

// checkRemoval looks at a removal in the moment of its effect.
func (i *instance) checkRemoval(arn string, ks []claim.Key) {
	g := i.groups[arn]
	count := i.count(arn)
	i.calls++
	for _, k := range ks {
		if g.targets[k] == "" || g.targets[k] == plan.Draining {
			continue
		}
		for _, p := range i.claims(arn, true)[k] {
			if i.since(arn, k, p.UID) < i.run && !i.constantsYoung(arn) {
				i.violation("I1 I2: instance %d takes %v out of %s, which %s has claimed since before this batch", i.id, k, short(arn), podText(p))
			}
		}
		if g.tags["elbridge:owner"] == "" && (!i.plan.CIDRs || k.ID == "10.0.0.99") {
			i.violation("I18: instance %d takes %v out of a group without owner", i.id, k)
		}
		r := removal{at: time.Now(), call: i.calls, run: i.run, group: arn, key: k, was: g.targets[k], healthy: i.saw[arn].healthy, serving: count.serving, together: ks, nodes: maps.Clone(i.nodes)}
		for _, p := range i.pods {
			if p.PodIP() == k.ID {
				r.pods = append(r.pods, *p)
			}
		}
		for n, earlier := range i.removed {
			if earlier.group == arn && g.targets[earlier.key] == plan.Draining && !i.endedAt(earlier.key.ID) {
				r.draining = append(r.draining, n)
			}
		}
		i.removed = append(i.removed, r)
	}
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

// constantsYoung: a registrar may act by constants that are a minute old.
func (s *sim) constantsYoung(arn string) bool {
	for _, r := range s.hrules {
		if r.arn == arn && !r.constantsFrom.IsZero() && time.Since(r.constantsFrom) < 61*time.Second {
			return true
		}
	}
	return false
}

func (s *sim) count(arn string) (c groupCount) {
	for _, h := range s.groups[arn].targets {
		switch h {
		case plan.Healthy:
			c.healthy++
			c.serving++
		case plan.Draining:
			c.serving++
		}
	}
	return c
}

// told reads the witnesses off the events (I10).
func (i *instance) told(es []bus.Entry) {
	for _, e := range es {
		i.note("instance %d tells: %s %s", i.id, e.DetailType, e.Detail)
		var d struct {
			TargetGroup  string `json:"targetGroup"`
			WouldDo      bool   `json:"wouldDo"`
			Deregistered []struct {
				ID      string `json:"id"`
				Port    int32  `json:"port"`
				Witness string `json:"witness"`
			} `json:"deregistered"`
		}
		if err := json.Unmarshal(e.Detail, &d); err != nil {
			i.violation("event can't be read: %v", err)
		}
		if e.DetailType != "Targets Changed" || d.WouldDo {
			continue
		}
		for _, k := range d.Deregistered {
			for n := range i.removed {
				r := &i.removed[n]
				if r.run == i.run && r.group == d.TargetGroup && r.key == (claim.Key{ID: k.ID, Port: k.Port}) && !r.told {
					r.told, r.witness = true, plan.Witness(k.Witness)
					break
				}
			}
		}
	}
}

// checkRails judges the removals that were told of as unwitnessed, and whether
// the witnesses of the others can have been true (I9).
func (s *sim) checkRails() {
	for n := range s.removed {
		r := &s.removed[n]
		if !r.told {
			continue // its event was lost in a fault
		}
		if r.witness != plan.Unwitnessed {
			s.checkWitness(r)
			continue
		}
		percent := s.hrules["web"].percent
		if r.group == apiARN {
			percent = 20
		}
		going := 0
		healthyGoing := 0
		for m := range s.removed {
			o := &s.removed[m]
			if o.told && o.witness == plan.Unwitnessed && (slices.Contains(r.draining, m) || o.call == r.call) {
				going++
			}
			if o.call == r.call && o.was == plan.Healthy {
				healthyGoing++
			}
		}
		if limit := max(1, (r.serving+len(r.together))*percent/100); going > limit {
			s.violation("I9: at %v %d unwitnessed removals of %s are under way, %v among them, the limit is %d", r.at.Sub(s.start), going, short(r.group), r.key, limit)
		}
		if r.was == plan.Healthy && r.healthy-healthyGoing < 1 {
			s.violation("I9: at %v the unwitnessed removal of %v leaves %d healthy targets in %s", r.at.Sub(s.start), r.key, r.healthy-healthyGoing, short(r.group))
		}
	}
}

// checkWitness asks whether a witness can have been seen.
func (s *sim) checkWitness(r *removal) {
	switch r.witness {
	case plan.OtherOwner:
		for _, p := range r.pods {
			if !p.Terminating && !p.Finished() && p.HostNetwork {
				s.violation("I9: %v at %v: a pod on the host's network is no other owner of its address: %s", r.key, r.at.Sub(s.start), podText(&p))
			}
		}
	case plan.PodEnded:
		if len(r.pods) == 1 && !r.pods[0].Terminating && !r.pods[0].Finished() && !s.plan.ReuseAtOnce && !r.pods[0].HostNetwork {
			s.violation("I9: %v at %v: %s has not ended", r.key, r.at.Sub(s.start), podText(&r.pods[0]))
		}
	}
}

// checkEnd compares targets and claims after the last fault (I3).
func (s *sim) checkEnd() {
	if s.plan.Observe {
		return
	}
	for arn, g := range s.groups {
		wanted, protected := s.claims(arn, false), s.claims(arn, true)
		for k, pods := range wanted {
			if h := g.targets[k]; h == "" || h == plan.Draining {
				s.violation("I3: %s claims %v in %s, which holds %s", podText(pods[0]), k, short(arn), s.groupText(arn))
			}
		}
		for k, h := range g.targets {
			if h == plan.Draining || len(protected[k]) > 0 || s.plan.RuleChanges || g.tags["elbridge:owner"] == "" {
				continue
			}
			if managed, claimed := s.lastly[claimant{arn, k, ""}]; managed || !claimed {
				s.checkHeld(arn, k) // else only an observed rule knows of its end (I19)
			}
		}
	}
}

// checkHeld: what stays without a claim has a message that still asks for it,
// and nothing witnesses that it may go.
func (s *sim) checkHeld(arn string, k claim.Key) {
	asked := slices.ContainsFunc(s.queue, func(l *letter) bool { return !l.gone && slices.Contains(l.ips, k.ID) })
	if !asked {
		s.violation("I3: nobody claims %v in %s, and no hint is left that would remove it", k, s.groupText(arn))
		return
	}
	for _, p := range s.pods {
		if p.PodIP() == k.ID && (p.Terminating || p.Finished()) && s.nodes[p.NodeName] && s.hrulesSelect(arn, p) {
			s.violation("I9: nobody claims %v in %s, its pod has ended and it is held: %s", k, s.groupText(arn), podText(p))
		}
	}
}

func (s *sim) hrulesSelect(arn string, p *podevent.Pod) bool {
	for _, r := range s.hrules {
		if r.arn == arn && r.mode == "manage" && r.selects(p) {
			return true
		}
	}
	return false
}

func (s *sim) groupText(arn string) string {
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(s.groups[arn].targets), claim.Compare) {
		out = append(out, fmt.Sprintf("%v=%s", k, s.groups[arn].targets[k]))
	}
	return short(arn) + "[" + strings.Join(out, " ") + "]"
}
