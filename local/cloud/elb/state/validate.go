package state

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/elbridge/elbridge/local/cloud/core"
)

var errNoTargets = constraint("[]", "targets", "have length greater than or equal to 1")

var instanceID = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// key returns the key that a description means, if its form is right.
func (g *group) key(d Description, i int) (Key, error) {
	if d.Port != 0 && (d.Port < 1 || d.Port > 65535) {
		at := fmt.Sprintf("targets.%d.member.port", i+1)
		if d.Port < 1 {
			return Key{}, constraint(strconv.Itoa(int(d.Port)), at, "have value greater than or equal to 1")
		}
		return Key{}, constraint(strconv.Itoa(int(d.Port)), at, "have value less than or equal to 65535")
	}
	k := Key{ID: d.ID, Port: d.Port}
	if k.Port == 0 {
		k.Port = g.Port
	}
	if g.TargetType == TypeInstance {
		if !instanceID.MatchString(d.ID) {
			return Key{}, core.Errorf("ValidationError", "Instance ID '%s' is not valid", d.ID)
		}
		return k, nil
	}
	a, err := g.addr(d.ID)
	if err != nil {
		return Key{}, err
	}
	k.ID = a.String()
	return k, nil
}

// addr reads an address of the group's family.
func (g *group) addr(id string) (netip.Addr, error) {
	a, err := netip.ParseAddr(id)
	name, right := "IPv4", a.Is4()
	if g.Family == "ipv6" {
		name, right = "IPv6", a.Is6() && !a.Is4In6()
	}
	if err != nil || !right || a.Zone() != "" {
		return netip.Addr{}, core.Errorf("ValidationError", "The IP address '%s' is not a valid %s address", id, name)
	}
	return a, nil
}

// checked returns a target that may be registered.
func (s *Store) checked(g *group, d Description, i int) (*target, error) {
	k, err := g.key(d, i)
	if err != nil {
		return nil, err
	}
	v, _ := s.vpc(g.scope.Scope, g.VPC) // checked when the group was made
	t := &target{Key: k, group: g}
	if g.TargetType == TypeInstance {
		return t, s.checkInstance(t, v, d)
	}
	t.addr, _ = netip.ParseAddr(k.ID)
	return t, s.checkAddress(t, v, d)
}

func (s *Store) checkInstance(t *target, v VPC, d Description) error {
	if d.Zone != "" {
		return core.Errorf("ValidationError", "You cannot specify an Availability Zone for the target '%s': the target type of the target group is 'instance'", d.ID)
	}
	in, ok := s.cfg.Instance(d.ID)
	switch {
	case !ok || in.VPC != "" && in.VPC != v.ID:
		return core.Errorf("InvalidTarget", "The following targets are not in the target group VPC '%s': '%s'", v.ID, d.ID)
	case !in.Running:
		return core.Errorf("InvalidTarget", "The following targets are not in a running state and cannot be registered: '%s'", d.ID)
	}
	t.addr, t.zone = in.Addr, in.Zone
	return nil
}

// checkAddress applies the rules for zones and ranges. An address in a subnet
// of the VPC has that zone, whatever the caller says; any other must say one.
func (s *Store) checkAddress(t *target, v VPC, d Description) error {
	zone, inside := v.zoneOf(t.addr)
	if inside {
		if d.Zone != "" && d.Zone != zone {
			return core.Errorf("ValidationError", "The IP address '%s' is within the VPC, and cannot have its Availability Zone overridden to '%s' from '%s'", d.ID, d.Zone, zone)
		}
		t.zone, t.shown = zone, zone
		return nil
	}
	ranges := targetRanges
	if t.addr.Is6() {
		ranges = append(slices.Clone(v.CIDRs), v.Peered...)
	}
	if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(t.addr) }) {
		return core.Errorf("InvalidTarget", "The IP address '%s' is not in a subnet of the VPC '%s' and not in a range that targets may have", d.ID, v.ID)
	}
	switch {
	case d.Zone == "":
		return core.Errorf("ValidationError", "The IP address '%s' is outside the VPC '%s': you must specify an Availability Zone, or 'all'", d.ID, v.ID)
	case d.Zone != "all" && !slices.Contains(v.zones(), d.Zone):
		return core.Errorf("ValidationError", "The Availability Zone '%s' of the IP address '%s' is not valid", d.Zone, d.ID)
	}
	t.zone, t.shown = d.Zone, d.Zone
	return nil
}
