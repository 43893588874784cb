package state

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// GroupSpec is what a caller wants of a new target group.
type GroupSpec struct {
	Name, Protocol, VPC         string
	TargetType, Family, Version string // empty: instance, ipv4, HTTP1
	Port                        *int32
	Check                       CheckSpec
	Tags                        []Tag
}

var resourceName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$`)

func checkName(what, name string) error {
	switch {
	case name == "":
		return core.Errorf("ValidationError", "A %s name must be specified", strings.ToLower(what))
	case len(name) > 32:
		return core.Errorf("ValidationError", "%s name '%s' cannot be longer than '32' characters", what, name)
	case strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-"):
		return core.Errorf("ValidationError", "%s name '%s' cannot begin or end with '-'", what, name)
	case !resourceName.MatchString(name):
		return core.Errorf("ValidationError", "%s name '%s' can only contain characters that are alphanumeric characters or hyphens(-)", what, name)
	}
	return nil
}

// CreateGroup makes a target group. The same again returns the one that is
// there; the same name with other settings is an error.
func (s *Store) CreateGroup(sc core.Scope, spec GroupSpec, now time.Time) (Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	g, err := s.draft(sc, spec, now)
	if err != nil {
		return Group{}, err
	}
	for _, old := range a.groups {
		if old.Name != g.Name {
			continue
		}
		if same := *old; !sameSettings(same.Group, g.Group) {
			return Group{}, core.Errorf("DuplicateTargetGroupName", "A target group with the same name '%s' exists, but with different settings", g.Name)
		}
		return old.view(), nil
	}
	if len(a.groups) >= s.cfg.Limits.TargetGroups {
		return Group{}, core.Errorf("TooManyTargetGroups", "The maximum number of target groups '%d' has been reached", s.cfg.Limits.TargetGroups)
	}
	g.scope = a
	a.groups[g.ARN] = g
	return g.view(), nil
}

func sameSettings(a, b Group) bool {
	return a.Protocol == b.Protocol && a.Port == b.Port && a.VPC == b.VPC && a.TargetType == b.TargetType &&
		a.Family == b.Family && a.Version == b.Version && a.Check == b.Check
}

// draft checks a spec and returns the group that it means.
func (s *Store) draft(sc core.Scope, spec GroupSpec, now time.Time) (*group, error) {
	g := &group{
		Group: Group{
			Name: spec.Name, Protocol: spec.Protocol, VPC: spec.VPC, CreationTime: now,
			TargetType: cmp.Or(spec.TargetType, TypeInstance), Family: cmp.Or(spec.Family, "ipv4"), Version: spec.Version,
		},
		targets: map[Key]*target{},
	}
	if err := checkName("Target group", g.Name); err != nil {
		return nil, err
	}
	if err := g.checkKind(); err != nil {
		return nil, err
	}
	if spec.Port == nil {
		return nil, core.Errorf("ValidationError", "A port must be specified")
	}
	g.Port = *spec.Port
	if err := within(g.Port, "port", 1, 65535); err != nil {
		return nil, err
	}
	if g.VPC == "" {
		return nil, core.Errorf("ValidationError", "A VPC ID must be specified")
	}
	if _, ok := s.vpc(sc, g.VPC); !ok {
		return nil, core.Errorf("ValidationError", "The VPC ID '%s' is not found", g.VPC)
	}
	var err error
	if g.Check, err = defaultCheck(g.Protocol, spec.Check).apply(spec.Check, g.Protocol); err != nil {
		return nil, err
	}
	if g.tags, err = s.addTags(nil, spec.Tags); err != nil {
		return nil, err
	}
	g.attributes = defaultGroupAttributes(g.Protocol)
	g.ARN = sc.ARN("elasticloadbalancing", fmt.Sprintf("targetgroup/%s/%s", g.Name, s.cfg.NewID()))
	return g, nil
}

// checkKind checks protocol, type and family. What AWS has and the local cloud
// has not is an error that says so.
func (g *group) checkKind() error {
	switch g.Protocol {
	case "HTTP", "HTTPS":
		g.Version = cmp.Or(g.Version, "HTTP1")
		if g.Version != "HTTP1" {
			return core.Errorf("InvalidConfigurationRequest", "Protocol version '%s' is not part of the local cloud: it has HTTP1", g.Version)
		}
	case "TCP":
		if g.Version != "" {
			return core.Errorf("ValidationError", "Protocol version cannot be specified for target groups with protocol 'TCP'")
		}
	case "":
		return core.Errorf("ValidationError", "A protocol must be specified")
	case "TLS", "UDP", "TCP_UDP", "GENEVE", "QUIC", "TCP_QUIC":
		return core.Errorf("InvalidConfigurationRequest", "Protocol '%s' is not part of the local cloud: it has HTTP, HTTPS and TCP", g.Protocol)
	default:
		return constraint(g.Protocol, "protocol", "satisfy enum value set: [HTTP, HTTPS, TCP, TLS, UDP, TCP_UDP, GENEVE, QUIC, TCP_QUIC]")
	}
	switch g.TargetType {
	case TypeIP, TypeInstance:
	case "lambda", "alb":
		return core.Errorf("InvalidConfigurationRequest", "Target type '%s' is not part of the local cloud: it has ip and instance", g.TargetType)
	default:
		return constraint(g.TargetType, "targetType", "satisfy enum value set: [instance, ip, lambda, alb]")
	}
	switch {
	case g.Family != "ipv4" && g.Family != "ipv6":
		return constraint(g.Family, "ipAddressType", "satisfy enum value set: [ipv4, ipv6]")
	case g.Family == "ipv6" && g.TargetType != TypeIP:
		return core.Errorf("ValidationError", "The IP address type 'ipv6' is not supported for target groups with target type '%s'", g.TargetType)
	}
	return nil
}

// ModifyGroup changes the health checks of a group. They take effect with the
// next check of each target.
func (s *Store) ModifyGroup(sc core.Scope, arn string, spec CheckSpec) (Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.scope(sc).group(arn)
	if err != nil {
		return Group{}, err
	}
	c, err := g.Check.apply(spec, g.Protocol)
	if err != nil {
		return Group{}, err
	}
	g.Check = c
	return g.view(), nil
}

// DeleteGroup removes a group that no listener forwards to, and its targets.
func (s *Store) DeleteGroup(sc core.Scope, arn string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	g, err := a.group(arn)
	if err != nil {
		return err
	}
	if len(g.Balancers) > 0 {
		return core.Errorf("ResourceInUse", "Target group '%s' is currently in use by a listener or a rule", arn)
	}
	for _, t := range g.targets {
		t.gen++ // its timers mean nothing any more
		s.changed(t, t.status(), Status{}, now)
	}
	delete(a.groups, arn)
	return nil
}

// Groups returns the groups of a load balancer, with these ARNs or with these
// names; all if nothing is given. They are sorted by name.
func (s *Store) Groups(sc core.Scope, balancer string, arns, names []string) ([]Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	if balancer != "" {
		if _, err := a.balancer(balancer); err != nil {
			return nil, err
		}
	}
	for _, arn := range arns {
		if _, err := a.group(arn); err != nil {
			return nil, notFound(err, "TargetGroupNotFound", "One or more target groups not found")
		}
	}
	out, named := []Group{}, map[string]bool{}
	for _, g := range a.groups {
		named[g.Name] = true
		switch {
		case balancer != "" && !slices.Contains(g.Balancers, balancer),
			len(arns) > 0 && !slices.Contains(arns, g.ARN),
			len(names) > 0 && !slices.Contains(names, g.Name):
			continue
		}
		out = append(out, g.view())
	}
	for _, n := range names {
		if !named[n] {
			return nil, core.Errorf("TargetGroupNotFound", "One or more target groups not found")
		}
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// view is the group as it may leave the store.
func (g *group) view() Group {
	out := g.Group
	out.Balancers = slices.Clone(g.Balancers)
	return out
}

// notFound replaces the words of a lookup that failed for that reason.
func notFound(err error, code, message string) error {
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == code {
		return core.Errorf(code, "%s", message)
	}
	return err
}
