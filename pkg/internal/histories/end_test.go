package histories_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

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
	for id, p := range s.pods { // one that lives there and is selected asks for no traffic now: it may at any moment (P052)
		if p.PodIP() == k.ID && !p.Terminating && !p.Finished() && s.hrulesSelect(arn, clusterOf(id), p) {
			return
		}
	}
	for id, p := range s.pods {
		if p.PodIP() == k.ID && (p.Terminating || p.Finished()) && s.nodes[p.NodeName] && s.hrulesSelect(arn, clusterOf(id), p) {
			s.violation("I9: nobody claims %v in %s, its pod has ended and it is held: %s", k, s.groupText(arn), podText(p))
		}
	}
}

func (s *sim) hrulesSelect(arn, in string, p *podevent.Pod) bool {
	for _, r := range s.hrules {
		if r.arn == arn && r.mode == "manage" && r.selects(in, p) {
			return true
		}
	}
	return false
}

const (
	// addedAfter is how long after the last fault all that is claimed is there: a
	// stream's longest pause, a round's interval, and a round.
	addedAfter = 30*time.Second + 20*time.Second + 15*time.Second
	// rightAfter is how long after it what nobody claims is gone: the witness
	// window, and what an emptied group takes, step by step, two rounds for each.
	rightAfter = 3*time.Minute + 10*2*20*time.Second
	// flapTimes and flapTime are how often resync makes a repair within what time
	// before it leaves it to people (P037).
	flapTimes, flapTime = 6, 10 * time.Minute
)

// rightAgain lets the world go on until the groups are as they should be, or
// should have been for long.
func (s *sim) rightAgain() {
	began := time.Now()
	for age := time.Duration(0); len(s.wrong) == 0; age = time.Since(began) {
		s.on(5 * time.Second)
		missing, extra := s.differences()
		switch {
		case age > addedAfter && len(missing) > 0:
			s.violation("I3: %v after the last fault: %s", age, strings.Join(missing, "; "))
		case age > rightAfter && len(extra) > 0:
			s.violation("I3: %v after the last fault: %s", age, strings.Join(extra, "; "))
		case age > addedAfter && len(missing)+len(extra) == 0:
			return
		}
	}
}

// differences compares targets and claims; what may be held is none.
func (s *sim) differences() (missing, extra []string) {
	if s.plan.Observe {
		return nil, nil
	}
	for arn, g := range s.groups {
		wanted, protected := s.claims(arn, false), s.claims(arn, true)
		for k, pods := range wanted {
			if h := g.targets[k]; (h == "" || h == plan.Draining) && !s.flaps("register", arn, k) {
				missing = append(missing, fmt.Sprintf("%s claims %v in %s", podText(pods[0]), k, s.groupText(arn)))
			}
		}
		var idle []claim.Key // in the group, and nobody's
		for k, h := range g.targets {
			if h != plan.Draining && len(protected[k]) == 0 {
				idle = append(idle, k)
			}
		}
		for _, k := range idle {
			if !s.mayStay(arn, k, idle) {
				extra = append(extra, fmt.Sprintf("nobody claims %v in %s", k, s.groupText(arn)))
			}
		}
	}
	slices.Sort(missing)
	slices.Sort(extra)
	return missing, extra
}

// mayStay says whether a target that nobody claims is rightly left alone.
func (s *sim) mayStay(arn string, k claim.Key, idle []claim.Key) bool {
	g, enabled, emptied := s.groups[arn], false, true
	for _, r := range s.hrules {
		if r.arn == arn {
			enabled = enabled || !r.disabled
			emptied = emptied && !r.disabled && r.empty
			if r.mode == "observe" {
				return true // an observed rule may be behind it: nobody knows better (I19)
			}
		}
	}
	switch {
	case !enabled: // absent configuration removes nothing (I8)
		return true
	case g.tags["elbridge:owner"] == "": // not ours (I18)
		return true
	case s.flaps("deregister", arn, k):
		return true
	case emptied && !s.stranger(arn, k): // of those an emptied rule says nothing: held like any others
		return false
	}
	healthy, left, unwitnessed, serving, percent := 0, 0, 0, 0, 100
	for _, r := range s.hrules {
		if r.arn == arn {
			percent = min(percent, r.percent)
		}
	}
	for o, h := range g.targets {
		if h == plan.Healthy || h == plan.Draining {
			serving++
		}
		if h == plan.Healthy {
			healthy++
			if !slices.Contains(idle, o) {
				left++
			}
		}
	}
	for _, o := range idle {
		if g.targets[o] != plan.Unhealthy {
			unwitnessed++
		}
	}
	if healthy > 0 && g.targets[k] == plan.Unhealthy {
		return false // the load balancer's word (I9)
	}
	return healthy == 0 || left < 1 || unwitnessed > max(1, serving*percent/100)
}

// stranger reports whether a living pod has the key's address that no rule of the
// group selects.
func (s *sim) stranger(arn string, k claim.Key) bool {
	for id, p := range s.pods {
		if p.PodIP() != k.ID || p.Terminating || p.Finished() || p.HostNetwork {
			continue
		}
		selected := false
		for _, r := range s.hrules {
			selected = selected || r.arn == arn && r.selects(clusterOf(id), p)
		}
		if !selected {
			return true
		}
	}
	return false
}

// flaps reports whether a resync has repaired a key so often that it leaves it.
func (s *sim) flaps(verb, arn string, k claim.Key) bool {
	times := map[int]int{}
	for _, m := range s.changes {
		if m.verb == verb && m.group == arn && m.key == k && m.resync && time.Since(m.at) < flapTime {
			times[m.actor]++
		}
	}
	for _, n := range times {
		if n >= flapTimes {
			return true
		}
	}
	return false
}
