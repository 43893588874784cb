package state

import (
	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// fits says whether a load balancer may have the targets of these groups and
// more of them.
func (s *Store) fits(b *balancer, groups []*group, more []*target) error {
	all := more
	for _, g := range groups {
		for _, t := range g.targets {
			if t.live() {
				all = append(all, t)
			}
		}
	}
	if b.Kind == route.Network {
		return s.fitsNetwork(b, all)
	}
	if lim := s.cfg.Limits.TargetsPerALB; len(all) > lim {
		return tooManyTargets(lim, b.ARN)
	}
	times := map[string]int{}
	for _, t := range all {
		times[t.ID]++
		if lim := s.cfg.Limits.RegistrationsPerTargetID; times[t.ID] > lim {
			return core.Errorf("TooManyRegistrationsForTargetId", "The maximum number of registrations '%d' for target '%s' has been reached on load balancer '%s'", lim, t.ID, b.ARN)
		}
	}
	return nil
}

func (s *Store) fitsNetwork(b *balancer, all []*target) error {
	lim := s.cfg.Limits.TargetsPerNLB
	if b.attributes[attrCrossZone] == "true" {
		lim = s.cfg.Limits.TargetsPerZoneNLB // one sum, however many zones
	}
	if len(all) > lim {
		return tooManyTargets(lim, b.ARN)
	}
	zones := map[string]int{}
	for _, t := range all {
		zones[t.zone]++
		if lim := s.cfg.Limits.TargetsPerZoneNLB; zones[t.zone] > lim {
			return core.Errorf("TooManyTargets", "The maximum number of targets per Availability Zone '%d' has been reached on load balancer '%s'", lim, b.ARN)
		}
	}
	return nil
}

func tooManyTargets(limit int, balancer string) error {
	return core.Errorf("TooManyTargets", "The maximum number of targets per load balancer '%d' has been reached on load balancer '%s'", limit, balancer)
}
