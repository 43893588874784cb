package state

import (
	"net/netip"
	"slices"
)

// VPC is a network that target groups and load balancers belong to.
type VPC struct {
	ID      string
	Account string         // whose it is; empty: every account sees it
	CIDRs   []netip.Prefix // its own, of both families
	Subnets []Subnet
	Peered  []netip.Prefix // IPv6 ranges of peered VPCs, allowed as targets
}

// Subnet is the part of a VPC in one zone. A real subnet has one range of each
// family; here it may have several, and where ranges overlap the longest one
// wins.
type Subnet struct {
	ID, Zone string
	CIDRs    []netip.Prefix
}

// zoneOf returns the zone of the subnet that an address is in. As in AWS it is
// the subnets that count, not the ranges of the VPC.
func (v VPC) zoneOf(a netip.Addr) (zone string, inside bool) {
	best := -1
	for _, s := range v.Subnets {
		for _, p := range s.CIDRs {
			if p.Contains(a) && p.Bits() > best {
				best, zone = p.Bits(), s.Zone
			}
		}
	}
	return zone, best >= 0
}

func (v VPC) subnet(id string) (Subnet, bool) {
	i := slices.IndexFunc(v.Subnets, func(s Subnet) bool { return s.ID == id })
	if i < 0 {
		return Subnet{}, false
	}
	return v.Subnets[i], true
}

// zones are those that the VPC has subnets in.
func (v VPC) zones() []string {
	var out []string
	for _, s := range v.Subnets {
		if !slices.Contains(out, s.Zone) {
			out = append(out, s.Zone)
		}
	}
	return out
}

// Instance is an EC2 instance that may be a target.
type Instance struct {
	Addr    netip.Addr // where its host ports are
	Zone    string
	VPC     string
	Running bool
}

// targetRanges are the addresses outside its VPC that an IPv4 group takes.
var targetRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"),
}
