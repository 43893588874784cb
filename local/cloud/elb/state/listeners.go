package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// ListenerSpec is what a caller wants of a listener. For a change, what is nil
// or empty stays.
type ListenerSpec struct {
	Protocol string
	Port     *int32
	Actions  []Action
	Tags     []Tag
}

// Opener opens a listener's socket. It is called when everything else is right.
type Opener func(Listener) error

// CreateListener adds a listener to a load balancer.
func (s *Store) CreateListener(sc core.Scope, balancerARN string, spec ListenerSpec, open Opener, now time.Time) (Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	b, err := a.balancer(balancerARN)
	if err != nil {
		return Listener{}, err
	}
	l := &listener{Listener: Listener{Balancer: b.ARN, Protocol: spec.Protocol, Actions: spec.Actions}}
	switch {
	case spec.Port == nil:
		return Listener{}, core.Errorf("ValidationError", "A listener port must be specified")
	case spec.Protocol == "":
		return Listener{}, core.Errorf("ValidationError", "A listener protocol must be specified")
	}
	l.Port = *spec.Port
	if l.tags, err = s.addTags(nil, spec.Tags); err != nil {
		return Listener{}, err
	}
	if err := s.checkListener(a, b, l); err != nil {
		return Listener{}, err
	}
	if n := len(a.listenersOf(b.ARN)); n >= s.cfg.Limits.ListenersPerBalancer {
		return Listener{}, core.Errorf("TooManyListeners", "The maximum number of listeners '%d' has been reached on load balancer '%s'", n, b.ARN)
	}
	l.ARN = strings.Replace(b.ARN, ":loadbalancer/", ":listener/", 1) + "/" + s.cfg.NewID()
	if err := open(l.Listener); err != nil {
		return Listener{}, core.Errorf("InvalidConfigurationRequest", "%s", err)
	}
	a.listeners[l.ARN] = l
	s.reuse(a, now)
	s.publish(a, b)
	return l.view(), nil
}

// ModifyListener changes a listener. open is called when its port changes.
func (s *Store) ModifyListener(sc core.Scope, arn string, spec ListenerSpec, open Opener, now time.Time) (Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	old, err := a.listener(arn)
	if err != nil {
		return Listener{}, err
	}
	l := &listener{Listener: old.Listener, tags: old.tags}
	l.Protocol = cmp.Or(spec.Protocol, l.Protocol)
	set(&l.Port, spec.Port)
	if len(spec.Actions) > 0 {
		l.Actions = spec.Actions
	} else if spec.Protocol == "" && spec.Port == nil {
		return old.view(), nil
	}
	b := a.balancers[l.Balancer]
	if err := s.checkListener(a, b, l); err != nil {
		return Listener{}, err
	}
	if l.Port != old.Port {
		if err := open(l.Listener); err != nil {
			return Listener{}, core.Errorf("InvalidConfigurationRequest", "%s", err)
		}
	}
	a.listeners[arn] = l
	s.reuse(a, now)
	s.publish(a, b)
	return l.view(), nil
}

// DeleteListener removes a listener and returns what it was.
func (s *Store) DeleteListener(sc core.Scope, arn string, now time.Time) (Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	l, err := a.listener(arn)
	if err != nil {
		return Listener{}, err
	}
	delete(a.listeners, arn)
	s.reuse(a, now)
	s.publish(a, a.balancers[l.Balancer])
	return l.view(), nil
}

// Listeners returns the listeners of a load balancer, or those with these
// ARNs, sorted by port.
func (s *Store) Listeners(sc core.Scope, balancerARN string, arns []string) ([]Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	out := []Listener{}
	if balancerARN != "" {
		if _, err := a.balancer(balancerARN); err != nil {
			return nil, err
		}
		for _, l := range a.listenersOf(balancerARN) {
			out = append(out, l.view())
		}
		return out, nil
	}
	if len(arns) == 0 {
		return nil, core.Errorf("ValidationError", "You must specify either listener ARNs or a load balancer ARN")
	}
	for _, arn := range arns {
		l, err := a.listener(arn)
		if err != nil {
			return nil, err
		}
		out = append(out, l.view())
	}
	slices.SortFunc(out, func(x, y Listener) int { return cmp.Compare(x.Port, y.Port) })
	return out, nil
}

func (l *listener) view() Listener {
	out := l.Listener
	out.Actions = slices.Clone(l.Actions)
	return out
}

// checkListener checks a listener as it would be, against its load balancer
// and everything that it forwards to.
func (s *Store) checkListener(a *scope, b *balancer, l *listener) error {
	if err := within(l.Port, "port", 1, 65535); err != nil {
		return err
	}
	if err := checkProtocol(b.Kind, l.Protocol); err != nil {
		return err
	}
	for _, other := range a.listenersOf(b.ARN) {
		if other.Port == l.Port && other.ARN != l.ARN {
			return core.Errorf("DuplicateListener", "A listener already exists on this port for this load balancer '%s'", b.ARN)
		}
	}
	if err := s.checkActions(b, l.Actions); err != nil {
		return err
	}
	return s.checkGroups(a, b, l)
}

func checkProtocol(k route.Kind, protocol string) error {
	right, known := "HTTP", []string{"HTTPS"}
	if k == route.Network {
		right, known = "TCP", []string{"TLS", "UDP", "TCP_UDP", "QUIC", "TCP_QUIC"}
	}
	switch {
	case protocol == right:
		return nil
	case slices.Contains(known, protocol):
		return core.Errorf("UnsupportedProtocol", "Listener protocol '%s' is not part of the local cloud: %s load balancers have %s", protocol, k, right)
	}
	return core.Errorf("ValidationError", "Listener protocol '%s' must be one of '%s'", protocol, strings.Join(append([]string{right}, known...), ", "))
}

func (s *Store) checkActions(b *balancer, actions []Action) error {
	if len(actions) != 1 {
		return core.Errorf("InvalidLoadBalancerAction", "A listener of the local cloud has one default action: a forward, a fixed response or a redirect; got %d", len(actions))
	}
	act := actions[0]
	if b.Kind == route.Network && act.Type != "forward" {
		return core.Errorf("InvalidLoadBalancerAction", "The action type '%s' is not valid with network load balancers", act.Type)
	}
	f := act.Action.Forward
	if act.Type != "forward" {
		return nil // checked when it was read
	}
	switch {
	case len(f) == 0:
		return core.Errorf("ValidationError", "A target group ARN must be specified")
	case len(f) > s.cfg.Limits.GroupsPerAction:
		return core.Errorf("TooManyTargetGroups", "The maximum number of target groups per action '%d' has been reached", s.cfg.Limits.GroupsPerAction)
	}
	seen := map[string]bool{}
	for i, w := range f {
		if w.Weight < 0 || w.Weight > 999 {
			return constraint(strconv.Itoa(int(w.Weight)), fmt.Sprintf("actions.1.member.forwardConfig.targetGroups.%d.member.weight", i+1), "have value from 0 to 999")
		}
		if seen[w.GroupARN] {
			return core.Errorf("ValidationError", "Target group '%s' is specified more than once", w.GroupARN)
		}
		seen[w.GroupARN] = true
	}
	return nil
}

// checkGroups checks what a listener forwards to: protocols, VPC, ownership
// and the quotas that hold for the load balancer as a whole.
func (s *Store) checkGroups(a *scope, b *balancer, l *listener) error {
	behind := map[string]*group{}
	for _, other := range a.listenersOf(b.ARN) {
		if other.ARN == l.ARN {
			continue
		}
		for _, arn := range groupsOf(other.Actions) {
			behind[arn] = a.groups[arn]
		}
	}
	for _, arn := range groupsOf(l.Actions) {
		g, err := a.group(arn)
		if err != nil {
			return err
		}
		if err := s.checkGroup(a, b, l, g); err != nil {
			return err
		}
		behind[arn] = g
	}
	if b.Kind == route.Application && len(behind) > s.cfg.Limits.GroupsPerALB {
		return core.Errorf("TooManyUniqueTargetGroupsPerLoadBalancer", "The maximum number of unique target groups '%d' has been reached on load balancer '%s'", s.cfg.Limits.GroupsPerALB, b.ARN)
	}
	return s.fits(b, slices.Collect(maps.Values(behind)), nil)
}

func (s *Store) checkGroup(a *scope, b *balancer, l *listener, g *group) error {
	isTCP := g.Protocol == "TCP"
	switch {
	case isTCP != (b.Kind == route.Network):
		return core.Errorf("IncompatibleProtocols", "Listener protocol '%s' is not supported with a target group with protocol '%s'", l.Protocol, g.Protocol)
	case g.VPC != b.VPC:
		return core.Errorf("InvalidConfigurationRequest", "The target group '%s' is in the VPC '%s', the load balancer in '%s'", g.ARN, g.VPC, b.VPC)
	}
	for _, user := range a.users(g.ARN) {
		if user != b.ARN {
			return core.Errorf("TargetGroupAssociationLimit", "The following target groups cannot be associated with more than one load balancer: %s", g.ARN)
		}
	}
	return nil
}
