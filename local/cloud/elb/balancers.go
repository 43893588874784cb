package elb

import (
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

type balancersResult struct {
	LoadBalancers core.List[loadBalancerShape]
	NextMarker    string `xml:",omitempty"`
}

func balancerShape(b state.Balancer) loadBalancerShape {
	out := loadBalancerShape{
		LoadBalancerArn: b.ARN, DNSName: b.Address.String(), CanonicalHostedZoneId: "Z00000000000000000001",
		CreatedTime: b.CreationTime.UTC().Format(time.RFC3339Nano), LoadBalancerName: b.Name, Scheme: b.Scheme,
		VpcId: b.VPC, Type: string(b.Kind), SecurityGroups: core.ListOf(b.SecurityGroups), IpAddressType: b.IPType,
	}
	out.State.Code = "active"
	for _, n := range b.Subnets {
		out.AvailabilityZones.Member = append(out.AvailabilityZones.Member, zoneShape{ZoneName: n.Zone, SubnetId: n.ID})
	}
	return out
}

func (s *Service) createLoadBalancer(call *core.Call) (any, error) {
	p := call.Params
	subnets := p.Strings("Subnets")
	for _, m := range p.Members("SubnetMappings") {
		if len(p.Strings("Subnets")) > 0 {
			return nil, core.Errorf("ValidationError", "You must specify either subnets or subnet mappings, but not both")
		}
		subnets = append(subnets, m.Get("SubnetId"))
	}
	b, err := s.store.CreateBalancer(call.Scope, state.BalancerSpec{
		Name: p.Get("Name"), Kind: p.Get("Type"), Scheme: p.Get("Scheme"), IPType: p.Get("IpAddressType"),
		Subnets: subnets, SecurityGroups: p.Strings("SecurityGroups"), Tags: tags(p),
	}, s.address, call.Time)
	if err != nil {
		return nil, err
	}
	s.start(b)
	return balancersResult{LoadBalancers: core.ListOf([]loadBalancerShape{balancerShape(b)})}, nil
}

func (s *Service) describeLoadBalancers(call *core.Call) (any, error) {
	p := call.Params
	arns, names := p.Strings("LoadBalancerArns"), p.Strings("Names")
	if err := checkDescribed("load balancers", arns, names); err != nil {
		return nil, err
	}
	all, err := s.store.Balancers(call.Scope, arns, names)
	if err != nil {
		return nil, err
	}
	all, next, err := page(p, all, func(b state.Balancer) string { return b.Name })
	if err != nil {
		return nil, err
	}
	out := balancersResult{NextMarker: next}
	for _, b := range all {
		out.LoadBalancers.Member = append(out.LoadBalancers.Member, balancerShape(b))
	}
	return out, nil
}

func (s *Service) deleteLoadBalancer(call *core.Call) (any, error) {
	arn, err := required(call.Params, "LoadBalancerArn", "loadBalancerArn")
	if err != nil {
		return nil, err
	}
	gone, ok, err := s.store.DeleteBalancer(call.Scope, arn, call.Time)
	if ok {
		s.end(gone)
	}
	return nil, err
}

// loadBalancerAttributes answers both the Describe and the Modify call.
func (s *Service) loadBalancerAttributes(call *core.Call) (any, error) {
	arn, err := required(call.Params, "LoadBalancerArn", "loadBalancerArn")
	if err != nil {
		return nil, err
	}
	all, err := s.store.BalancerAttributes(call.Scope, arn, attributes(call.Params))
	if err != nil {
		return nil, err
	}
	return attributesResult{attributeShapes(all)}, nil
}

type listenersResult struct {
	Listeners  core.List[listenerShape]
	NextMarker string `xml:",omitempty"`
}

func listenersResultOf(all ...state.Listener) listenersResult {
	out := make([]listenerShape, len(all))
	for i, l := range all {
		out[i] = listenerShape{ListenerArn: l.ARN, LoadBalancerArn: l.Balancer, Port: l.Port, Protocol: l.Protocol}
		for _, a := range l.Actions {
			out[i].DefaultActions.Member = append(out[i].DefaultActions.Member, actionShapeOf(a))
		}
	}
	return listenersResult{Listeners: core.ListOf(out)}
}

func listenerSpec(p core.Params) (state.ListenerSpec, error) {
	spec := state.ListenerSpec{Protocol: p.Get("Protocol"), Tags: tags(p)}
	var err error
	if spec.Port, err = p.Int("Port"); err != nil {
		return spec, err
	}
	spec.Actions, err = actions(p.Members("DefaultActions"))
	return spec, err
}

func (s *Service) createListener(call *core.Call) (any, error) {
	arn, err := required(call.Params, "LoadBalancerArn", "loadBalancerArn")
	if err != nil {
		return nil, err
	}
	spec, err := listenerSpec(call.Params)
	if err != nil {
		return nil, err
	}
	l, err := s.store.CreateListener(call.Scope, arn, spec, s.open, call.Time)
	if err != nil {
		return nil, err
	}
	return listenersResultOf(l), nil
}

// open is called with the store locked.
func (s *Service) open(l state.Listener) error {
	p := s.plane(l.Balancer)
	if p == nil {
		return core.Errorf("LoadBalancerNotFound", "Load balancer '%s' not found", l.Balancer)
	}
	return p.Open(l.ARN, l.Port)
}

func (s *Service) modifyListener(call *core.Call) (any, error) {
	arn, err := required(call.Params, "ListenerArn", "listenerArn")
	if err != nil {
		return nil, err
	}
	spec, err := listenerSpec(call.Params)
	if err != nil {
		return nil, err
	}
	l, err := s.store.ModifyListener(call.Scope, arn, spec, s.open, call.Time)
	if err != nil {
		return nil, err
	}
	return listenersResultOf(l), nil
}

func (s *Service) deleteListener(call *core.Call) (any, error) {
	arn, err := required(call.Params, "ListenerArn", "listenerArn")
	if err != nil {
		return nil, err
	}
	l, err := s.store.DeleteListener(call.Scope, arn, call.Time)
	if err != nil {
		return nil, err
	}
	if p := s.plane(l.Balancer); p != nil {
		p.Drop(l.ARN)
	}
	return nil, nil
}

func (s *Service) describeListeners(call *core.Call) (any, error) {
	p := call.Params
	all, err := s.store.Listeners(call.Scope, p.Get("LoadBalancerArn"), p.Strings("ListenerArns"))
	if err != nil {
		return nil, err
	}
	all, next, err := page(p, all, func(l state.Listener) string { return l.ARN })
	if err != nil {
		return nil, err
	}
	out := listenersResultOf(all...)
	out.NextMarker = next
	return out, nil
}
