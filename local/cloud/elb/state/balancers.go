package state

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// BalancerSpec is what a caller wants of a new load balancer.
type BalancerSpec struct {
	Name                 string
	Kind, Scheme, IPType string // empty: application, internet-facing, ipv4
	Subnets              []string
	SecurityGroups       []string
	Tags                 []Tag
}

// CreateBalancer makes a load balancer. address is called for its address once
// everything else is right. The same again returns the one that is there.
func (s *Store) CreateBalancer(sc core.Scope, spec BalancerSpec, address func() (netip.Addr, error), now time.Time) (Balancer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	b, err := s.draftBalancer(sc, spec, now)
	if err != nil {
		return Balancer{}, err
	}
	n := 0
	for _, old := range a.balancers {
		if old.Name == b.Name {
			if old.Kind != b.Kind || old.Scheme != b.Scheme || old.IPType != b.IPType || !slices.Equal(subnetIDs(old.Subnets), subnetIDs(b.Subnets)) {
				return Balancer{}, core.Errorf("DuplicateLoadBalancerName", "A load balancer with the same name '%s' exists, but with different settings", b.Name)
			}
			return old.Balancer, nil
		}
		if old.Kind == b.Kind {
			n++
		}
	}
	if n >= s.cfg.Limits.Balancers {
		return Balancer{}, core.Errorf("TooManyLoadBalancers", "The maximum number of load balancers '%d' has been reached", s.cfg.Limits.Balancers)
	}
	if b.Address, err = address(); err != nil {
		return Balancer{}, core.Errorf("InvalidConfigurationRequest", "%s", err)
	}
	a.balancers[b.ARN] = b
	return b.Balancer, nil
}

func (s *Store) draftBalancer(sc core.Scope, spec BalancerSpec, now time.Time) (*balancer, error) {
	b := &balancer{Balancer: Balancer{
		Name: spec.Name, Kind: route.Kind(cmp.Or(spec.Kind, string(route.Application))),
		Scheme: cmp.Or(spec.Scheme, "internet-facing"), IPType: cmp.Or(spec.IPType, "ipv4"),
		SecurityGroups: spec.SecurityGroups, CreationTime: now,
	}}
	if err := checkName("Load balancer", b.Name); err != nil {
		return nil, err
	}
	short := "app"
	switch {
	case strings.HasPrefix(b.Name, "internal-"):
		return nil, core.Errorf("ValidationError", "Load balancer name '%s' cannot begin with 'internal-'", b.Name)
	case b.Kind == "gateway":
		return nil, core.Errorf("InvalidConfigurationRequest", "Load balancer type 'gateway' is not part of the local cloud: it has application and network")
	case b.Kind == route.Network:
		short = "net"
	case b.Kind != route.Application:
		return nil, constraint(string(b.Kind), "type", "satisfy enum value set: [application, network, gateway]")
	case b.Scheme != "internet-facing" && b.Scheme != "internal":
		return nil, constraint(b.Scheme, "scheme", "satisfy enum value set: [internet-facing, internal]")
	}
	if err := s.subnets(sc, b, spec.Subnets); err != nil {
		return nil, err
	}
	var err error
	if b.tags, err = s.addTags(nil, spec.Tags); err != nil {
		return nil, err
	}
	b.attributes = defaults(balancerSettings(b.Kind))
	b.ARN = sc.ARN("elasticloadbalancing", fmt.Sprintf("loadbalancer/%s/%s/%s", short, b.Name, s.cfg.NewID()))
	return b, nil
}

// subnets finds the subnets of a new load balancer, and with them its VPC.
func (s *Store) subnets(sc core.Scope, b *balancer, ids []string) error {
	if len(ids) == 0 {
		return core.Errorf("ValidationError", "At least one subnet must be specified")
	}
	zones := map[string]bool{}
	for _, id := range ids {
		i := slices.IndexFunc(s.cfg.VPCs, func(v VPC) bool {
			_, ok := v.subnet(id)
			return ok && (v.Account == "" || v.Account == sc.Account)
		})
		if i < 0 {
			return core.Errorf("SubnetNotFound", "The subnet ID '%s' does not exist", id)
		}
		v := s.cfg.VPCs[i]
		n, _ := v.subnet(id)
		switch {
		case b.VPC != "" && b.VPC != v.ID:
			return core.Errorf("InvalidConfigurationRequest", "The subnets of a load balancer must be in one VPC: '%s' is in '%s'", id, v.ID)
		case zones[n.Zone]:
			return core.Errorf("InvalidConfigurationRequest", "A load balancer cannot be attached to multiple subnets in the same Availability Zone")
		}
		zones[n.Zone] = true
		b.VPC = v.ID
		b.Subnets = append(b.Subnets, n)
	}
	if b.Kind == route.Application && len(zones) < 2 {
		return core.Errorf("ValidationError", "At least two subnets in two different Availability Zones must be specified")
	}
	return nil
}

func subnetIDs(all []Subnet) []string {
	out := make([]string, len(all))
	for i, n := range all {
		out[i] = n.ID
	}
	slices.Sort(out)
	return out
}

// Balancers returns the load balancers with these ARNs or names, all if
// nothing is given, sorted by name.
func (s *Store) Balancers(sc core.Scope, arns, names []string) ([]Balancer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	for _, arn := range arns {
		if _, err := a.balancer(arn); err != nil {
			return nil, notFound(err, "LoadBalancerNotFound", "One or more load balancers not found")
		}
	}
	out, named := []Balancer{}, map[string]bool{}
	for _, b := range a.balancers {
		named[b.Name] = true
		if (len(arns) == 0 || slices.Contains(arns, b.ARN)) && (len(names) == 0 || slices.Contains(names, b.Name)) {
			out = append(out, b.Balancer)
		}
	}
	for _, n := range names {
		if !named[n] {
			return nil, core.Errorf("LoadBalancerNotFound", "Load balancers '[%s]' not found", n)
		}
	}
	slices.SortFunc(out, func(x, y Balancer) int { return cmp.Compare(x.Name, y.Name) })
	return out, nil
}

// DeleteBalancer removes a load balancer and its listeners; ok is false if
// there was none, which is no error.
func (s *Store) DeleteBalancer(sc core.Scope, arn string, now time.Time) (gone Balancer, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	b := a.balancers[arn]
	if b == nil {
		_, err := a.balancer(arn) // the ARN may be none at all
		if e, is := errors.AsType[*core.Error](err); is && e.Code == "LoadBalancerNotFound" {
			return Balancer{}, false, nil
		}
		return Balancer{}, false, err
	}
	if b.attributes[attrProtection] == "true" {
		return Balancer{}, false, core.Errorf("OperationNotPermitted", "Load balancer '%s' cannot be deleted because deletion protection is enabled", arn)
	}
	for _, l := range a.listenersOf(arn) {
		delete(a.listeners, l.ARN)
	}
	delete(a.balancers, arn)
	s.reuse(a, now)
	return b.Balancer, true, nil
}
