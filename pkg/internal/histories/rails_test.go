package histories_test

import (
	"slices"

	"github.com/elbridge/elbridge/pkg/plan"
)

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
		percent := s.percent(r.group)
		going := 0
		healthyGoing := 0
		for m := range s.removed {
			o := &s.removed[m]
			if o.told && o.witness == plan.Unwitnessed && (slices.Contains(r.draining, m) || o.call == r.call) {
				going++
			}
			if o.call == r.call && r.read.healthy[o.key] {
				healthyGoing++
			}
		}
		if limit := max(1, (r.serving+len(r.together))*percent/100); going > limit {
			s.violation("I9: at %v %d unwitnessed removals of %s are under way, %v among them, the limit is %d", r.at.Sub(s.start), going, short(r.group), r.key, limit)
		}
		if left := len(r.read.healthy) - healthyGoing; left < 1 {
			s.violation("I9: at %v the unwitnessed removal of %v leaves %d healthy targets in %s", r.at.Sub(s.start), r.key, left, short(r.group))
		}
	}
}

// checkWitness asks whether a witness can have been seen.
func (s *sim) checkWitness(r *removal) {
	switch r.witness {
	case plan.Emptied: // in steps
		step := 0
		for m := range s.removed {
			if o := &s.removed[m]; o.call == r.call && o.told && o.witness == plan.Emptied && o.was != plan.Unhealthy {
				step++
			}
		}
		if most := max(1, r.read.serving*s.percent(r.group)/100) - r.read.leaving; step > max(0, most) {
			s.violation("I9: at %v %d targets of the emptied %s go, %v among them: the step is %d", r.at.Sub(s.start), step, short(r.group), r.key, most)
		}
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

// percent is the strictest maxRemovalPercent of a group's rules.
func (s *sim) percent(arn string) int {
	if arn == apiARN {
		return 20
	}
	return s.plan.Percent
}
