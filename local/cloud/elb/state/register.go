package state

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// Description is a target as a caller names it. Port 0 means the group's own.
type Description struct {
	ID   string
	Port int32
	Zone string // "" means none given
}

// Register adds all the given targets, or none and an error. One that is
// registered already stays as it is; one that drains begins again.
func (s *Store) Register(sc core.Scope, arn string, targets []Description, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.scope(sc).group(arn)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return errNoTargets
	}
	wanted := make(map[Key]*target, len(targets))
	for i, d := range targets {
		t, err := s.checked(g, d, i)
		if err != nil {
			return err
		}
		wanted[t.Key] = t
	}
	fresh := make([]*target, 0, len(wanted))
	for k, t := range wanted {
		if old := g.targets[k]; old == nil || !old.live() {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := s.room(g, fresh); err != nil {
		return err
	}
	slices.SortFunc(fresh, func(a, b *target) int { return compareKeys(a.Key, b.Key) })
	for _, t := range fresh {
		if old := g.targets[t.Key]; old != nil { // it drains: the same target, once more
			old.addr, old.zone, old.shown = t.addr, t.zone, t.shown
			old.registered = now
			t = old
		}
		g.targets[t.Key] = t
		s.place(t, now)
	}
	s.publishGroup(g)
	return nil
}

// Deregister takes targets out of a group. Ones that are not there are no
// error. A port that is left out means the group's own, so a target that was
// registered with another one stays.
func (s *Store) Deregister(sc core.Scope, arn string, targets []Description, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.scope(sc).group(arn)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return errNoTargets
	}
	keys := make([]Key, len(targets))
	for i, d := range targets {
		if keys[i], err = g.key(d, i); err != nil {
			return err
		}
	}
	delay, _ := strconv.Atoi(g.attributes[attrDelay]) // checked when it was set
	for _, k := range keys {
		t := g.targets[k]
		if t == nil || !t.live() {
			continue
		}
		before := t.status()
		t.gen++
		if t.phase == unused || delay == 0 { // nothing to wait for
			delete(g.targets, k)
			s.changed(t, before, Status{}, now)
			continue
		}
		t.phase = draining
		s.add(timer{at: now.Add(time.Duration(delay) * time.Second), target: t, gen: t.gen})
		s.changed(t, before, statusDraining, now)
	}
	s.publishGroup(g)
	return nil
}

// Health answers for the given targets, or for all of the group if there are
// none. The group's targets come in the order of their ids and ports.
func (s *Store) Health(sc core.Scope, arn string, targets []Description) ([]TargetHealth, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.scope(sc).group(arn)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		out := make([]TargetHealth, 0, len(g.targets))
		for _, t := range g.targets {
			out = append(out, t.describe())
		}
		slices.SortFunc(out, func(a, b TargetHealth) int { return compareKeys(a.Key, b.Key) })
		return out, nil
	}
	out := make([]TargetHealth, len(targets))
	for i, d := range targets {
		k, err := g.key(d, i)
		if err != nil {
			return nil, err
		}
		if t := g.targets[k]; t != nil {
			out[i] = t.describe()
		} else {
			out[i] = TargetHealth{Key: k, CheckPort: g.checkPort(k), Status: statusAbsent}
		}
	}
	return out, nil
}

func (t *target) describe() TargetHealth {
	return TargetHealth{Key: t.Key, Zone: t.shown, CheckPort: t.group.checkPort(t.Key), Status: t.status()}
}

func (g *group) checkPort(k Key) string {
	if g.Check.Port == TrafficPort {
		return strconv.Itoa(int(k.Port))
	}
	return g.Check.Port
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Port, b.Port))
}

// room checks the quotas for targets that are not registered yet.
func (s *Store) room(g *group, fresh []*target) error {
	if live := g.live(); live+len(fresh) > s.cfg.Limits.TargetsPerGroup {
		return core.Errorf("TooManyTargets", "The maximum number of targets per target group '%d' has been reached on target group '%s'", s.cfg.Limits.TargetsPerGroup, g.ARN)
	}
	for _, arn := range g.Balancers {
		b := g.scope.balancers[arn]
		if err := s.fits(b, g.scope.groupsBehind(arn), fresh); err != nil {
			return err
		}
	}
	return nil
}

// live counts the registered targets.
func (g *group) live() int {
	n := 0
	for _, t := range g.targets {
		if t.live() {
			n++
		}
	}
	return n
}
