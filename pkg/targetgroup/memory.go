package targetgroup

import (
	"errors"
	"net/netip"
	"slices"
	"sync"

	"github.com/elbridge/elbridge/pkg/claim"
)

// What a client remembers saves calls, and nothing depends on it: each of the
// memories is bounded, and begins anew when it is full.
const (
	maxGroups = 1000
	// maxNeighbourhoods for one group: 256 networks of /24 are a /16.
	maxNeighbourhoods = 256
	// maxSuspects for one group is the quota of its targets.
	maxSuspects = 1000
	// suspectsTried is how many targets that were refused before one Register
	// tries again, those that wait longest first.
	suspectsTried = 8
)

// zoneMemory remembers, for a group and a /24 or /64, whether its addresses are
// outside the VPC.
type zoneMemory struct {
	mu   sync.Mutex
	nets map[string]map[netip.Prefix]bool
}

// outside reports whether the key is known to be outside.
func (z *zoneMemory) outside(group string, k claim.Key) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.nets[group][neighbourhood(k.ID)]
}

func (z *zoneMemory) remember(group string, ks []claim.Key, outside bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.nets == nil || len(z.nets) >= maxGroups {
		z.nets = map[string]map[netip.Prefix]bool{}
	}
	m := z.nets[group]
	if m == nil || len(m) >= maxNeighbourhoods {
		m = map[netip.Prefix]bool{}
		z.nets[group] = m
	}
	for _, k := range ks {
		m[neighbourhood(k.ID)] = outside
	}
}

func neighbourhood(id string) netip.Prefix {
	a, err := netip.ParseAddr(id)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 24
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// suspects remembers the targets that a group refused one by one, so that they
// neither cost the isolation again each time nor stand in their neighbours' way.
type suspects struct {
	mu     sync.Mutex
	groups map[string][]suspect // those tried last are at the end
}

type suspect struct {
	key claim.Key
	err error // of the last try
}

// part parts ks into those to be sent together and those to be sent alone, the
// longest untried first.
func (s *suspects) part(group string, ks []claim.Key) (ordinary []claim.Key, refused []suspect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.groups[group]
	for _, u := range known {
		if slices.Contains(ks, u.key) {
			refused = append(refused, u)
		}
	}
	ordinary = slices.DeleteFunc(ks, func(k claim.Key) bool {
		return slices.ContainsFunc(refused, func(u suspect) bool { return u.key == k })
	})
	return ordinary, refused
}

// learn forgets of ks what was accepted and keeps what was refused by itself.
func (s *suspects) learn(group string, ks []claim.Key, failed map[claim.Key]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var news []suspect
	old := s.groups[group]
	for _, k := range ks {
		if err := failed[k]; errors.Is(err, ErrInvalidTarget) && !holds(old, k, err) {
			news = append(news, suspect{k, err})
		}
	}
	kept := slices.DeleteFunc(old, func(u suspect) bool {
		return slices.Contains(ks, u.key) && failed[u.key] != u.err //nolint:errorlint // the very same error: it was not tried again
	})
	if kept = append(kept, news...); len(kept) > maxSuspects {
		kept = news[:min(len(news), maxSuspects)]
	}
	if s.groups == nil || len(s.groups) >= maxGroups {
		s.groups = map[string][]suspect{}
	}
	if len(kept) == 0 {
		delete(s.groups, group)
		return
	}
	s.groups[group] = kept
}

// holds reports whether the error of k is the one that is remembered of it.
func holds(all []suspect, k claim.Key, err error) bool {
	return slices.Contains(all, suspect{k, err})
}
